//! Tokens and logins whose validity depends on a fixed clock, and thousands of forged tokens.

use std::sync::atomic::Ordering;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::harness::{NOW_SECONDS, Response, Service, good_claims, trusted_key};

fn with(changes: &Value) -> Value {
    let mut claims = good_claims();
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
}

async fn code(service: &Service, token: &str) -> (StatusCode, String) {
    let response = service.get_as("/version", Some(token)).await;
    if response.status.is_success() {
        return (response.status, String::new());
    }
    assert!(response.headers.contains_key("www-authenticate"));
    assert!(response.json()["error_description"].is_string());
    (response.status, response.error())
}

#[tokio::test]
async fn a_token_with_any_one_character_changed_is_invalid() {
    let service = Service::new().await;
    let good = trusted_key().sign(&good_claims());
    for position in 0..good.len() {
        for other in ["A", "Q", "_", ".", "=", " "] {
            let mut changed = good.clone();
            changed.replace_range(position..=position, other);
            if changed == good {
                continue;
            }
            let (status, code) = code(&service, &changed).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{position} {other}");
            assert_eq!(code, "invalid_token", "{position} {other}");
        }
    }
}

#[tokio::test]
async fn times_may_differ_by_a_minute() {
    let service = Service::new().await;
    for (changes, status, error) in [
        (json!({"exp": NOW_SECONDS - 60}), 200, ""),
        (
            json!({"exp": NOW_SECONDS - 61}),
            401,
            "access_token_expired",
        ),
        (json!({"exp": i64::MIN}), 401, "access_token_expired"),
        (json!({"nbf": NOW_SECONDS + 60}), 200, ""),
        (json!({"nbf": NOW_SECONDS + 61}), 401, "invalid_token"),
    ] {
        let token = trusted_key().sign(&with(&changes));
        let (responded, code) = code(&service, &token).await;
        assert_eq!(
            (responded.as_u16(), code.as_str()),
            (status, error),
            "{changes}"
        );
    }
}

/// A login of a user at the development identity provider.
const PASSWORD_FORM: &str = "grant_type=password&response_type=token&client_id=credhub_cli&client_secret=&username=someone&password=user-password";

async fn token(service: &Service, form: &str) -> Response {
    let headers = [(
        "content-type",
        "application/x-www-form-urlencoded".to_owned(),
    )];
    service
        .send_with("POST", "/identity/oauth/token", &headers, form)
        .await
}

async fn granted(service: &Service, form: &str) -> Value {
    let response = token(service, form).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.text);
    assert_eq!(response.headers["cache-control"], "no-store");
    response.json()
}

fn text<'a>(granted: &'a Value, field: &str) -> &'a str {
    granted[field].as_str().unwrap()
}

async fn status(service: &Service, token: &str) -> StatusCode {
    service.get_as("/version", Some(token)).await.status
}

#[tokio::test]
async fn a_refresh_token_extends_a_login_until_it_expires() {
    let service = Service::new().await;
    let login = granted(&service, PASSWORD_FORM).await;
    service.clock.0.fetch_add(700, Ordering::SeqCst);
    assert_eq!(
        status(&service, text(&login, "access_token")).await,
        StatusCode::UNAUTHORIZED
    );
    let refresh_form = format!(
        "grant_type=refresh_token&client_id=credhub_cli&client_secret=&refresh_token={}",
        text(&login, "refresh_token")
    );
    let refreshed = granted(&service, &refresh_form).await;
    assert_eq!(
        status(&service, text(&refreshed, "access_token")).await,
        StatusCode::OK
    );
    assert_ne!(login["jti"], refreshed["jti"]);
    service.clock.0.fetch_add(86_400, Ordering::SeqCst);
    let expired = token(&service, &refresh_form).await;
    assert_eq!(expired.error(), "invalid_grant");
}

#[tokio::test]
async fn a_login_keeps_the_query_of_the_redirect_uri() {
    let service = Service::new().await;
    let headers = [(
        "content-type",
        "application/x-www-form-urlencoded".to_owned(),
    )];
    let form = "response_type=code&client_id=app&redirect_uri=https%3A%2F%2Fclient.test%2Fback%3Ffrom%3Dlogin&state=here&code_challenge=one&code_challenge_method=S256&username=someone&password=user-password";
    let response = service
        .send_with("POST", "/identity/oauth/authorize", &headers, form)
        .await;
    assert_eq!(response.status, StatusCode::SEE_OTHER, "{}", response.text);
    let location = response.headers["location"].to_str().unwrap();
    assert!(
        location.starts_with("https://client.test/back?from=login&code="),
        "{location}"
    );
}
