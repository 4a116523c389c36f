//! Credentials are not sent to other servers that a registry's responses refer to, nor to a proxy for a registry on this machine.

use std::{fs, net::Ipv4Addr};

use keywright_harness::{Asked, Commanded, Reply, Stub, digest, key_file, run_program};

use super::{Workshop, assert_refused, login::manifest, path, plain_stub::PlainStub, protected};

/// The error if another server requires a login.
const REFUSED: &str = "the challenge comes from another address than the registry's own";

/// The other server's challenges: for the password itself, or with its own token server.
const CHALLENGES: [&str; 2] = ["Basic realm=\"x\"", "Bearer realm=\"URL/token\""];

#[test]
fn redirect_target_does_not_get_the_password() {
    for challenge in CHALLENGES {
        let stranger = stranger(challenge);
        let workshop = Workshop::new();
        let component = fs::read(workshop.path("plain.wasm")).unwrap();
        let (manifest, elsewhere) = (manifest(&component), stranger.url());
        let reference_digest = digest(manifest.as_bytes());
        let registry = Stub::start(move |asked, _, _| {
            if !asked.head.contains("authorization: basic ") {
                return Reply::new(401, "").header("WWW-Authenticate", "Basic realm=\"own\"");
            }
            if asked.line.contains("/manifests/") {
                return Reply::new(200, &manifest);
            }
            Reply::new(307, "").header("Location", &format!("{elsewhere}/blob"))
        });
        let host = registry.url().replace("https://", "");
        let password = with_password(&workshop);
        let login = format!("user = \"ada\"\npassword_file = \"{password}\"");
        let options = workshop
            .options(&format!("oci://{host}/plain@{reference_digest}"), "")
            .extra(&protected(&host, &login));
        assert_refused(&options, &["the plugin plain", REFUSED]);
        assert_eq!(stranger.lines(), ["GET /blob"], "{challenge}");
        assert_learned_nothing(stranger.asked().iter().map(|asked| &asked.head));
    }
}

#[test]
fn upload_target_does_not_get_the_password() {
    for challenge in CHALLENGES {
        let stranger = stranger(challenge);
        let elsewhere = stranger.url();
        let registry = Stub::start(move |asked, _, _| {
            if !asked.head.contains("authorization: basic ") {
                return Reply::new(401, "").header("WWW-Authenticate", "Basic realm=\"own\"");
            }
            if asked.line.starts_with("HEAD ") {
                return Reply::new(404, "");
            }
            Reply::new(202, "").header("Location", &format!("{elsewhere}/upload?session=1"))
        });
        let workshop = Workshop::new();
        let host = registry.url().replace("https://", "");
        let authority = key_file("ca.pem");
        let run = push(
            &workshop,
            &host,
            &["--trusted-authorities", path(&authority)],
            &[],
        );
        let run = run.expect(1);
        assert!(run.errors.contains(REFUSED), "{run:#?}");
        let lines = stranger.lines();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("PUT /upload?session=1"), "{lines:?}");
        assert_learned_nothing(stranger.asked().iter().map(|asked| &asked.head));
    }
}

#[test]
fn plain_http_registry_needs_token_server_on_its_host() {
    let tokens = |address| {
        PlainStub::start(address, |_| {
            (200, String::new(), r#"{"token": "granted-token"}"#)
        })
    };
    let registry = |realm: String| {
        PlainStub::start(Ipv4Addr::LOCALHOST, move |head| {
            if head.contains("authorization: bearer granted-token") {
                taken(head)
            } else {
                let challenge = format!("WWW-Authenticate: Bearer realm=\"{realm}/token\"\r\n");
                (401, challenge, "")
            }
        })
    };
    let workshop = Workshop::new();
    let own = tokens(Ipv4Addr::LOCALHOST);
    push(&workshop, &registry(own.url()).host(), &[], &[]).expect(0);
    assert!(own.heads()[0].contains("authorization: basic "));

    let other = tokens(Ipv4Addr::new(127, 0, 0, 2));
    let run = push(&workshop, &registry(other.url()).host(), &[], &[]).expect(1);
    let reported = "its token server is on another host and does not use https";
    assert!(run.errors.contains(reported), "{run:#?}");
    assert_eq!(other.heads(), Vec::<String>::new());
}

#[test]
fn loopback_registry_bypasses_proxies() {
    let proxy = PlainStub::start(Ipv4Addr::LOCALHOST, |_| (502, String::new(), ""));
    let registry = PlainStub::start(Ipv4Addr::LOCALHOST, |head| {
        if head.contains("authorization: basic ") {
            taken(head)
        } else {
            (
                401,
                "WWW-Authenticate: Basic realm=\"own\"\r\n".to_owned(),
                "",
            )
        }
    });
    let url = proxy.url();
    let url = url.as_str();
    let variables = [
        ("HTTP_PROXY", url),
        ("HTTPS_PROXY", url),
        ("ALL_PROXY", url),
        ("NO_PROXY", ""),
    ];
    push(&Workshop::new(), &registry.host(), &[], &variables).expect(0);
    assert_eq!(proxy.heads(), Vec::<String>::new());
}

/// Starts a server that requires a login, and would accept any.
fn stranger(challenge: &'static str) -> Stub {
    Stub::start(move |asked: &Asked, _, url| {
        if asked.line.starts_with("GET /token") {
            return Reply::new(200, r#"{"token": "granted-token"}"#);
        }
        Reply::new(401, "").header("WWW-Authenticate", &challenge.replace("URL", url))
    })
}

/// Returns the response of a registry that has every blob and accepts every manifest.
fn taken(head: &str) -> (u16, String, &'static str) {
    let status = if head.starts_with("put ") { 201 } else { 200 };
    (status, String::new(), "")
}

/// Pushes as a user with a password.
fn push(workshop: &Workshop, host: &str, more: &[&str], variables: &[(&str, &str)]) -> Commanded {
    let (password, target) = (with_password(workshop), format!("oci://{host}/plain:1"));
    let login = ["--user", "ada", "--password-file", &password];
    let what = ["plugin", "push", "plain.wasm", &target];
    let arguments = [&what[..], &login, more].concat();
    run_program(workshop.0.path(), &arguments, variables)
}

/// Writes a file with the user's password.
fn with_password(workshop: &Workshop) -> String {
    let file = workshop.path("password");
    fs::write(&file, "hunter2").unwrap();
    file.to_str().unwrap().to_owned()
}

#[track_caller]
fn assert_learned_nothing<'a>(heads: impl Iterator<Item = &'a String>) {
    for head in heads {
        assert!(!head.contains("authorization"), "{head}");
    }
}
