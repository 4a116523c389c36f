//! Identity providers that are not available.

use keywright_harness::Shell;
use serde_json::json;

use super::{EXPIRED, keep, provider, session};
use crate::stub::{Reply, Stub, versions};

const LOGIN: [&str; 3] = ["login", "--client-id", "app"];

/// A shell that knows the server, and neither has a login nor can make one.
fn anonymous(stub: &Stub) -> Shell {
    let shell = stub.shell().without("KEYWRIGHT_CLIENT_TOKEN");
    shell.variable("KEYWRIGHT_CLIENT_RETRIES", "1")
}

#[test]
fn a_provider_that_fails_is_asked_again_and_ends_with_status_6() {
    for (failing, status) in [
        ("GET /uaa/info", 503),
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
            assert_eq!(run.errors.matches("trying again").count(), 1, "{run:?}");
        }
        let asked = stub.lines().into_iter().filter(|line| line == failing);
        assert_eq!(asked.count(), 4, "twice by each of two runs");
    }
}

#[test]
fn a_provider_that_is_back_soon_is_waited_for() {
    let stub = Stub::start(|asked, before, url| {
        let is_away = asked.line.contains(" /uaa") && before == 0;
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
fn a_provider_that_nobody_can_connect_to_is_tried_again_and_ends_with_status_6() {
    let stub = Stub::start(|_, _, _| {
        Reply::new(
            200,
            &json!({"auth-server": {"url": "https://127.0.0.1:1/uaa"}}).to_string(),
        )
    });
    let run = anonymous(&stub).run_with(&LOGIN, "secret").expect(6);
    assert!(run.errors.contains("trying again"), "{run:?}");
    assert!(run.errors.contains("https://127.0.0.1:1/uaa"), "{run:?}");
}

#[test]
fn a_login_that_can_t_be_renewed_now_has_not_expired() {
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
fn a_provider_that_refuses_is_asked_once() {
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
