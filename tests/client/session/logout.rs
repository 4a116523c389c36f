//! `keywright logout`.

use keywright_harness::{ReservedPort, Server, Shell, mint::encode};
use serde_json::json;

use super::{
    keep, keep_text,
    openid::{asked_at, openid, shell},
    provider, session,
};
use crate::stub::{Asked, Reply, Stub};

#[tokio::test]
async fn a_logout_revokes_the_login_at_the_identity_provider() {
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
    assert!(run.errors.contains("not logged in"), "{run:?}");
}

#[tokio::test]
async fn a_logout_reports_the_server_without_a_prompt() {
    let server = Server::start().await;
    let shell = Shell::at(&server);
    let login = ["login", "--username", "developer"];
    shell.run_with(&login, "developer-password").expect(0);
    let shell = shell.variable("NO_COLOR", "1");
    let message = format!("logged out of {}\n", server.base_url());
    assert_eq!(shell.on_terminal(&["logout"]).end(), (Some(0), message));
    assert!(session(&shell).is_none());
    shell.run(&["find"]).expect(5);
    let none = "not logged in\n".to_owned();
    assert_eq!(shell.on_terminal(&["logout"]).end(), (Some(0), none));
}

#[test]
fn the_session_is_deleted_even_if_the_provider_is_down() {
    // The port is reserved, so no server listens there.
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
fn an_expired_token_is_renewed_once_for_the_logout() {
    for (refresh_token, renewed_id, status, expected) in [
        (
            Some("refresh"),
            Some("fresh"),
            0,
            &["DELETE old", "POST", "DELETE fresh"][..],
        ),
        // The client renews the token only once.
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
async fn a_malformed_session_prevents_neither_logout_nor_login() {
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
        assert!(run.errors.contains("could not be revoked"), "{run:?}");
        assert!(!shell.file(".config/keywright/session.json").exists());
        keep_text(&shell, text);
        let login = ["login", "--username", "developer"];
        shell.run_with(&login, "developer-password").expect(0);
        shell.run(&["find"]).expect(0);
    }
}

#[test]
fn a_clients_login_is_revoked_only_with_its_secret() {
    for (id, status, revocation, words) in [
        (None, 200, None, "stays valid until it expires"),
        (Some("other"), 200, None, "stays valid until it expires"),
        (
            Some("ci"),
            200,
            Some("token=access&token_type_hint=access_token"),
            "logged out of",
        ),
        (
            Some("ci"),
            400,
            Some("token=access&token_type_hint=access_token"),
            "refuses the revocation",
        ),
    ] {
        let stub = Stub::start(move |asked, _, url| match asked.line.as_str() {
            "POST /token" => Reply::new(200, r#"{"access_token":"access"}"#),
            "POST /revoke" => Reply::new(status, "{}"),
            _ => openid(asked, url, &json!({})).unwrap_or_else(|| Reply::new(404, "")),
        });
        let shell = shell(&stub);
        let login = ["login", "--client-id", "ci"];
        shell.run_with(&login, "secret").expect(0);
        let shell = match id {
            Some(id) => shell
                .variable("KEYWRIGHT_CLIENT_ID", id)
                .variable("KEYWRIGHT_CLIENT_SECRET", "secret"),
            None => shell,
        };
        let run = shell.run(&["logout"]);
        let run = run.expect(if status == 200 { 0 } else { 3 });
        assert!(run.errors.contains(words), "{run:?}");
        assert!(session(&shell).is_none());
        let asked = asked_at(&stub, "POST /revoke");
        assert_eq!(
            asked.first().map(|asked| asked.body.as_str()),
            revocation,
            "{id:?}"
        );
        // ci:secret in base64, in the lower case of heads.
        let with_secret = |asked: &Asked| asked.head.contains("basic y2k6c2vjcmv0");
        assert!(asked.iter().all(with_secret), "{asked:?}");
    }
}
