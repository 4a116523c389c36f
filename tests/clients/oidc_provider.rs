//! Login at npm's `oidc-provider`, an OpenID-certified provider, by each grant that both sides support.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
};

use keywright_harness::{
    Commanded, Node, Options, Server, Shell, Text, identity_provider_recipe, key_file,
    mint::claims_of, node, workspace,
};
use serde_json::{Value, json};

/// The provider. Dropping it ends the process.
struct Provider {
    process: Child,
    url: String,
    /// Stays open: the provider exits if it can't log.
    _output: BufReader<ChildStdout>,
}

impl Provider {
    /// Starts the provider, which signs access tokens with this algorithm.
    fn start(node: &Node, algorithm: &str) -> Self {
        let mut process = Command::new(&node.program)
            .arg(script("provider.mjs"))
            .arg(&node.modules)
            .arg(algorithm)
            .args([key_file("server.pem"), key_file("server-key.pem")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut url).unwrap();
        let url = url.trim_end().to_owned();
        assert!(url.starts_with("https://"), "the provider has not started");
        Self {
            process,
            url,
            _output: output,
        }
    }

    /// Starts a server that trusts the provider.
    async fn server(&self) -> Server {
        Server::start_with(&self.options()).await
    }

    /// Returns the options of a server that trusts the provider, configured as in the guide.
    fn options(&self) -> Options {
        let mut options = Options::default()
            .identity_provider(&self.url)
            .authentication_settings(&identity_provider_recipe("oidc-provider"));
        for actor in [
            "uaa-client:ci",
            "uaa-client:backup",
            "uaa-client:cli",
            "uaa-user:alice",
            "uaa-user:ci",
        ] {
            let path = actor.replace(':', "/");
            options = options.extra(&format!(
                "[[authorization.permissions]]\npath = \"/{path}/*\"\nactors = [\"{actor}\"]\n\
                 operations = [\"read\", \"write\"]\n"
            ));
        }
        options
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn script(name: &str) -> PathBuf {
    workspace().join("tests/clients/node").join(name)
}

/// Returns the scripted browser of a user.
fn browser(node: &Node, user: &str) -> Command {
    let mut command = Command::new(&node.program);
    command.env("NODE_EXTRA_CA_CERTS", key_file("ca.pem"));
    command.arg(script("browser.mjs")).arg(user);
    command
}

/// Writes the scripted browser as a program for `BROWSER`, and returns its path.
fn browser_program(node: &Node, shell: &Shell, user: &str) -> String {
    let text = format!(
        "#!/bin/sh\nNODE_EXTRA_CA_CERTS='{}' exec '{}' '{}' '{user}' \"$1\"\n",
        key_file("ca.pem").display(),
        node.program.display(),
        script("browser.mjs").display(),
    );
    let file = shell.file("browser");
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file.display().to_string()
}

/// Returns the arguments of a login for a token that is meant for the server.
fn login<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let requested = [
        "--resource",
        "https://keywright.example",
        "--scope",
        "credhub.read credhub.write",
    ];
    [&["login"], options, &requested].concat()
}

fn session(shell: &Shell) -> Value {
    let file = shell.file(".config/keywright/session.json");
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// Asserts that a shell is logged in as an actor: it can write only below the actor's path.
fn expect_actor(shell: &Shell, actor: &str) {
    for other in [
        "uaa-client/ci",
        "uaa-client/backup",
        "uaa-client/cli",
        "uaa-user/alice",
        "uaa-user/ci",
    ] {
        let name = format!("/{other}/secret");
        let run = set(shell, &name);
        let status = if other == actor.replace(':', "/") {
            0
        } else {
            5
        };
        assert_eq!(run.status, Some(status), "{actor} writes {name}: {run:?}");
    }
}

fn set(shell: &Shell, name: &str) -> Commanded {
    shell.run(&["set", name, "--type", "value", "--value", "v"])
}

/// Logs in with a code, which a user enters in the scripted browser. Checks the exit status.
fn log_in_by_device(node: &Node, shell: &Shell, user: &str, expected: i32) {
    let mut running = shell.start(&login(&["--device", "--client-id", "cli"]));
    let lines = BufReader::new(running.stderr.take().unwrap()).lines();
    let mut shown = Vec::new();
    for line in lines {
        let line = line.unwrap();
        if let Some(page) = line.strip_prefix("Or open ") {
            let page = page.to_owned();
            let entered = browser(node, user).arg(page).output().unwrap();
            assert!(entered.status.success(), "{entered:?}");
        }
        shown.push(line);
    }
    let status = running.wait().unwrap();
    assert_eq!(status.code(), Some(expected), "{shown:?}");
}

#[tokio::test]
async fn clients_log_in_and_are_distinguished_from_users() {
    let Some(node) = node() else {
        return;
    };
    for algorithm in ["RS256", "ES256"] {
        let provider = Provider::start(&node, algorithm);
        let server = provider.server().await;
        // The first sends its secret in the header, the second in the form.
        for client in ["ci", "backup"] {
            let shell = Shell::at(&server);
            let secret = format!("{client}-secret: 100% + &=");
            shell
                .run_with(&login(&["--client-id", client]), &secret)
                .expect(0);
            expect_actor(&shell, &format!("uaa-client:{client}"));
            let token = session(&shell)["access_token"].as_str().unwrap().to_owned();
            assert_eq!(claims_of(&token)["sub"], json!(client));

            let file = Shell::at(&server);
            fs::write(file.file("token"), format!("{token}\n")).unwrap();
            let name = format!("/uaa-client/{client}/secret");
            let get = ["get", &name, "--raw", "--token-file", "token"];
            assert_eq!(file.run(&get).expect(0).output, "v");

            let wrong = Shell::at(&server);
            wrong
                .run_with(&login(&["--client-id", client]), "wrong")
                .expect(5);
        }
        let job = Shell::at(&server)
            .variable("KEYWRIGHT_CLIENT_ID", "ci")
            .variable("KEYWRIGHT_CLIENT_SECRET", "ci-secret: 100% + &=")
            .variable("KEYWRIGHT_CLIENT_SCOPE", "credhub.read credhub.write")
            .variable("KEYWRIGHT_CLIENT_RESOURCE", "https://keywright.example");
        expect_actor(&job, "uaa-client:ci");
    }
}

#[tokio::test]
async fn a_user_logs_in_with_a_browser_and_out_again() {
    let Some(node) = node() else {
        return;
    };
    for algorithm in ["RS256", "ES256"] {
        let provider = Provider::start(&node, algorithm);
        let server = provider.server().await;
        let shell = Shell::at(&server);
        let program = browser_program(&node, &shell, "alice");
        let shell = shell.variable("BROWSER", &program);
        let by_browser = login(&["--browser", "--client-id", "cli"]);
        shell.run(&by_browser).expect(0);
        expect_actor(&shell, "uaa-user:alice");

        let refresh_token = session(&shell)["refresh_token"].clone();
        let refresh_token = refresh_token.as_str().unwrap();
        let renew = ["login", "--refresh-token", "--client-id", "cli"];
        let renew = [&renew[..], &["--resource", "https://keywright.example"]].concat();
        shell.run_with(&renew, refresh_token).expect(0);
        expect_actor(&shell, "uaa-user:alice");
        let refresh_token = session(&shell)["refresh_token"].clone();
        shell.run("logout").expect(0);
        let ended = shell.run_with(&renew, refresh_token.as_str().unwrap());
        assert!(ended.expect(5).errors.contains("invalid_grant"));
    }
}

#[tokio::test]
async fn a_user_logs_in_with_a_code_on_another_device() {
    let Some(node) = node() else {
        return;
    };
    for algorithm in ["RS256", "ES256"] {
        let provider = Provider::start(&node, algorithm);
        let server = provider.server().await;
        let shell = Shell::at(&server);
        log_in_by_device(&node, &shell, "alice", 0);
        expect_actor(&shell, "uaa-user:alice");
    }
}

#[tokio::test]
async fn users_with_ids_of_clients_do_not_become_clients() {
    let Some(node) = node() else {
        return;
    };
    let provider = Provider::start(&node, "ES256");
    let server = provider.server().await;
    let shell = Shell::at(&server);
    log_in_by_device(&node, &shell, "ci", 0);
    expect_actor(&shell, "uaa-user:ci");
    // A user with the id of the client `cli`, and a login through that client: the token could be the user's or the
    // client's, so the server refuses it.
    log_in_by_device(&node, &shell, "cli", 5);
    let claims = session(&shell)["access_token"].clone();
    let claims = claims_of(claims.as_str().unwrap());
    assert_eq!(
        (&claims["sub"], &claims["client_id"]),
        (&json!("cli"), &json!("cli"))
    );
    let run = set(&shell, "/uaa-client/cli/secret").expect(5);
    run.errors.assert_contains("invalid_token");
}

#[tokio::test]
async fn a_user_logs_in_to_the_console() {
    let Some(node) = node() else {
        return;
    };
    for algorithm in ["RS256", "ES256"] {
        let provider = Provider::start(&node, algorithm);
        let console = "client_secret_environment = \"CONSOLE_SECRET\"\n\
             resource = \"https://keywright.example\"\n\
             scopes = [\"openid\", \"credhub.read\", \"credhub.write\"]";
        let options = provider
            .options()
            .console(console)
            .environment("CONSOLE_SECRET", "console-secret: 100% + &=");
        let server = Server::start_with(&options).await;
        let alice = Shell::at(&server);
        log_in_by_device(&node, &alice, "alice", 0);
        set(&alice, "/uaa-user/alice/listed").expect(0);
        let page = format!("{}/console?path=/uaa-user/alice", server.base_url());
        let shown = browser(&node, "alice").arg(page).output().unwrap();
        let text = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.status.success(), "{text}");
        for part in ["uaa-user:alice", "Log out", "listed"] {
            text.assert_contains(part);
        }
    }
}
