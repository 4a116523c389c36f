//! Logins at providers with a discovery document. The documents of UAA, Keycloak, Auth0 and Entra ID are reduced to the fields
//! that a login reads.

use keywright_harness::{ReceivedRequest, Reply, Shell, Stub, Text};
use serde_json::{Value, json};

use super::session;
use crate::fixtures::versions;

/// Returns the response of a stub that serves an API, and a provider at its root. `None` for the token endpoint and for unknown
/// paths. `changes` replaces fields of the discovery document.
pub(super) fn openid(request: &ReceivedRequest, url: &str, changes: &Value) -> Option<Reply> {
    let body = match request.line.as_str() {
        "GET /info" => json!({"auth-server": {"url": format!("{url}/")}, "app": {"name": "x"}}),
        "GET /.well-known/openid-configuration" => {
            let mut document = json!({
                "issuer": url,
                "token_endpoint": format!("{url}/token"),
                "authorization_endpoint": format!("{url}/authorize?tenant=a"),
                "device_authorization_endpoint": format!("{url}/device"),
                "revocation_endpoint": format!("{url}/revoke"),
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": true,
            });
            let fields = document.as_object_mut().unwrap();
            fields.extend(changes.as_object().unwrap().clone());
            fields.retain(|_, value| !value.is_null());
            document
        }
        "POST /revoke" => json!({}),
        "GET /version" => json!({"version": "0.0.0"}),
        line if line.contains("/api/") => return Some(Reply::new(200, &versions())),
        _ => return None,
    };
    Some(Reply::new(200, &body.to_string()))
}

pub(super) fn tokens() -> Reply {
    let tokens =
        json!({"access_token": "access", "refresh_token": "refresh", "token_type": "Bearer"});
    Reply::new(200, &tokens.to_string())
}

/// Creates a shell without a login.
pub(super) fn shell(stub: &Stub) -> Shell {
    let shell = stub.shell().without("KEYWRIGHT_CLIENT_TOKEN");
    shell.variable("KEYWRIGHT_CLIENT_RETRIES", "0")
}

/// Returns the requests to a path.
pub(super) fn requests_at(stub: &Stub, line: &str) -> Vec<ReceivedRequest> {
    let requests = stub.requests().into_iter();
    requests.filter(|request| request.line == line).collect()
}

#[test]
fn a_secret_is_sent_in_the_header_and_then_in_the_form() {
    let (basic, post) = ("client_secret_basic", "client_secret_post");
    for (methods, takes_form, attempts) in [
        (json!(null), false, &["header"][..]),
        (json!([post, basic]), false, &["header"]),
        (json!([post, basic]), true, &["header", "form"]),
        (json!([post]), true, &["form"]),
    ] {
        let changes = json!({"token_endpoint_auth_methods_supported": methods});
        let stub = Stub::start(move |request, _, url| {
            openid(request, url, &changes).unwrap_or_else(|| {
                if takes_form == request.body.contains("client_secret") {
                    tokens()
                } else {
                    Reply::new(401, "{\"error\":\"invalid_client\"}")
                }
            })
        });
        let login = ["--client-id", "a:b", "--scope", "x y", "--audience", "z"];
        let login = [&["login"], &login[..]].concat();
        shell(&stub).run_with(&login, "s %&").expect(0);
        let sent = requests_at(&stub, "POST /token")
            .into_iter()
            .map(|request| {
                let begins = "grant_type=client_credentials&scope=x+y&audience=z";
                assert!(request.body.starts_with(begins), "{request:?}");
                // a%3Ab:s+%25%26 in base64, in lower case like the recorded head.
                let basic = "authorization: basic ysuzqwi6cyslmjulmjy=";
                if request.head.contains(basic) {
                    request.body.assert_lacks("client_id");
                    return "header";
                }
                let own = "&client_id=a%3Ab&client_secret=s+%25%26";
                assert!(request.body.ends_with(own), "{request:?}");
                "form"
            });
        assert_eq!(sent.collect::<Vec<_>>(), attempts);
    }
}

#[test]
fn a_wrong_secret_fails_with_both_methods_and_is_not_printed() {
    let changes = json!({
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
    });
    let stub = Stub::start(move |request, _, url| {
        let refused = || Reply::new(401, "{\"error\":\"invalid_client\"}");
        openid(request, url, &changes).unwrap_or_else(refused)
    });
    let run = shell(&stub).run_with("login --client-id ci", "hunter2");
    let run = run.expect(5);
    run.errors.assert_contains("invalid_client");
    run.errors.assert_lacks("hunter2");
    assert_eq!(requests_at(&stub, "POST /token").len(), 2);
}

