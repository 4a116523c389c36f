//! Discovery documents of UAA, Keycloak, Auth0 and Entra ID, reduced to the fields that a login reads.

use serde_json::{Value, json};

use super::openid::{asked_at, shell, tokens};
use crate::stub::{Reply, Stub};

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
        let stub = Stub::start(move |asked, _, url| {
            let issuer = format!("{url}{path}");
            let document_line = format!("GET {path}/.well-known/openid-configuration");
            let body = match asked.line.as_str() {
                "GET /info" => json!({"auth-server": {"url": issuer}}),
                line if line == document_line => document(&issuer),
                line if line == format!("POST {token_path}") => return tokens(),
                _ => return Reply::new(404, ""),
            };
            Reply::new(200, &body.to_string())
        });
        let login = ["login", "--client-id", "ci"];
        shell(&stub).run_with(&login, "secret").expect(0);
        let asked = asked_at(&stub, &format!("POST {token_path}"));
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].body, form, "{path}");
        let has_header = asked[0].head.contains("authorization: basic");
        assert_eq!(has_header, form == IN_HEADER, "{path}");
    }
}
