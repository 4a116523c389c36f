//! `keywright logout`.

use keywright_harness::{ReservedPort, Server, Shell, mint::encode};
use serde_json::json;

use super::{keep, keep_text, provider, session};
use crate::stub::{Reply, Stub};

#[tokio::test]
async fn it_ends_the_login_at_the_identity_provider_too() {
    let server = Server::start().await;
    let shell = Shell::at(&server);
    let login = ["login", "--username", "developer"];
    shell.run_with(&login, "developer-password").expect(0);
    let kept = session(&shell).unwrap();
    let refresh_token = kept["refresh_token"].as_str().unwrap().to_owned();
    shell.run(&["logout"]).expect(0);
    assert!(session(&shell).is_none());
    shell.run(&["find"]).expect(5);
    let again = ["login", "--refresh-token"];
    shell.run_with(&again, &refresh_token).expect(5);
    let run = shell.run(&["logout"]).expect(0);
    assert!(run.errors.contains("no login"), "{run:?}");
}

#[tokio::test]
async fn on_a_terminal_it_asks_nothing_and_says_where_the_login_was() {
    let server = Server::start().await;
    let shell = Shell::at(&server);
    let login = ["login", "--username", "developer"];
    shell.run_with(&login, "developer-password").expect(0);
    let shell = shell.variable("NO_COLOR", "1");
    let told = format!("logged out of {}\n", server.base_url());
    assert_eq!(shell.on_terminal(&["logout"]).end(), (Some(0), told));
    assert!(session(&shell).is_none());
    shell.run(&["find"]).expect(5);
    let none = "there is no login to be ended\n".to_owned();
    assert_eq!(shell.on_terminal(&["logout"]).end(), (Some(0), none));
}

#[test]
fn where_the_provider_is_away_the_login_is_forgotten_all_the_same() {
    // Nobody else gets it, and so nobody answers.
    let port = ReservedPort::any();
    let shell = Shell::new();
    let kept = json!({
        "server": format!("https://127.0.0.1:{}", port.number()), "ca_cert": [shell.file("ca.pem")],
        "access_token": token("old"), "refresh_token": "refresh",
    });
    keep(&shell, &kept);
    let run = shell.run(&["logout"]).expect(3);
    assert!(run.errors.contains("can't be reached"), "{run:?}");
    assert!(session(&shell).is_none());
}

/// An access token with an id.
fn token(id: &str) -> String {
    format!("e30.{}.c2ln", encode(&json!({"jti": id})))
}

#[test]
fn an_access_token_that_has_expired_is_renewed_once_to_end_the_login_by() {
    for (refresh_token, renewed_id, status, expected) in [
        (
            Some("refresh"),
            Some("fresh"),
            0,
            &["DELETE old", "POST", "DELETE fresh"][..],
        ),
        // A provider that does not take the fresh one either is not asked a third time.
        (
            Some("refresh"),
            Some("old"),
            3,
            &["DELETE old", "POST", "DELETE old"],
        ),
        (Some("refresh"), None, 3, &["DELETE old", "POST"]),
        (None, None, 3, &["DELETE old"]),
    ] {
        let stub = Stub::start(move |asked, before, url| match asked.line.as_str() {
            "DELETE /uaa/oauth/token/revoke/fresh" => Reply::new(200, ""),
            "DELETE /uaa/oauth/token/revoke/old" => {
                Reply::new(401, "{\"error\":\"invalid_token\"}")
            }
            "POST /uaa/oauth/token" => match renewed_id {
                Some(id) => Reply::new(200, &json!({"access_token": token(id)}).to_string()),
                None => Reply::new(400, "{\"error\":\"invalid_grant\"}"),
            },
            _ => provider(asked, before, url).unwrap(),
        });
        let shell = Shell::new();
        let mut kept = json!({
            "server": stub.url(), "ca_cert": [shell.file("ca.pem")], "access_token": token("old"),
        });
        if let Some(refresh_token) = refresh_token {
            kept["refresh_token"] = json!(refresh_token);
        }
        keep(&shell, &kept);
        shell.run(&["logout"]).expect(status);
        assert!(session(&shell).is_none());
        let asked = stub.asked().into_iter().filter_map(|asked| {
            let (method, path) = asked.line.split_once(' ').unwrap();
            match method {
                "DELETE" => {
                    let (_, id) = path.rsplit_once('/').unwrap();
                    assert!(asked.head.contains(&token(id).to_lowercase()));
                    Some(format!("DELETE {id}"))
                }
                "POST" => {
                    assert!(asked.body.contains("refresh_token=refresh"), "{asked:?}");
                    Some(method.to_owned())
                }
                _ => None,
            }
        });
        assert_eq!(asked.collect::<Vec<_>>(), expected);
    }
}

#[tokio::test]
async fn what_is_no_login_stops_neither_who_logs_out_nor_who_logs_in() {
    let server = Server::start().await;
    for text in [
        &b""[..],
        b"{",
        b"{\"server\": \"hunter2\"}",
        b"hunter2 \xff",
    ] {
        let shell = Shell::at(&server);
        keep_text(&shell, text);
        let run = shell.run(&["find"]).expect(1);
        assert!(run.errors.contains("log in again"), "{run:?}");
        assert!(!run.errors.contains("hunter2"), "{run:?}");
        let run = shell.run(&["logout"]).expect(3);
        assert!(run.errors.contains("nothing could be ended"), "{run:?}");
        assert!(!shell.file(".config/keywright/session.json").exists());
        keep_text(&shell, text);
        let login = ["login", "--username", "developer"];
        shell.run_with(&login, "developer-password").expect(0);
        shell.run(&["find"]).expect(0);
    }
}
