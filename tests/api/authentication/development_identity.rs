//! The built-in development identity provider, as used by clients.

use keywright_harness::{
    Options, Response, Server,
    mint::{Mint, claims_of, present, seconds_since_epoch},
};
use reqwest::{Method, header};
use serde_json::{Value, json};

use crate::given;

const USER_ID: &str = "3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b10";
const CLIENT_LOGIN: &str =
    "grant_type=client_credentials&client_id=developer&client_secret=developer-secret";
const USER_LOGIN: &str = "grant_type=password&response_type=token&client_id=credhub_cli&\
    client_secret=&username=developer&password=developer-password";

#[tokio::test]
async fn a_client_logs_in_with_its_id_and_secret() {
    let server = Server::reused().await;
    let login = format!("{CLIENT_LOGIN}&response_type=token");
    let response = request_token(&server, &login).await.expect(200);
    assert_eq!(response.header("cache-control"), Some("no-store"));
    let granted = response.json();
    let actual = granted["token_type"].as_str().unwrap().to_lowercase();
    assert_eq!(actual, "bearer");
    assert_eq!(granted["expires_in"], 3600);
    assert_eq!(granted.get("refresh_token"), None);
    let token = granted["access_token"].as_str().unwrap();
    present(&server, token).await.expect(200);

    let claims = claims_of(token);
    assert_eq!(claims["grant_type"], "client_credentials");
    assert_eq!(claims["client_id"], "developer");
    assert_eq!(claims["scope"], json!(["credhub.read", "credhub.write"]));
    assert_eq!(claims["iss"], Mint::of(&server).await.claims()["iss"]);
    let seconds_left = claims["exp"].as_i64().unwrap() - seconds_since_epoch();
    assert!((3_540..=3_600).contains(&seconds_left), "{seconds_left}");
}

#[tokio::test]
async fn an_id_and_secret_in_the_header_are_form_decoded() {
    let server = Server::reused().await;
    for (secret, status) in [
        ("developer-secret", 200),
        ("developer%2Dsecret", 200),
        ("developer+secret", 401),
        ("developer-secret&", 401),
    ] {
        let request = server
            .request(Method::POST, "/identity/oauth/token")
            .basic_auth("develope%72", Some(secret))
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body("grant_type=client_credentials");
        server.send(request).await.expect(status);
    }
}

#[tokio::test]
async fn a_user_logs_in_through_the_client_with_an_empty_secret() {
    let server = Server::reused().await;
    let granted = request_token(&server, USER_LOGIN).await.expect(200).json();
    let token = granted["access_token"].as_str().unwrap();
    present(&server, token).await.expect(200);
    assert!(granted["refresh_token"].is_string());
    let claims = claims_of(token);
    assert_eq!(claims["grant_type"], "password");
    assert_eq!(claims["user_id"], USER_ID);
    assert_eq!(claims["user_name"], "developer");
}

#[tokio::test]
async fn a_refresh_returns_a_new_token_of_the_same_user() {
    let server = Server::reused().await;
    let first = request_token(&server, USER_LOGIN).await.expect(200).json();
    let second = request_token(&server, &refresh(&first))
        .await
        .expect(200)
        .json();
    let token = second["access_token"].as_str().unwrap();
    assert_ne!(second["access_token"], first["access_token"]);
    assert!(second["refresh_token"].is_string());
    present(&server, token).await.expect(200);
    assert_eq!(claims_of(token)["grant_type"], "password");
    assert_eq!(claims_of(token)["user_id"], USER_ID);
}

#[tokio::test]
async fn a_refresh_grants_no_other_scopes_than_its_login() {
    let server = Server::reused().await;
    let login = format!("{USER_LOGIN}&scope=credhub.read");
    let mut granted = request_token(&server, &login).await.expect(200).json();
    for requested in ["", "&scope=", "&scope=credhub.write+credhub.read"] {
        let form = format!("{}{requested}", refresh(&granted));
        granted = request_token(&server, &form).await.expect(200).json();
        assert_eq!(granted["scope"], "credhub.read", "{requested}");
        let token = granted["access_token"].as_str().unwrap();
        assert_eq!(claims_of(token)["scope"], json!(["credhub.read"]));
    }
    let form = format!("{}&scope=credhub.write", refresh(&granted));
    let response = request_token(&server, &form).await;
    assert_eq!(response.expect(400).error(), "invalid_scope");
}

