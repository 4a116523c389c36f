//! The development identity provider, as used by clients.

use std::sync::atomic::Ordering;

use axum::http::StatusCode;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::harness::{Response, Service};

const PASSWORD_FORM: &str = "grant_type=password&response_type=token&client_id=credhub_cli&client_secret=&username=someone&password=user-password";

const CLIENT_FORM: &str =
    "grant_type=client_credentials&response_type=token&client_id=app&client_secret=app-secret";

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
async fn a_client_may_use_basic_authentication() {
    let service = Service::new();
    for (credentials, expected) in [("app:app-secret", 200), ("app:wrong", 401), ("app", 401)] {
        let headers = [
            (
                "content-type",
                "application/x-www-form-urlencoded".to_owned(),
            ),
            (
                "authorization",
                format!("Basic {}", STANDARD.encode(credentials)),
            ),
        ];
        let form = "grant_type=client_credentials";
        let response = service
            .send_with("POST", "/identity/oauth/token", &headers, form)
            .await;
        assert_eq!(response.status.as_u16(), expected, "{credentials}");
    }
}

#[tokio::test]
async fn a_refresh_token_extends_a_login_until_it_expires() {
    let service = Service::new();
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
async fn a_revoked_login_cannot_be_refreshed() {
    let service = Service::new();
    let login = granted(&service, PASSWORD_FORM).await;
    let other = granted(&service, PASSWORD_FORM).await;
    let refresh_form = |login: &Value| {
        format!(
            "grant_type=refresh_token&client_id=credhub_cli&refresh_token={}",
            text(login, "refresh_token")
        )
    };
    let refreshed = granted(&service, &refresh_form(&login)).await;
    let revoke = async |id: &Value, token: Option<&Value>| {
        let path = format!("/identity/oauth/token/revoke/{}", text(id, "jti"));
        let header = token.map(|token| {
            (
                "authorization",
                format!("Bearer {}", text(token, "access_token")),
            )
        });
        service
            .send_with("DELETE", &path, header.as_slice(), "")
            .await
            .status
    };
    assert_eq!(revoke(&login, None).await, StatusCode::UNAUTHORIZED);
    assert_eq!(revoke(&login, Some(&other)).await, StatusCode::UNAUTHORIZED);
    assert_eq!(
        token(&service, &refresh_form(&login)).await.status,
        StatusCode::OK
    );
    assert_eq!(revoke(&refreshed, Some(&refreshed)).await, StatusCode::OK);
    assert_eq!(
        token(&service, &refresh_form(&login)).await.error(),
        "invalid_grant"
    );
    assert_eq!(
        token(&service, &refresh_form(&other)).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_scope_that_the_client_lacks_is_refused() {
    let service = Service::new();
    let response = token(&service, &format!("{CLIENT_FORM}&scope=root")).await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    assert_eq!(response.error(), "invalid_scope");
}

#[tokio::test]
async fn a_token_has_no_scope_that_the_user_lacks() {
    let service = Service::new();
    let form = PASSWORD_FORM.replace("someone", "reader");
    let granted = granted(&service, &form).await;
    assert_eq!(granted["scope"], "credhub.read");
    assert_eq!(
        status(&service, text(&granted, "access_token")).await,
        StatusCode::FORBIDDEN
    );
}
