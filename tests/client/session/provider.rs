//! Unavailable identity providers.

use std::fs;

use keywright_client::{Client, Error, Grant, Secret};
use keywright_harness::{Shell, key_file};
use serde_json::json;
use tokio::task::JoinSet;

use super::{EXPIRED, keep, provider, session};
use crate::{
    given,
    stub::{Reply, Stub, VERSION, listing, password_for, versions},
};

const LOGIN: [&str; 3] = ["login", "--client-id", "app"];

/// A shell without a login or credentials.
fn anonymous(stub: &Stub) -> Shell {
    let shell = stub.shell().without("KEYWRIGHT_CLIENT_TOKEN");
    shell.variable("KEYWRIGHT_CLIENT_RETRIES", "1")
}

#[test]
fn a_failing_provider_is_retried_and_has_status_6() {
    for (failing, status) in [
        ("GET /uaa/.well-known/openid-configuration", 503),
        ("POST /uaa/oauth/token", 500),
        ("POST /uaa/oauth/token", 502),
        ("POST /uaa/oauth/token", 503),
    ] {
        let stub = Stub::start(move |asked, before, url| {
            if asked.line == failing {
                return Reply::new(status, "{}").header("retry-after", "0");
            }
            provider(asked, before, url).unwrap_or_else(|| Reply::new(200, &versions()))
        });
        let with_id = anonymous(&stub)
            .variable("KEYWRIGHT_CLIENT_ID", "app")
            .variable("KEYWRIGHT_CLIENT_SECRET", "secret");
        for run in [
            anonymous(&stub).run_with(&LOGIN, "secret"),
            with_id.run(&["get", "/a"]),
        ] {
            let run = run.expect(6);
            assert!(
                run.errors.contains("identity provider is not available"),
                "{run:?}"
            );
            assert_eq!(run.errors.matches("retrying").count(), 1, "{run:?}");
        }
        let asked = stub.lines().into_iter().filter(|line| line == failing);
        assert_eq!(asked.count(), 4, "twice by each of two runs");
    }
}

#[test]
fn a_briefly_unavailable_provider_is_retried() {
    let stub = Stub::start(|asked, before, url| {
        let is_away = asked.line.contains("/uaa") && before == 0;
        if is_away {
            return Reply::new(503, "").header("retry-after", "0");
        }
        provider(asked, before, url).unwrap_or_else(|| Reply::new(200, &versions()))
    });
    let shell = anonymous(&stub);
    shell.run_with(&LOGIN, "secret").expect(0);
    shell.run(&["get", "/a"]).expect(0);
}

#[test]
fn an_unreachable_provider_is_retried_and_has_status_6() {
    let stub = Stub::start(|_, _, _| {
        Reply::new(
            200,
            &json!({"auth-server": {"url": "https://127.0.0.1:1/uaa"}}).to_string(),
        )
    });
    let run = anonymous(&stub).run_with(&LOGIN, "secret").expect(6);
    assert!(run.errors.contains("retrying"), "{run:?}");
    assert!(run.errors.contains("https://127.0.0.1:1/uaa"), "{run:?}");
}

#[test]
fn a_failed_renewal_keeps_the_session() {
    let stub = Stub::start(|asked, before, url| {
        if asked.line.starts_with("POST") {
            return Reply::new(503, "").header("retry-after", "0");
        }
        provider(asked, before, url).unwrap_or_else(|| Reply::new(401, EXPIRED))
    });
    let shell = Shell::new().variable("KEYWRIGHT_CLIENT_RETRIES", "0");
    let kept = json!({
        "server": stub.url(), "ca_cert": [shell.file("ca.pem")],
        "access_token": "expired", "refresh_token": "refresh",
    });
    keep(&shell, &kept);
    let run = shell.run(&["get", "/a"]).expect(6);
    assert!(!run.errors.contains("has expired"), "{run:?}");
    assert_eq!(session(&shell), Some(kept));
}

