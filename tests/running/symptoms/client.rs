//! Error messages of the command line.

use std::fs;

use keywright_harness::{Commanded, Options, Reply, Server, Shell, Stub, mint::Mint};
use serde_json::json;

use super::nothing_provokes;

/// Provokes an error message.
pub(super) async fn provoke(text: &str) -> Commanded {
    let mut options = Options::default();
    if text.starts_with("the identity provider is not available") {
        options = options.identity_provider("https://127.0.0.1:1");
    }
    let provider = Stub::start(|asked, _, url| {
        let body = match asked.line.as_str() {
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
        "no server; log in, or set --server or KEYWRIGHT_CLIENT_SERVER" => Shell::new(),
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
        "the identity provider does not support this: its discovery document has no …"
        | "the login was not completed in time; log in again" => {
            let shell = Shell::at(&server);
            let login = move || shell.run(&["login", "--device"]);
            return tokio::task::spawn_blocking(login).await.unwrap();
        }
        "logged in, but the server refuses the token: …" => {
            let shell = Shell::at(&server);
            let login = move || shell.run_with(&["login", "--client-id", "ci"], "secret");
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
        "… can't be reached: …" => Shell::of(&server)
            .variable("KEYWRIGHT_CLIENT_SERVER", "https://127.0.0.1:1")
            .variable("KEYWRIGHT_CLIENT_RETRIES", "0"),
        text => nothing_provokes(text),
    };
    tokio::task::spawn_blocking(move || shell.run(&["get", "/absent"]))
        .await
        .unwrap()
}