#[test]
fn no_secret_is_sent_if_the_document_is_malformed() {
    let too_large = "x".repeat(1024 * 1024);
    for (changes, words) in [
        (json!({"issuer": "https://other.example"}), "the issuer is"),
        (json!({"issuer": null}), "a field is missing"),
        (json!({"token_endpoint": null}), "token_endpoint is missing"),
        (
            json!({"token_endpoint": "http://127.0.0.1/token"}),
            "token_endpoint is not an https address",
        ),
        (json!({"padding": too_large}), "larger than 1048576 bytes"),
        (
            json!({"token_endpoint_auth_methods_supported": ["private_key_jwt"]}),
            "neither client_secret_basic nor client_secret_post",
        ),
    ] {
        let stub = Stub::start(move |request, _, url| {
            openid(request, url, &changes).unwrap_or_else(tokens)
        });
        let run = shell(&stub).run_with("login --client-id ci", "hunter2");
        let run = run.expect(1);
        run.errors.assert_contains(words);
        assert!(requests_at(&stub, "POST /token").is_empty());
    }
}

#[test]
fn a_discovery_document_at_the_root_of_the_host_is_found() {
    let stub = Stub::start(|request, _, url| match request.line.as_str() {
        "GET /info" => {
            let info = json!({"auth-server": {"url": format!("{url}/a/b")}});
            Reply::new(200, &info.to_string())
        }
        "GET /.well-known/oauth-authorization-server/a/b" => {
            let document =
                json!({"issuer": format!("{url}/a/b"), "token_endpoint": format!("{url}/token")});
            Reply::new(200, &document.to_string())
        }
        "POST /token" => tokens(),
        _ => Reply::new(404, ""),
    });
    let login = "login --client-id ci";
    shell(&stub).run_with(login, "secret").expect(0);
}

