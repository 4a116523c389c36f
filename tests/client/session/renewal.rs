//! Renewal of expired access tokens, once per request, and unavailable identity providers.

use std::{fs, thread, time::Duration};

use keywright_client::{Client, Error, Grant, Secret};
use keywright_harness::{Reply, Server, Shell, Stub, Text, key_file, mint::Mint};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{EXPIRED, api, logged_in, provider, session, write_login, write_session};
use crate::fixtures::{self, VERSION, listing, password_for, versions, with_secret};

#[tokio::test]
async fn a_renewed_access_token_is_stored_in_the_session() {
    let server = Server::reused().await;
    server.stored("/a", "value", json!("v")).await;
    let shell = logged_in(&server);
    let mint = Mint::of(&server).await;
    let mut claims = mint.user_claims("3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b10");
    claims["exp"] = json!(1_000_000_000);
    let expired = mint.token(&claims);
    let mut kept = session(&shell).unwrap();
    let refresh_token = kept["refresh_token"].clone();
    kept["access_token"] = json!(expired);
    let file = shell.file(".config/keywright/session.json");
    fs::write(file, kept.to_string()).unwrap();

    assert_eq!(shell.run("get /a --raw").expect(0).output, "v");
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
        let stub = Stub::start(move |request, before, url| {
            if request.line.starts_with("POST") {
                match replacement(url) {
                    Some(session) => fs::write(&file, session.to_string()).unwrap(),
                    None => fs::remove_file(&file).unwrap(),
                }
            }
            provider(request, before, url).unwrap_or_else(|| api(request, "token-0"))
        });
        write_login(&shell, &stub, "expired", Some("refresh"));
        shell.run("get /a").expect(0);
        assert_eq!(session(&shell), replacement(&stub.url()));
    }
}

#[test]
fn the_token_of_another_login_is_not_sent() {
    let other = json!({
        "login_id": 2, "server": "https://other.example", "ca_cert": [], "access_token": "other",
    });
    let shell = Shell::new();
    let file = shell.file(".config/keywright/session.json");
    let replaced = other.to_string();
    let stub = Stub::start(move |request, before, url| {
        // Another run logs in at another server before the token is renewed.
        if request.head.contains("bearer expired") {
            fs::write(&file, &replaced).unwrap();
        }
        provider(request, before, url).unwrap_or_else(|| api(request, "token-0"))
    });
    let mut kept = write_login(&shell, &stub, "expired", Some("refresh"));
    kept["login_id"] = json!(1);
    write_session(&shell, &kept);
    shell.run("get /a").expect(0);
    for request in stub.requests() {
        request.head.assert_lacks("bearer other");
    }
    assert_eq!(session(&shell), Some(other));
}

#[test]
fn concurrent_runs_use_each_refresh_token_once() {
    const RUNS: usize = 4;
    let stub = Stub::start(|request, before, url| {
        if request.line.starts_with("POST") {
            // Every use of the token counts, as at a provider that revokes the login after a second use.
            let issued =
                json!({"access_token": format!("token-{before}"), "refresh_token": "next"});
            return Reply::new(200, &issued.to_string());
        }
        provider(request, before, url).unwrap_or_else(|| {
            if request.head.contains("bearer expired") {
                thread::sleep(Duration::from_millis(500));
                Reply::new(401, EXPIRED)
            } else {
                Reply::new(200, &versions())
            }
        })
    });
    let shell = stub.shell().without("KEYWRIGHT_CLIENT_TOKEN");
    let kept = json!({
        "login_id": 1, "server": stub.url(), "ca_cert": [shell.file("ca.pem")],
        "access_token": "expired", "refresh_token": "first",
    });
    write_session(&shell, &kept);
    thread::scope(|scope| {
        for _ in 0..RUNS {
            scope.spawn(|| shell.run("get /a").expect(0));
        }
    });
    let requests = stub.requests();
    let mut renewals = requests
        .iter()
        .filter(|request| request.line.starts_with("POST"));
    let renewal = renewals.next().unwrap();
    renewal.body.assert_contains("refresh_token=first");
    assert!(renewals.next().is_none(), "{requests:?}");
    let kept = session(&shell).unwrap();
    assert_eq!(kept["access_token"], "token-0");
    assert_eq!(kept["refresh_token"], "next");
}

#[test]
fn tokens_are_not_sent_to_another_identity_provider() {
    let stub = Stub::start(|request, before, url| {
        let is_info = request.line == "GET /info";
        match provider(request, before, url) {
            // After the login, the server names another provider.
            Some(_) if is_info && before > 0 => {
                let other = json!({"auth-server": {"url": format!("{url}/other")}});
                Reply::new(200, &other.to_string())
            }
            Some(_) if request.line.starts_with("POST") => Reply::new(
                200,
                r#"{"access_token":"e30.eyJqdGkiOiJhIn0.","refresh_token":"r"}"#,
            ),
            Some(reply) => reply,
            None => Reply::new(401, EXPIRED),
        }
    });
    let shell = stub.shell().without("KEYWRIGHT_CLIENT_TOKEN");
    let login = ["login", "--username", "alice"];
    shell.run_with(&login, "password").expect(5);
    let kept = session(&shell);
    assert_eq!(kept.as_ref().unwrap()["refresh_token"], "r");

    let expected = format!(
        "identity provider has changed since the login: {}/other",
        stub.url()
    );
    let run = shell.run("get /a").expect(5);
    run.errors.assert_contains(&expected);
    assert_eq!(session(&shell), kept);
    let run = shell.run("logout").expect(3);
    run.errors.assert_contains(&expected);
    assert!(session(&shell).is_none());
    let lines = stub.lines();
    let mut sent = lines.iter().filter(|line| !line.starts_with("GET "));
    assert_eq!(sent.next().unwrap(), "POST /uaa/oauth/token");
    assert_eq!(sent.next(), None);
}