#[tokio::test]
async fn refresh_and_access_tokens_are_not_interchangeable() {
    let settings = "[authentication.claims]\ngrant_type.when_absent = \"user\"";
    let options = Options::default().authentication_settings(settings);
    let server = Server::start_with(&options).await;
    let granted = request_token(&server, USER_LOGIN).await.expect(200).json();
    let refresh_token = granted["refresh_token"].as_str().unwrap();
    let response = present(&server, refresh_token).await;
    assert_eq!(response.expect(401).error(), "invalid_token");
    let swapped = json!({"refresh_token": granted["access_token"]});
    let response = request_token(&server, &refresh(&swapped)).await;
    assert_eq!(response.expect(400).error(), "invalid_grant");
}

#[tokio::test]
async fn a_logout_revokes_the_refresh_token_of_its_login() {
    let server = Server::reused().await;
    let granted = request_token(&server, USER_LOGIN).await.expect(200).json();
    let other_login = request_token(&server, USER_LOGIN).await.expect(200).json();
    revoke(&server, &granted, &granted).await.expect(200);
    let response = request_token(&server, &refresh(&granted)).await;
    assert_eq!(response.expect(400).error(), "invalid_grant");
    request_token(&server, &refresh(&other_login))
        .await
        .expect(200);
}

#[tokio::test]
async fn revoking_another_login_is_refused() {
    let server = Server::reused().await;
    let granted = request_token(&server, USER_LOGIN).await.expect(200).json();
    let other_login = request_token(&server, USER_LOGIN).await.expect(200).json();
    revoke(&server, &granted, &other_login).await.expect(401);
    let path = format!("/identity/oauth/token/revoke/{}", token_id(&granted));
    let without_a_token = server.request(Method::DELETE, &path);
    let response = server.send(without_a_token).await;
    assert_eq!(response.expect(401).error(), "access_denied");
    request_token(&server, &refresh(&granted)).await.expect(200);
}

/// Refused logins, one per line: the status, the error code and the form.
const REFUSED_LOGINS: &str = "
    400 invalid_request
    400 invalid_request grant_type=client_credentials
    400 invalid_request client_id=developer&client_secret=developer-secret
    401 invalid_client grant_type=client_credentials&client_id=developer
    401 invalid_client grant_type=client_credentials&client_id=developer&client_secret=
    401 invalid_client grant_type=client_credentials&client_id=developer&client_secret=wrong
    401 invalid_client grant_type=client_credentials&client_id=stranger&client_secret=developer-secret
    400 unauthorized_client grant_type=client_credentials&client_id=credhub_cli&client_secret=
    400 invalid_scope grant_type=client_credentials&client_id=developer&client_secret=developer-secret&scope=root
    400 unsupported_grant_type grant_type=implicit&client_id=developer&client_secret=developer-secret
    400 unauthorized_client grant_type=authorization_code&client_id=developer&client_secret=developer-secret&code=x
    400 invalid_request grant_type=authorization_code&client_id=console
    400 invalid_grant grant_type=authorization_code&client_id=console&code=x
    400 invalid_request grant_type=password&client_id=credhub_cli&client_secret=&username=developer
    400 invalid_grant grant_type=password&client_id=credhub_cli&username=developer&password=wrong
    400 invalid_grant grant_type=password&client_id=credhub_cli&username=stranger&password=developer-password
    400 invalid_request grant_type=refresh_token&client_id=credhub_cli
    400 invalid_grant grant_type=refresh_token&client_id=credhub_cli&refresh_token=x
    400 invalid_request grant_type=password&grant_type=password&client_id=credhub_cli
";

#[tokio::test]
async fn each_refused_login_has_its_error_code() {
    let server = Server::reused().await;
    for line in REFUSED_LOGINS.trim().lines() {
        let mut words = line.split_whitespace();
        let status: u16 = words.next().unwrap().parse().unwrap();
        let code = words.next().unwrap();
        let response = request_token(&server, words.next().unwrap_or_default()).await;
        assert_eq!(response.status, status, "{line}: {response:?}");
        assert_eq!(response.error(), code, "{line}");
        let json = response.json();
        let description = json["error_description"].as_str().unwrap();
        assert!(
            !description.is_empty() && !description.contains("wrong&"),
            "{line}"
        );
    }
}

