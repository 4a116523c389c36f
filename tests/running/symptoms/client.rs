//! What the command line ends with.

use std::fs;

use keywright_harness::{Commanded, Options, Server, Shell};

use super::nothing_provokes;

/// Has the program end in the words of this text.
pub(super) async fn provoke(text: &str) -> Commanded {
    let mut options = Options::default();
    if text.starts_with("the identity provider is not available") {
        options = options.identity_provider("https://127.0.0.1:1");
    }
    let server = Server::start_with(&options).await;
    let shell = match text {
        "there is no server: log in, or name it by --server or KEYWRIGHT_CLIENT_SERVER" => {
            Shell::new()
        }
        "the variable … is none of the client's" => {
            Shell::of(&server).variable("KEYWRIGHT_CLIENT_SERVR", "https://keywright.example")
        }
        "… is not what … writes; log in again" => {
            let shell = Shell::of(&server);
            let folder = shell.file(".config/keywright");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("session.json"), "{").unwrap();
            shell
        }
        "the credential does not exist or the caller may not access it" => Shell::of(&server),
        "there is no login for this server" => Shell::at(&server),
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