#[test]
fn tokens_other_than_bearer_tokens_are_refused() {
    let stub = Stub::start(|request, _, url| {
        let bound = || Reply::new(200, r#"{"access_token":"hunter2","token_type":"DPoP"}"#);
        openid(request, url, &json!({})).unwrap_or_else(bound)
    });
    let login = "login --client-id ci";
    let run = shell(&stub).run_with(login, "secret").expect(1);
    run.errors.assert_contains("not bearer tokens");
    run.errors.assert_lacks("hunter2");
}

#[test]
fn malformed_access_tokens_are_refused() {
    for token in [
        "",
        "hunter2\nhunter2",
        "hunter2é",
        &"x".repeat(16 * 1024 + 1),
    ] {
        let response = json!({"access_token": token}).to_string();
        let stub = Stub::start(move |request, _, url| {
            let response = || Reply::new(200, &response);
            openid(request, url, &json!({})).unwrap_or_else(response)
        });
        let shell = shell(&stub);
        let run = shell.run_with("login --client-id ci", "secret");
        let run = run.expect(1);
        run.errors
            .assert_contains("access_token must be 1 to 16384");
        run.errors.assert_lacks("hunter2");
        assert!(session(&shell).is_none());
    }
}

#[test]
fn renewal_and_logout_use_client_and_resource_of_the_login() {
    let stub = Stub::start(|request, before, url| {
        if request.line.contains("/api/") && before == 0 {
            return Reply::new(401, super::EXPIRED);
        }
        openid(request, url, &json!({})).unwrap_or_else(tokens)
    });
    let shell = shell(&stub);
    let login = ["login", "--username", "alice", "--client-id", "cli"];
    let login = [&login[..], &["--resource", "https://api.example"]].concat();
    shell.run_with(&login, "password").expect(0);
    shell.run("get /a").expect(0);
    shell.run("logout").expect(0);
    assert!(session(&shell).is_none());
    let forms = requests_at(&stub, "POST /token").into_iter();
    let expected = [
        "grant_type=password&username=alice&password=password&resource=https%3A%2F%2Fapi.example&client_id=cli",
        "grant_type=refresh_token&refresh_token=refresh&resource=https%3A%2F%2Fapi.example&client_id=cli",
    ];
    let actual = forms.map(|request| request.body).collect::<Vec<_>>();
    assert_eq!(actual, expected);
    let revoked = &requests_at(&stub, "POST /revoke")[0].body;
    let expected = "token=refresh&token_type_hint=refresh_token&client_id=cli";
    assert_eq!(revoked, expected);
}

#[test]
fn a_login_with_a_token_that_the_server_refuses_is_kept() {
    let stub = Stub::start(|request, _, url| match request.line.as_str() {
        "GET /version" => Reply::new(401, r#"{"error":"invalid_token"}"#),
        _ => openid(request, url, &json!({})).unwrap_or_else(tokens),
    });
    let shell = shell(&stub);
    let login = "login --client-id ci";
    let run = shell.run_with(login, "secret").expect(5);
    let words = "logged in, but the server refuses the token: invalid_token; check";
    run.errors.assert_contains(words);
    run.errors.assert_lacks("Logged in to");
    assert_eq!(session(&shell).unwrap()["access_token"], "access");
}

#[test]
fn a_provider_without_revocation_is_reported() {
    let stub = Stub::start(|request, _, url| {
        openid(request, url, &json!({"revocation_endpoint": null})).unwrap_or_else(tokens)
    });
    let shell = shell(&stub);
    let login = "login --client-id ci";
    shell.run_with(login, "secret").expect(0);
    let run = shell.run("logout").expect(3);
    run.errors.assert_contains("no revocation_endpoint");
    assert!(session(&shell).is_none());
}

/// A provider's address below the stub, its document, and the form of a client's login.
struct Provider {
    path: &'static str,
    document: fn(&str) -> Value,
    token_path: &'static str,
    form: &'static str,
}

const IN_HEADER: &str = "grant_type=client_credentials";

/// UAA's form, with the secret in it.
const IN_FORM: &str =
    "grant_type=client_credentials&response_type=token&client_id=ci&client_secret=secret";

const PROVIDERS: [Provider; 4] = [
    Provider {
        path: "/uaa",
        document: |url| {
            json!({
                "issuer": format!("{url}/oauth/token"),
                "authorization_endpoint": format!("{url}/oauth/authorize"),
                "token_endpoint": format!("{url}/oauth/token"),
                "token_endpoint_auth_methods_supported":
                    ["client_secret_basic", "client_secret_post", "private_key_jwt"],
                "code_challenge_methods_supported": ["S256", "plain"],
            })
        },
        token_path: "/uaa/oauth/token",
        form: IN_FORM,
    },
    Provider {
        path: "/realms/main",
        document: |url| {
            let endpoints = format!("{url}/protocol/openid-connect");
            json!({
                "issuer": url,
                "authorization_endpoint": format!("{endpoints}/auth"),
                "token_endpoint": format!("{endpoints}/token"),
                "device_authorization_endpoint": format!("{endpoints}/auth/device"),
                "revocation_endpoint": format!("{endpoints}/revoke"),
                "token_endpoint_auth_methods_supported":
                    ["private_key_jwt", "client_secret_basic", "client_secret_post", "tls_client_auth"],
                "code_challenge_methods_supported": ["plain", "S256"],
                "authorization_response_iss_parameter_supported": true,
                "mtls_endpoint_aliases": {"token_endpoint": format!("{endpoints}/token")},
            })
        },
        token_path: "/realms/main/protocol/openid-connect/token",
        form: IN_HEADER,
    },
    Provider {
        path: "",
        document: |url| {
            json!({
                "issuer": format!("{url}/"),
                "authorization_endpoint": format!("{url}/authorize"),
                "token_endpoint": format!("{url}/oauth/token"),
                "device_authorization_endpoint": format!("{url}/oauth/device/code"),
                "revocation_endpoint": format!("{url}/oauth/revoke"),
                "token_endpoint_auth_methods_supported":
                    ["client_secret_basic", "client_secret_post", "private_key_jwt"],
                "code_challenge_methods_supported": ["S256", "plain"],
            })
        },
        token_path: "/oauth/token",
        form: IN_HEADER,
    },
    Provider {
        path: "/2f3c1b7e-5d0a-4c8e-9b1f-6a7d8e9f0a1b/v2.0",
        document: |url| {
            let tenant = url.trim_end_matches("/v2.0");
            json!({
                "issuer": url,
                "authorization_endpoint": format!("{tenant}/oauth2/v2.0/authorize"),
                "token_endpoint": format!("{tenant}/oauth2/v2.0/token"),
                "device_authorization_endpoint": format!("{tenant}/oauth2/v2.0/devicecode"),
                "token_endpoint_auth_methods_supported":
                    ["client_secret_post", "private_key_jwt", "client_secret_basic"],
            })
        },
        token_path: "/2f3c1b7e-5d0a-4c8e-9b1f-6a7d8e9f0a1b/oauth2/v2.0/token",
        form: IN_HEADER,
    },
];

#[test]
fn clients_log_in_at_the_endpoint_of_each_provider() {
    for provider in PROVIDERS {
        let Provider {
            path,
            document,
            token_path,
            form,
        } = provider;
        let stub = Stub::start(move |request, _, url| {
            let issuer = format!("{url}{path}");
            let document_line = format!("GET {path}/.well-known/openid-configuration");
            let body = match request.line.as_str() {
                "GET /info" => json!({"auth-server": {"url": issuer}}),
                line if line == document_line => document(&issuer),
                line if line == format!("POST {token_path}") => return tokens(),
                _ => return Reply::new(404, ""),
            };
            Reply::new(200, &body.to_string())
        });
        let login = "login --client-id ci";
        shell(&stub).run_with(login, "secret").expect(0);
        let requests = requests_at(&stub, &format!("POST {token_path}"));
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].body, form, "{path}");
        let has_header = requests[0].head.contains("authorization: basic");
        assert_eq!(has_header, form == IN_HEADER, "{path}");
    }
}
