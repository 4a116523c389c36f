//! The types value and password.

use keywright_harness::Server;
use serde_json::json;

#[tokio::test]
async fn any_text_is_kept_unchanged() {
    let server = Server::start().await;
    for text in [
        " ",
        "\n",
        "\u{0}\u{1f}\u{7f}",
        "\"quoted\" \\ and 'single'",
        "{\"not\": \"parsed\"}",
        "пароль 密码 🔑",
        "e\u{301} is not \u{e9}",
        "\u{feff}\u{202e}",
        "null",
        "1",
    ] {
        for credential_type in ["value", "password"] {
            let name = format!("/{credential_type}");
            let answer = server
                .set(&name, credential_type, json!(text))
                .await
                .expect(200)
                .json();
            assert_eq!(answer["value"], text);
            assert_eq!(server.versions(&name).await[0]["value"], text);
        }
    }
}

#[tokio::test]
async fn the_empty_text_is_400() {
    let server = Server::start().await;
    for credential_type in ["value", "password"] {
        server
            .set("/a", credential_type, json!(""))
            .await
            .expect(400)
            .error();
    }
}