#[tokio::test]
async fn a_refresh_token_is_valid_for_its_own_client_only() {
    let server = Server::reused().await;
    let granted = request_token(&server, USER_LOGIN).await.expect(200).json();
    let form = format!(
        "grant_type=refresh_token&client_id=developer&client_secret=developer-secret&refresh_token={}",
        granted["refresh_token"].as_str().unwrap()
    );
    let response = request_token(&server, &form).await;
    assert_eq!(response.expect(400).error(), "invalid_grant");
}

#[tokio::test]
async fn login_requests_must_be_form_encoded() {
    let server = Server::reused().await;
    let body = json!({
        "grant_type": "client_credentials", "client_id": "developer",
        "client_secret": "developer-secret",
    });
    let request = server
        .request(Method::POST, "/identity/oauth/token")
        .header(header::CONTENT_TYPE, "application/json")
        .body(body.to_string());
    let response = server.send(request).await;
    assert_eq!(response.expect(400).error(), "invalid_request");
}

#[tokio::test]
async fn provider_information_and_discovery_need_no_login() {
    let server = Server::reused().await;
    let information = get(&server, "/identity/info").await;
    assert!(information["links"]["login"].is_string(), "{information}");
    assert!(information["prompts"].is_object(), "{information}");
    let discovery = get(&server, "/identity/.well-known/openid-configuration").await;
    let url = format!("{}/identity", server.base_url());
    assert_eq!(discovery["token_endpoint"], format!("{url}/oauth/token"));
    assert_eq!(discovery["jwks_uri"], format!("{url}/token_keys"));
    assert!(!discovery["issuer"].as_str().unwrap().is_empty());
}

#[tokio::test]
async fn only_the_public_half_of_the_key_is_published() {
    let server = Server::reused().await;
    let keys = get(&server, "/identity/token_keys").await;
    let keys = keys["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 1);
    assert_eq!(keys[0]["kty"], "RSA");
    assert_eq!(keys[0]["alg"], "RS256");
    for field in ["kid", "n", "e"] {
        assert!(!keys[0][field].as_str().unwrap().is_empty(), "{field}");
    }
    let private = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];
    assert!(
        given::fields(&keys[0])
            .iter()
            .all(|field| !private.contains(field))
    );
}

#[tokio::test]
async fn the_development_provider_is_logged_as_a_warning() {
    let server = Server::start().await;
    let log = server.log();
    let warning = log
        .lines()
        .find(|line| line.to_lowercase().contains("development identity"));
    assert!(
        warning.is_some_and(|line| line.contains("WARN")),
        "{warning:?}"
    );
}

#[tokio::test]
async fn without_a_development_provider_its_paths_are_not_served() {
    let provider = Server::start().await;
    let url = format!("{}/identity", provider.base_url());
    let server = Server::start_with(&Options::default().identity_provider(&url)).await;
    request_token(&server, CLIENT_LOGIN).await.expect(401);
    for path in ["/identity/info", "/identity/token_keys"] {
        let response = server.send(server.request(Method::GET, path)).await;
        response.expect(401);
    }
    assert!(
        !server
            .whole_log()
            .await
            .to_lowercase()
            .contains("development identity")
    );
}

async fn request_token(server: &Server, form: &str) -> Response {
    let request = server
        .request(Method::POST, "/identity/oauth/token")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(header::ACCEPT, "application/json")
        .body(form.to_owned());
    server.send(request).await
}

async fn get(server: &Server, path: &str) -> Value {
    server
        .send(server.request(Method::GET, path))
        .await
        .expect(200)
        .json()
}

async fn revoke(server: &Server, login: &Value, shown: &Value) -> Response {
    let path = format!("/identity/oauth/token/revoke/{}", token_id(login));
    let token = shown["access_token"].as_str().unwrap_or_default();
    server
        .send(server.request(Method::DELETE, &path).bearer_auth(token))
        .await
}

fn refresh(granted: &Value) -> String {
    let refresh_token = granted["refresh_token"].as_str().unwrap_or_default();
    format!(
        "grant_type=refresh_token&response_type=token&client_id=credhub_cli&client_secret=&\
        refresh_token={refresh_token}"
    )
}

fn token_id(granted: &Value) -> String {
    let claims = claims_of(granted["access_token"].as_str().unwrap_or_default());
    claims
        .get("jti")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}
