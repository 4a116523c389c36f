//! Troubleshooting in the operator guide: the tests provoke each symptom in its tables. This module covers servers that do not
//! start, warnings in the log, and error messages of the command line.

mod request;

use std::{
    fs,
    net::TcpListener,
    os::unix::{fs::PermissionsExt, net::UnixListener},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use keywright_harness::{
    Commanded, Options, Reply, Server, Shell, Stub, component, key_file, mint::Mint, run_command,
    run_sql, workspace,
};
use serde_json::json;
use tempfile::TempDir;

use crate::{documents::has_line_as_shown, layout::Layout};

use request::nothing_provokes;

#[tokio::test(flavor = "multi_thread")]
async fn start_up_errors_match_the_guide() {
    for symptom in symptoms("## The server does not start") {
        symptom.assert_is_in(&provoke_start_error(&symptom.text).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn error_responses_match_the_guide() {
    for symptom in symptoms("## Requests are refused") {
        let response = request::provoke(&symptom.text).await;
        let status = response.status.to_string();
        assert!(
            symptom.statuses.contains(&status),
            "{}: {response:?}",
            symptom.text
        );
        symptom.assert_is_in(&response.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn log_warnings_match_the_guide() {
    for symptom in symptoms("## Warnings in the log") {
        symptom.assert_is_in(&provoke_warning(&symptom.text).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn command_line_errors_match_the_guide() {
    for symptom in symptoms("## Messages of the command line") {
        let ended = provoke_client_error(&symptom.text).await;
        let status = ended.status.unwrap().to_string();
        assert!(
            symptom.statuses.contains(&status),
            "{}: {ended:?}",
            symptom.text
        );
        symptom.assert_is_in(&ended.errors);
    }
}

/// A row of a table.
struct Symptom {
    /// The statuses before the symptom, if the table has them.
    statuses: Vec<String>,
    /// The symptom, with `…` for omitted text.
    text: String,
}

impl Symptom {
    fn assert_is_in(&self, seen: &str) {
        assert!(has_line_as_shown(&self.text, seen), "{}: {seen}", self.text);
    }
}

/// Returns the rows of the table below a heading.
fn symptoms(heading: &str) -> Vec<Symptom> {
    let guide =
        fs::read_to_string(workspace().join("host/docs/operating/troubleshooting.md")).unwrap();
    let lines = guide.lines().skip_while(|line| *line != heading).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('#'));
    let symptoms: Vec<_> = lines.filter_map(symptom).collect();
    assert!(
        !symptoms.is_empty(),
        "there are no symptoms below {heading}"
    );
    symptoms
}

fn symptom(line: &str) -> Option<Symptom> {
    let cells = line.strip_prefix("| ")?.split(" | ");
    let mut statuses = Vec::new();
    for cell in cells {
        if let Some(text) = cell
            .strip_prefix('`')
            .and_then(|text| text.strip_suffix('`'))
        {
            let text = text.to_owned();
            return Some(Symptom { statuses, text });
        }
        statuses = cell.split(", ").map(str::to_owned).collect();
    }
    None
}

/// Provokes an error at start-up, and returns it.
async fn provoke_start_error(text: &str) -> String {
    let plain = Options::default();
    match text {
        "unknown setting" => checked("connections_max", "conections_max"),
        "there is no folder …" => {
            checked("lib/keywright/keywright.db", "lib/absent/keywright.db")
        }
        "does not match server.tls.certificate" => {
            checked("tls/server-key.pem", "tls/other-signing-key.pem")
        }
        "reading the secret file …: No such file or directory" => checked(
            "keywright.service/encryption.key",
            "keywright.service/absent.key",
        ),
        "unknown environment variable …" => {
            Server::refusal(&plain.environment("KEYWRIGHT_PORT", "tcp://127.0.0.1:8844"))
        }
        "no encryption key is active; set active = true on exactly one key" => {
            Server::refusal(&plain.encryption(&key_section("")))
        }
        "the active encryption key has no record in the database, and encryption.key_creation_enabled is false" =>
        {
            let settings = "[encryption]\nkey_creation_enabled = false\nkey_wait_seconds_max = 1\n";
            let key = key_section("active = true");
            Server::refusal(&plain.encryption(&format!("{settings}{key}")))
        }
        "there is no socket at …; start the key management plugin" => {
            with_kms_socket("absent.sock")
        }
        "the key management plugin at … could not …" => {
            let folder = TempDir::new().unwrap();
            let socket = folder.path().join("kms.sock");
            drop(UnixListener::bind(&socket).unwrap());
            with_kms_socket(&socket.display().to_string())
        }
        "Address already in use" => {
            let taken = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = taken.local_addr().unwrap();
            Server::refusal(&plain.extra(&format!("[management]\nlisten = \"{address}\"")))
        }
        "could not open the database file …" => {
            let folder = TempDir::new().unwrap();
            let file = folder.path().join("garbage.db");
            fs::write(&file, "this is not a database").unwrap();
            Server::refusal(&plain.storage(&format!("file = \"{}\"", file.display())))
        }
        "is missing or empty, though a server has used it before" => with_missing_database(),
        "development_identity_provider: can't be served on …" => {
            Server::refusal(&plain.environment("KEYWRIGHT_SERVER__LISTEN", "0.0.0.0:0"))
        }
        "the cache directory … must have the mode 0700" => {
            let folder = TempDir::new().unwrap();
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
            let path = folder.path().display().to_string();
            Server::refusal(&plain.environment("KEYWRIGHT_PLUGINS__CACHE_DIRECTORY", &path))
        }
        "the file does not exist; build the component or correct the path" => {
            with_password_plugin("component = \"/absent/password.wasm\"")
        }
        "the reference has no digest, and a tag can be moved to another manifest" => {
            with_password_plugin("component = \"oci://127.0.0.1:1/password:1.0.0\"")
        }
        "the registry does not respond" => {
            let digest = "0".repeat(64);
            let component = format!("oci://127.0.0.1:1/password@sha256:{digest}");
            with_password_plugin(&format!("component = \"{component}\""))
        }
        "the component is not signed: …" => with_signed_password_plugin(None),
        "its signature was made with another key than the configured one" => {
            with_signed_password_plugin(Some(SIGNATURE_OF_ANOTHER))
        }
        "its SHA-256 is …, but … is configured" => with_password_plugin(&format!(
            "component = \"{}\"\ngrants = [\"random\"]\nsha256 = \"{}\"",
            component("password").display(),
            "0".repeat(64),
        )),
        "it imports …, which is not granted" => {
            let component = component("password");
            with_password_plugin(&format!("component = \"{}\"", component.display()))
        }
        "its values are not random enough: …" => {
            with_guest("careless", "settings = { breaks = \"constant\" }")
        }
        "it uses no random numbers" => with_guest("hostile", ""),
        "no configured encryption key can decrypt any of the stored values, which need the keys …" => {
            with_another_key().await
        }
        "use a newer version of the server" => on_a_newer_schema().await,
        text => nothing_provokes(text),
    }
}

/// Returns the output of `check-config` for the example with one change.
fn checked(from: &str, to: &str) -> String {
    let layout = Layout::new();
    let example = layout.example();
    assert!(example.contains(from), "{from}");
    layout.write_configuration(&example.replacen(from, to, 1));
    layout.check(&["--no-plugins"], &[]).expect(1).output
}

/// Returns the error of a server with this socket of a key management plugin.
fn with_kms_socket(socket: &str) -> String {
    let key = "[[encryption.keys]]\nprovider = \"kms\"\nactive = true\n";
    Server::refusal(&Options::default().encryption(&format!("{key}socket = \"{socket}\"\n")))
}

fn key_section(lines: &str) -> String {
    let file = key_file("encryption.key");
    let file = file.display();
    format!("[[encryption.keys]]\nprovider = \"raw\"\nfile = \"{file}\"\n{lines}\n")
}

/// Returns the error of a server whose plugin must have a minisign signature, with this file next to it.
fn with_signed_password_plugin(signature: Option<&str>) -> String {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("password.wasm");
    fs::copy(component("password"), &file).unwrap();
    if let Some(signature) = signature {
        fs::write(folder.path().join("password.wasm.minisig"), signature).unwrap();
    }
    with_password_plugin(&format!(
        "component = \"{}\"\ngrants = [\"random\"]\nsignature = {{ minisign_public_key = \"{KEY}\" }}",
        file.display(),
    ))
}

fn with_password_plugin(section: &str) -> String {
    Server::refusal(&Options::default().generator("password", section))
}

/// Configures a test guest as the generator of its type.
fn with_guest(name: &str, more: &str) -> String {
    let component = component(name);
    let component = component.display();
    let section =
        format!("component = \"{component}\"\ngrants = [\"random\", \"signing\"]\n{more}");
    Server::refusal(
        &Options::default()
            .without_plugins()
            .generator(name, &section),
    )
}

async fn with_another_key() -> String {
    let server = Server::start_with(&Options::default().without_plugins()).await;
    server.stored("/a", "value", serde_json::json!("v")).await;
    let directory = server.stop().await;
    let file = directory.path().join("keywright.toml");
    let configuration = fs::read_to_string(&file).unwrap();
    let own = key_file("encryption.key").display().to_string();
    let other = directory.path().join("other.key");
    fs::write(&other, "b3RoZXIga2V5LCBvdGhlciBrZXksIG90aGVyIGtleSE=").unwrap();
    fs::write(
        &file,
        configuration.replace(&own, &other.display().to_string()),
    )
    .unwrap();
    start_error(directory.path())
}

async fn on_a_newer_schema() -> String {
    let server = Server::start_with(&Options::default().without_plugins()).await;
    let directory = server.stop().await;
    run_sql(
        directory.path(),
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         values (8001, 'later', true, '', 0), (8002, 'drop salt needs 8001', true, '', 0)",
    )
    .await;
    start_error(directory.path())
}

/// Returns the error of a server that does not start in this folder.
fn start_error(directory: &std::path::Path) -> String {
    let ended = run_command(directory, "serve").expect(1);
    ended.output + &ended.errors
}

/// A minisign public key.
const KEY: &str = "RWQjnseflmHS0zxBY7eWI46R658f4jDlSgPh/r6We2nF6K+Vmaq6c1Pq";

/// A signature with another key.
const SIGNATURE_OF_ANOTHER: &str = "\
untrusted comment: signature from minisign secret key\n\
RUQ9twG3hyx0qsJQ030E2cqmgi7AB6uertGWimhGixgfFvqTjE4bZSEdupH5Qjac+8II7dPtQYpoZyO2kxiHxqPWS0gRkH85PwM=\n\
trusted comment: timestamp:1795337464	file:g	hashed\n\
BaIBDj4m6ynBUQO4+K89ryxpF/u/QspLotmxwCXLkoVIj0FiDaQHR3ZC3pTx8HicYEydm6u5n+Qf8sO0BkOjAQ==\n";

/// Returns the error of a server whose database is missing although its marker exists.
fn with_missing_database() -> String {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("moved.db");
    fs::write(file.with_extension("db.created"), "").unwrap();
    let storage = format!("file = \"{}\"", file.display());
    Server::refusal(&Options::default().storage(&storage))
}

/// Provokes a warning, and returns the server's log.
async fn provoke_warning(text: &str) -> String {
    let plain = Options::default().without_plugins();
    let options = match text {
        "could not reload the TLS files: new connections use the previous ones" => {
            return after_removing_the_cas().await;
        }
        "could not reload the plugins: calls use the previous plugins" => {
            let server = Server::start_with(&plain).await;
            let absent = plain.generator("absent", "component = \"nowhere.wasm\"");
            return server.reload_plugins(&absent).await;
        }
        "could not fetch the identity provider's keys" => {
            plain.identity_provider("https://127.0.0.1:1/uaa")
        }
        "ignored an encryption key: it is not active, and no server has used it as the active key" => {
            let file = key_file("encryption.key");
            let own = format!("provider = \"raw\"\nfile = \"{}\"\nactive = true", file.display());
            let other = "provider = \"raw\"\nenvironment = \"OTHER_KEY\"";
            plain
                .encryption(&format!("[[encryption.keys]]\n{own}\n[[encryption.keys]]\n{other}\n"))
                .environment("OTHER_KEY", &STANDARD.encode([1; 32]))
        }
        "granted a configured permission to an actor that matches no caller" => plain.extra(
            "[[authorization.permissions]]\npath = \"/*\"\nactors = [\"admin\"]\noperations = [\"read\"]\n",
        ),
        "permissions are not enforced: every authenticated caller may do everything" => {
            plain.without_enforcement()
        }
        "the audit trail is off: reads and changes are not recorded" => {
            plain.audit("[audit]\nsink = \"off\"\n")
        }
        "an encryption password has fewer than … characters: anyone with a copy of the database could guess it" => {
            let key = "provider = \"password\"\nenvironment = \"PASSWORD\"\nactive = true";
            plain
                .encryption(&format!("[[encryption.keys]]\n{key}\n"))
                .environment("PASSWORD", "short")
        }
        "stored an RSA key that is shorter than 2048 bits" => return after_a_short_key().await,
        text => nothing_provokes(text),
    };
    let server = Server::start_with(&options).await;
    let (words, _) = text.split_once('…').unwrap_or((text, ""));
    server.until_logged(words).await;
    server.log()
}

async fn after_a_short_key() -> String {
    let server = Server::start().await;
    let value = json!({"certificate": RSA_1024});
    server.stored("/short", "certificate", value).await;
    server.log()
}

async fn after_removing_the_cas() -> String {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("clients.pem");
    fs::copy(key_file("ca.pem"), &file).unwrap();
    let settings = format!("client_authorities = \"{}\"", file.display());
    let options = Options::default().without_plugins().tls_settings(&settings);
    let server = Server::start_with(&options).await;
    fs::remove_file(&file).unwrap();
    server.reload_tls_files().await
}

/// A certificate with an RSA key of 1024 bits.
const RSA_1024: &str = include_str!("../../../plugins/certificate/tests/keys/rsa_1024.pem");

async fn provoke_client_error(text: &str) -> Commanded {
    let mut options = Options::default();
    if text.starts_with("the identity provider is not available") {
        options = options.identity_provider("https://127.0.0.1:1");
    }
    let provider = Stub::start(|request, _, url| {
        let body = match request.line.as_str() {
            "POST /device" => json!({
                "device_code": "d", "user_code": "u", "verification_uri": url, "expires_in": 0,
            }),
            _ => json!({
                "issuer": url, "token_endpoint": url, "access_token": "refused",
                "device_authorization_endpoint": format!("{url}/device"),
            }),
        };
        Reply::new(200, &body.to_string())
    });
    let is_login = text.starts_with("logged in, but") || text.starts_with("the login was not");
    if is_login {
        options = options.identity_provider(&provider.url());
    }
    if text.starts_with("the identity provider's response can't be used") {
        options = options.identity_provider(&format!("{}/another", provider.url()));
    }
    let server = Server::start_with(&options).await;
    let shell = match text {
        "no server is set; log in, or set --server or KEYWRIGHT_CLIENT_SERVER" => Shell::new(),
        "unknown environment variable …" => {
            Shell::of(&server).variable("KEYWRIGHT_CLIENT_SERVR", "https://keywright.example")
        }
        "… is malformed; log in again" => {
            let shell = Shell::of(&server);
            let folder = shell.file(".config/keywright");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("session.json"), "{").unwrap();
            shell
        }
        "… must contain an access token: …" => {
            Shell::at(&server).variable("KEYWRIGHT_TOKEN", "two words")
        }
        "the identity provider does not support this operation: its discovery document has no …"
        | "the login was not completed in time; log in again" => {
            let shell = Shell::at(&server);
            let login = move || shell.run("login --device");
            return tokio::task::spawn_blocking(login).await.unwrap();
        }
        "logged in, but the server refuses the token: …" => {
            let shell = Shell::at(&server);
            let login = move || shell.run_with("login --client-id ci", "secret");
            return tokio::task::spawn_blocking(login).await.unwrap();
        }
        "the credential does not exist or the caller may not access it"
        | "the identity provider's response can't be used: …" => Shell::of(&server),
        "the token in … has expired; replace it" => {
            let mint = Mint::of(&server).await;
            let mut claims = mint.user_claims("3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b10");
            claims["exp"] = json!(1_000_000_000);
            Shell::at(&server).variable("KEYWRIGHT_TOKEN", &mint.token(&claims))
        }
        "you are not logged in to this server" => Shell::at(&server),
        "the identity provider refuses the login: …" => {
            Shell::of(&server).variable("KEYWRIGHT_CLIENT_SECRET", "wrong")
        }
        "the identity provider is not available: …" => {
            Shell::of(&server).variable("KEYWRIGHT_CLIENT_RETRIES", "0")
        }
        "could not reach …" => Shell::of(&server)
            .variable("KEYWRIGHT_CLIENT_SERVER", "https://127.0.0.1:1")
            .variable("KEYWRIGHT_CLIENT_RETRIES", "0"),
        text => nothing_provokes(text),
    };
    tokio::task::spawn_blocking(move || shell.run("get /absent"))
        .await
        .unwrap()
}
