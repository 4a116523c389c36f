//! Real clients against a real server over HTTPS: programs, and libraries in other languages. `cargo xtask test` builds the
//! libraries' programs below `target/clients`.

mod curl;
mod libraries;
mod oidc_provider;

use std::{ffi::OsString, process::Command};

use keywright_harness::{Application, Commanded, Options, Server, Text, key_file};

/// The authentication of a client: the options of its server, and the last arguments of the client.
struct Authentication {
    options: Options,
    arguments: [OsString; 3],
}

impl Authentication {
    /// Authenticates by a token that the development identity provider issues to the client `developer`.
    fn by_secret() -> Self {
        Self {
            options: Options::default(),
            arguments: ["secret", "developer", "developer-secret"].map(OsString::from),
        }
    }

    /// Authenticates by a client certificate.
    fn by_certificate(application: &Application) -> Self {
        Self {
            options: application.options(),
            arguments: [
                "certificate".into(),
                application.certificate_file().into(),
                application.key_file().into(),
            ],
        }
    }
}

/// Runs a client that calls every operation of its library against a new server.
async fn assert_calls_every_operation(mut client: Command, authentication: &Authentication) {
    let server = Server::start_with(&authentication.options).await;
    client.arg(server.base_url()).arg(key_file("ca.pem"));
    let output = run(client.args(&authentication.arguments));
    output.assert_contains("called every operation");
}

/// Runs a program that must succeed, and returns its output.
#[track_caller]
fn run(program: &mut Command) -> String {
    // Without a proxy between the client and the loopback address.
    for variable in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
        program.env_remove(variable);
    }
    let run = Commanded::finish(program, "");
    assert!(
        run.is_success(),
        "{program:?}\n{}\n{}",
        run.output,
        run.errors
    );
    run.output
}