#[test]
fn a_client_in_the_environment_renews_with_its_secret() {
    let stub = Stub::start(|request, before, url| {
        provider(request, before, url).unwrap_or_else(|| api(request, "token-1"))
    });
    let shell = with_secret(stub.shell()).variable("KEYWRIGHT_CLIENT_SECRET", "s&cret");
    shell.run("get /a").expect(0);
    let log_in = [
        "GET /info",
        "GET /uaa/.well-known/openid-configuration",
        "GET /.well-known/oauth-authorization-server/uaa",
        "POST /uaa/oauth/token",
    ];
    let get = ["GET /api/v1/data?current=true&name=%2Fa"];
    assert_eq!(stub.lines(), [&log_in[..], &get, &log_in, &get].concat());
    let form = stub.requests()[3].body.clone();
    assert_eq!(
        form,
        "grant_type=client_credentials&response_type=token&client_id=app&client_secret=s%26cret"
    );
}

#[test]
fn a_token_that_expires_at_once_is_renewed_only_once() {
    for status in [401, 400, 403] {
        let stub = Stub::start(move |request, before, url| {
            provider(request, before, url).unwrap_or_else(|| Reply::new(status, EXPIRED))
        });
        let run = with_secret(stub.shell()).run("get /a");
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
    write_login(&shell, &stub, "expired", None);
    let run = shell.run("get /a").expect(5);
    run.errors.assert_contains("has expired");
    run.errors.assert_contains("keywright login");
    assert_eq!(stub.lines().len(), 1);
}

#[tokio::test]
async fn concurrent_requests_renew_an_expired_token_once() {
    let stub = Stub::start(|request, before, url| {
        // Two logins issue tokens; the first has expired.
        provider(request, before, url).unwrap_or_else(|| api(request, "token-1"))
    });
    let client = client_of(&stub);
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

/// Returns a client that logs in with a secret, and retries each request once.
fn client_of(stub: &Stub) -> Client {
    Client::builder(&stub.url())
        .trusting_only(fs::read(key_file("ca.pem")).unwrap())
        .grant(Grant::ClientCredentials {
            client_id: "app".to_owned(),
            client_secret: Secret::new("secret".to_owned()),
        })
        .retries_max(1)
        .build()
        .unwrap()
}

const LOGIN: [&str; 3] = ["login", "--client-id", "app"];

/// Creates a shell without a login or credentials.
fn anonymous(stub: &Stub) -> Shell {
    let shell = stub.shell().without("KEYWRIGHT_CLIENT_TOKEN");
    shell.variable("KEYWRIGHT_CLIENT_RETRIES", "1")
}

#[test]
fn an_unavailable_provider_is_retried_and_exits_with_status_6() {
    for (failing, status) in [
        ("GET /uaa/.well-known/openid-configuration", 503),
        ("POST /uaa/oauth/token", 500),
        ("POST /uaa/oauth/token", 502),
        ("POST /uaa/oauth/token", 503),
    ] {
        let stub = Stub::start(move |request, before, url| {
            if request.line == failing {
                return Reply::new(status, "{}").header("retry-after", "0");
            }
            provider(request, before, url).unwrap_or_else(|| Reply::new(200, &versions()))
        });
        for run in [
            anonymous(&stub).run_with(&LOGIN, "secret"),
            with_secret(anonymous(&stub)).run("get /a"),
        ] {
            let run = run.expect(6);
            run.errors
                .assert_contains("identity provider is not available");
            assert_eq!(run.errors.matches("retrying").count(), 1, "{run:?}");
        }
        let requests = stub.lines().into_iter().filter(|line| line == failing);
        assert_eq!(requests.count(), 4, "twice by each of two runs");
    }
}

#[test]
fn a_briefly_unavailable_provider_is_retried() {
    let stub = Stub::start(|request, before, url| {
        let is_away = request.line.contains("/uaa") && before == 0;
        if is_away {
            return Reply::new(503, "").header("retry-after", "0");
        }
        provider(request, before, url).unwrap_or_else(|| Reply::new(200, &versions()))
    });
    let shell = anonymous(&stub);
    shell.run_with(&LOGIN, "secret").expect(0);
    shell.run("get /a").expect(0);
}

#[test]
fn an_unreachable_provider_is_retried_and_exits_with_status_6() {
    let stub = Stub::start(|_, _, _| {
        Reply::new(
            200,
            &json!({"auth-server": {"url": "https://127.0.0.1:1/uaa"}}).to_string(),
        )
    });
    let run = anonymous(&stub).run_with(&LOGIN, "secret").expect(6);
    run.errors.assert_contains("retrying");
    assert!(run.errors.contains("https://127.0.0.1:1/uaa"), "{run:?}");
}

#[test]
fn a_failed_renewal_keeps_the_session() {
    for status in [429, 503] {
        let stub = Stub::start(move |request, before, url| {
            if request.line.starts_with("POST") {
                return Reply::new(status, "").header("retry-after", "0");
            }
            provider(request, before, url).unwrap_or_else(|| Reply::new(401, EXPIRED))
        });
        let shell = Shell::new().variable("KEYWRIGHT_CLIENT_RETRIES", "0");
        let kept = write_login(&shell, &stub, "expired", Some("refresh"));
        let run = shell.run("get /a").expect(6);
        run.errors
            .assert_contains("identity provider is not available");
        run.errors.assert_lacks("has expired");
        assert_eq!(session(&shell), Some(kept));
    }
}

#[test]
fn bulk_commands_exit_with_status_6_if_the_provider_is_down() {
    for (line, responded, not_tried) in [
        (
            "import file --parallel 1",
            "PUT",
            "\"set\": 1,\n  \"unchanged\": 0,\n  \"failed\": 1,\n  \"not_tried\": 2,",
        ),
        (
            "delete --path /a --yes",
            "DELETE",
            "Deleted 1 credential, 1 failed, 2 not attempted.",
        ),
        (
            "export --path /a --keep-going --parallel 1 --file export",
            "GET",
            "could not read /a/2; exported nothing",
        ),
    ] {
        // The first token expires while the provider is unavailable.
        let stub = Stub::start(|request, before, url| {
            if request.line.starts_with("POST") && before > 0 {
                return Reply::new(503, "{}").header("retry-after", "0");
            }
            provider(request, before, url).unwrap_or_else(|| match request.line.as_str() {
                LISTING => Reply::new(200, &listing(NAMES)),
                line if !line.contains("%2F1") && !request.body.contains("/a/1") => {
                    Reply::new(401, EXPIRED)
                }
                line if line.starts_with("PUT") => Reply::new(200, VERSION),
                line if line.starts_with("DELETE") => Reply::new(204, ""),
                _ => Reply::new(200, &password_for(request, "secret")),
            })
        });
        let shell = with_secret(anonymous(&stub));
        let entry = |name: &str| format!("- {{name: {name}, type: value, value: v}}\n");
        let file = format!("credentials:\n{}", NAMES.map(entry).concat());
        fixtures::file(&shell, "file", &file);
        let run = shell.run(line).expect(6);
        let output = [&*run.errors, &*run.output].concat();
        output.assert_contains(not_tried);
        assert!(!shell.file("export").exists());
        let lines = stub.lines();
        let count = |begins: &str| {
            let lines = lines.iter().filter(|line| line.starts_with(begins));
            lines.filter(|line| !line.contains("path=")).count()
        };
        assert_eq!(
            count("POST"),
            3,
            "one success, then two failed attempts: {lines:?}"
        );
        assert_eq!(count(&format!("{responded} /api")), 2, "{lines:?}");
    }
}

#[tokio::test]
async fn concurrent_requests_share_the_error_of_one_token_request() {
    let stub = Stub::start(|request, before, url| {
        if request.line.starts_with("POST") {
            return Reply::new(503, "{}").header("retry-after", "0");
        }
        provider(request, before, url).unwrap_or_else(|| Reply::new(200, &versions()))
    });
    let client = client_of(&stub);
    for posts_before in [0, 2] {
        let mut requests = JoinSet::new();
        for _ in 0..8 {
            let client = client.clone();
            requests.spawn(async move { client.current_version("/a").await.unwrap_err() });
        }
        for error in requests.join_all().await {
            assert!(matches!(error, Error::ProviderUnavailable(_)), "{error}");
        }
        let lines = stub.lines();
        let posts = lines.iter().filter(|line| line.starts_with("POST"));
        assert_eq!(posts.count(), posts_before + 2, "{lines:?}");
    }
}

#[test]
fn a_refused_token_request_is_not_retried() {
    for status in [400, 401, 403, 404, 429] {
        let stub = Stub::start(move |request, before, url| {
            if request.line.starts_with("POST") {
                return Reply::new(status, "{\"error\":\"invalid_client\"}");
            }
            provider(request, before, url).unwrap_or_else(|| Reply::new(500, ""))
        });
        let run = anonymous(&stub).run_with(&LOGIN, "secret").expect(5);
        run.errors.assert_contains("invalid_client");
        let lines = stub.lines();
        let posts = lines.iter().filter(|line| line.starts_with("POST"));
        assert_eq!(posts.count(), 1, "{status}");
    }
}

/// The credentials of the server.
const NAMES: [&str; 4] = ["/a/1", "/a/2", "/a/3", "/a/4"];

const LISTING: &str = "GET /api/v1/data?path=%2Fa";