#[test]
fn bulk_verbs_stop_with_status_6_if_the_provider_is_down() {
    for (arguments, answered, not_tried) in [
        (
            &["import", "file", "--parallel", "1"][..],
            "PUT",
            "\"set\": 1,\n  \"unchanged\": 0,\n  \"failed\": 1,\n  \"not_tried\": 2,",
        ),
        (
            &["delete", "--path", "/a", "--yes"],
            "DELETE",
            "deleted: 1, failed: 1, not attempted: 2",
        ),
        (
            &[
                "export",
                "--path",
                "/a",
                "--keep-going",
                "--parallel",
                "1",
                "--file",
                "export",
            ],
            "GET",
            "can't read /a/2; exported nothing",
        ),
    ] {
        // The first token expires while the provider is unavailable.
        let stub = Stub::start(|asked, before, url| {
            if asked.line.starts_with("POST") && before > 0 {
                return Reply::new(503, "{}").header("retry-after", "0");
            }
            provider(asked, before, url).unwrap_or_else(|| match asked.line.as_str() {
                LISTING => Reply::new(200, &listing(NAMES)),
                line if !line.contains("%2F1") && !asked.body.contains("/a/1") => {
                    Reply::new(401, EXPIRED)
                }
                line if line.starts_with("PUT") => Reply::new(200, VERSION),
                line if line.starts_with("DELETE") => Reply::new(204, ""),
                _ => Reply::new(200, &password_for(asked, "secret")),
            })
        });
        let shell = anonymous(&stub)
            .variable("KEYWRIGHT_CLIENT_ID", "app")
            .variable("KEYWRIGHT_CLIENT_SECRET", "secret");
        let entry = |name: &str| format!("- {{name: {name}, type: value, value: v}}\n");
        let file = format!("credentials:\n{}", NAMES.map(entry).concat());
        given::file(&shell, "file", &file);
        let run = shell.run(arguments).expect(6);
        let output = [&*run.errors, &*run.output].concat();
        assert!(output.contains(not_tried), "{run:?}");
        assert!(!shell.file("export").exists());
        let lines = stub.lines();
        let count = |begins: &str| {
            let lines = lines.iter().filter(|line| line.starts_with(begins));
            lines.filter(|line| !line.contains("path=")).count()
        };
        assert_eq!(count("POST"), 3, "once, and then twice in vain: {lines:?}");
        assert_eq!(count(&format!("{answered} /api")), 2, "{lines:?}");
    }
}

#[tokio::test]
async fn concurrent_requests_share_the_error_of_one_token_request() {
    let stub = Stub::start(|asked, before, url| {
        if asked.line.starts_with("POST") {
            return Reply::new(503, "{}").header("retry-after", "0");
        }
        provider(asked, before, url).unwrap_or_else(|| Reply::new(200, &versions()))
    });
    let client = Client::builder(&stub.url())
        .trusting_only(fs::read(key_file("ca.pem")).unwrap())
        .grant(Grant::ClientCredentials {
            client_id: "app".to_owned(),
            client_secret: Secret::new("secret".to_owned()),
        })
        .retries_max(1)
        .build()
        .unwrap();
    for asked_before in [0, 2] {
        let mut requests = JoinSet::new();
        for _ in 0..8 {
            let client = client.clone();
            requests.spawn(async move { client.current_version("/a").await.unwrap_err() });
        }
        for error in requests.join_all().await {
            assert!(matches!(error, Error::ProviderUnavailable(_)), "{error}");
        }
        let lines = stub.lines();
        let asked = lines.iter().filter(|line| line.starts_with("POST"));
        assert_eq!(asked.count(), asked_before + 2, "{lines:?}");
    }
}

#[test]
fn a_refused_token_request_is_not_retried() {
    for status in [400, 401, 403, 404, 429] {
        let stub = Stub::start(move |asked, before, url| {
            if asked.line.starts_with("POST") {
                return Reply::new(status, "{\"error\":\"invalid_client\"}");
            }
            provider(asked, before, url).unwrap_or_else(|| Reply::new(500, ""))
        });
        let run = anonymous(&stub).run_with(&LOGIN, "secret").expect(5);
        assert!(run.errors.contains("invalid_client"), "{run:?}");
        let lines = stub.lines();
        let asked = lines.iter().filter(|line| line.starts_with("POST"));
        assert_eq!(asked.count(), 1, "{status}");
    }
}

/// The credentials of the server.
const NAMES: [&str; 4] = ["/a/1", "/a/2", "/a/3", "/a/4"];

const LISTING: &str = "GET /api/v1/data?path=%2Fa";
