//! Renewal of expired access tokens, once per request.

use std::fs;

use keywright_client::{Client, Grant, Secret};
use keywright_harness::{Server, Shell, key_file, mint::Mint};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{EXPIRED, keep, provider, session};
use crate::stub::{Reply, Stub, versions};

#[tokio::test]
async fn a_renewed_access_token_is_stored_in_the_session() {
    let server = Server::start().await;
    server.set("/a", "value", json!("v")).await.expect(200);
    let shell = Shell::at(&server);
    let login = ["login", "--username", "developer"];
    shell.run_with(&login, "developer-password").expect(0);
    let mint = Mint::of(&server).await;
    let mut claims = mint.user_claims("3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b10");
    claims["exp"] = json!(1_000_000_000);
    let expired = mint.token(&claims);
    let mut kept = session(&shell).unwrap();
    let refresh_token = kept["refresh_token"].clone();
    kept["access_token"] = json!(expired);
    let file = shell.file(".config/keywright/session.json");
    fs::write(file, kept.to_string()).unwrap();

    assert_eq!(shell.run(&["get", "/a", "--raw"]).expect(0).output, "v");
    let kept = session(&shell).unwrap();
    assert_ne!(kept["access_token"], json!(expired));
    assert_eq!(kept["refresh_token"], refresh_token);
}

#[test]
fn a_renewed_token_does_not_overwrite_a_changed_session() {
    let replacements: [fn(&str) -> Option<Value>; 3] = [
        |_| Some(json!({"server": "https://other.example", "ca_cert": [], "access_token": "x"})),
        |url| Some(json!({"server": url, "ca_cert": [], "access_token": "x"})),
        |_| None,
    ];
    for replacement in replacements {
        let shell = Shell::new();
        let file = shell.file(".config/keywright/session.json");
        let stub = Stub::start(move |asked, before, url| {
            if asked.line.starts_with("POST") {
                match replacement(url) {
                    Some(session) => fs::write(&file, session.to_string()).unwrap(),
                    None => fs::remove_file(&file).unwrap(),
                }
            }
            provider(asked, before, url).unwrap_or_else(|| {
                if asked.head.contains("bearer token-0") {
                    Reply::new(200, &versions())
                } else {
                    Reply::new(401, EXPIRED)
                }
            })
        });
        let session_before = json!({
            "server": stub.url(), "ca_cert": [shell.file("ca.pem")],
            "access_token": "expired", "refresh_token": "refresh",
        });
        keep(&shell, &session_before);
        shell.run(&["get", "/a"]).expect(0);
        assert_eq!(session(&shell), replacement(&stub.url()));
    }
}

#[test]
fn a_client_in_the_environment_renews_with_its_secret() {
    let stub = Stub::start(|asked, before, url| {
        provider(asked, before, url).unwrap_or_else(|| {
            if asked.head.contains("bearer token-1") {
                Reply::new(200, &versions())
            } else {
                Reply::new(401, EXPIRED)
            }
        })
    });
    let shell = stub
        .shell()
        .without("KEYWRIGHT_CLIENT_TOKEN")
        .variable("KEYWRIGHT_CLIENT_ID", "app")
        .variable("KEYWRIGHT_CLIENT_SECRET", "s&cret");
    shell.run(&["get", "/a"]).expect(0);
    let log_in = [
        "GET /info",
        "GET /uaa/.well-known/openid-configuration",
        "GET /.well-known/oauth-authorization-server/uaa",
        "POST /uaa/oauth/token",
    ];
    let get = ["GET /api/v1/data?current=true&name=%2Fa"];
    assert_eq!(stub.lines(), [&log_in[..], &get, &log_in, &get].concat());
    let form = stub.asked()[3].body.clone();
    assert_eq!(
        form,
        "grant_type=client_credentials&response_type=token&client_id=app&client_secret=s%26cret"
    );
}

#[test]
fn a_token_that_expires_at_once_is_renewed_only_once() {
    for status in [401, 400, 403] {
        let stub = Stub::start(move |asked, before, url| {
            provider(asked, before, url).unwrap_or_else(|| Reply::new(status, EXPIRED))
        });
        let shell = stub
            .shell()
            .without("KEYWRIGHT_CLIENT_TOKEN")
            .variable("KEYWRIGHT_CLIENT_ID", "app")
            .variable("KEYWRIGHT_CLIENT_SECRET", "secret");
        let run = shell.run(&["get", "/a"]);
        assert_ne!(run.status, Some(0));
        let lines = stub.lines();
        let gets = lines.iter().filter(|line| line.starts_with("GET /api"));
        assert_eq!(gets.count(), 2, "{lines:?}");
    }
}

#[test]
fn an_expired_token_without_renewal_suggests_a_login() {
    let stub = Stub::start(|_, _, _| Reply::new(401, EXPIRED));
    let shell = stub.shell().without("KEYWRIGHT_CLIENT_TOKEN");
    let kept = json!({
        "server": stub.url(), "ca_cert": [shell.file("ca.pem")], "access_token": "expired",
    });
    keep(&shell, &kept);
    let run = shell.run(&["get", "/a"]).expect(5);
    assert!(run.errors.contains("has expired") && run.errors.contains("keywright login"));
    assert_eq!(stub.lines().len(), 1);
}

#[tokio::test]
async fn concurrent_requests_renew_an_expired_token_once() {
    let stub = Stub::start(|asked, before, url| {
        provider(asked, before, url).unwrap_or_else(|| {
            if asked.head.contains("bearer token-0") {
                Reply::new(401, EXPIRED)
            } else {
                Reply::new(200, &versions())
            }
        })
    });
    let client = Client::builder(&stub.url())
        .trusting_only(fs::read(key_file("ca.pem")).unwrap())
        .grant(Grant::ClientCredentials {
            client_id: "app".to_owned(),
            client_secret: Secret::new("secret".to_owned()),
        })
        .build()
        .unwrap();
    client.log_in().await.unwrap();
    let mut requests = JoinSet::new();
    for _ in 0..8 {
        let client = client.clone();
        requests.spawn(async move { client.current_version("/a").await.is_ok() });
    }
    assert_eq!(requests.join_all().await, [true; 8]);
    let lines = stub.lines();
    let logins = lines.iter().filter(|line| line.starts_with("POST"));
    assert_eq!(logins.count(), 2, "{lines:?}");
}
