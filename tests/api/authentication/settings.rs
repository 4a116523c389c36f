//! Settings for other token formats and keys.

use std::fs;

use jsonwebtoken::{Algorithm, EncodingKey};
use keywright_harness::{
    Commanded, Options, Server, identity_provider_recipe, key_file,
    mint::{self, Mint, expect_refused, present, sign, signing_key},
};
use reqwest::Method;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{Signer, StubProvider};

// Providers whose tokens use other claims than UAA's.

#[tokio::test]
async fn scopes_must_have_the_configured_claim_name_and_form() {
    let both = || json!(["credhub.read", "credhub.write"]);
    let (invalid, insufficient) = (Some("invalid_token"), Some("insufficient_scope"));
    let as_list = vec![
        ("scope", both(), None),
        ("scope", json!("credhub.read credhub.write"), invalid),
        ("scp", both(), insufficient),
    ];
    let renamed = vec![("scp", both(), None), ("scope", both(), insufficient)];
    let as_text = [
        (both(), invalid),
        (json!("credhub.write x credhub.read"), None),
        (json!("credhub.read,credhub.write"), insufficient),
        (json!("credhub.read\tcredhub.write"), insufficient),
        (json!("Credhub.read credhub.write"), insufficient),
        (json!(""), insufficient),
        (json!(1), invalid),
    ];
    let as_text = as_text.map(|(scopes, code)| ("scope", scopes, code));
    for (settings, cases) in [
        ("", as_list),
        (r#"scope = "scp""#, renamed),
        (r#"scope_form = "text""#, as_text.into()),
    ] {
        let server = server_with(&format!("[authentication.claims]\n{settings}")).await;
        let mint = Mint::of(&server).await;
        for (claim, scopes, code) in cases {
            let mut claims = mint.claims_with("scope", Value::Null);
            claims[claim] = scopes;
            let token = mint.token(&claims);
            match code {
                Some(code) => expect_refused(&server, &token, code, settings).await,
                None => drop(present(&server, &token).await.expect(200)),
            }
        }
    }
}

#[tokio::test]
async fn other_scopes_can_be_required_and_the_challenge_names_them() {
    let server = server_with(r#"scopes_required = ["secrets"]"#).await;
    let mint = Mint::of(&server).await;
    for (scope, status) in [("secrets", 200), ("credhub.read", 403), ("secret", 403)] {
        let token = mint.token(&mint.claims_with("scope", json!([scope])));
        let response = present(&server, &token).await.expect(status);
        if status == 403 {
            let challenge = response.header("www-authenticate").unwrap();
            assert!(challenge.contains(r#"scope="secrets""#), "{challenge}");
        }
    }
    present(&server, server.token()).await.expect(200);
}

/// Settings for grant types, claims of a token, and whether it is accepted.
const GRANT_TYPES: &str = r#"
     | {"grant_type": "authorization_code"} | refused
     | {"grant_type": "*"} | refused
     | {"client_id": "x"} | accepted
     | {"client_id": "x", "user_id": "u"} | accepted
     | {"grant_type": "password", "user_id": "u"} | accepted
     | {"client_id": null, "user_id": "u"} | refused
     | {"client_id": ""} | refused
     | {"grant_type": "password"} | refused
     | {"grant_type": "password", "user_id": ""} | refused
     | {"grant_type": "implicit", "user_id": "u"} | refused
     | {"grant_type": "authorization_code", "user_id": "u"} | refused
     | {"grant_type": "PASSWORD", "user_id": "u"} | refused
     | {"grant_type": "", "user_id": "u"} | refused
     | {"grant_type": null, "user_id": "u"} | refused
    of_users = ["*"] | {"grant_type": "client_credentials"} | accepted
    of_users = ["*"] | {"grant_type": "authorization_code"} | refused
    of_users = ["*"] | {"grant_type": "", "user_id": "u"} | accepted
    of_users = ["password", "authorization_code"] | {"grant_type": "authorization_code", "user_id": "u"} | accepted
    of_users = ["password", "authorization_code"] | {"grant_type": "authorization_code", "user_id": null} | refused
    when_absent = "client" | {"grant_type": null} | accepted
    when_absent = "user" | {"grant_type": null} | refused
    when_absent = "user" | {"grant_type": null, "user_id": "u"} | accepted
    when_absent = "user" | {"grant_type": ["password"], "user_id": "u"} | refused
    of_clients = ["*"] | {"grant_type": "anything"} | accepted
    of_clients = ["*"] | {"grant_type": "password"} | refused
    of_clients = ["*"] | {"grant_type": null} | refused
    claim = "idtyp" | {"idtyp": "client_credentials", "grant_type": "x"} | accepted
    claim = "idtyp" | {} | refused
"#;

#[tokio::test]
async fn configured_grant_types_distinguish_clients_from_users() {
    let rows = GRANT_TYPES.trim_matches('\n').lines().map(str::trim_start);
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split("| ").collect()).collect();
    for rows in rows.chunk_by(|one, other| one[0] == other[0]) {
        let settings = rows[0][0];
        let server = server_with(&format!("[authentication.claims.grant_type]\n{settings}")).await;
        let mint = Mint::of(&server).await;
        for row in rows {
            let mut claims = mint.claims();
            let fields = claims.as_object_mut().unwrap();
            fields.extend(serde_json::from_str::<Map<_, _>>(row[1]).unwrap());
            fields.retain(|_, value| !value.is_null());
            let token = mint.token(&claims);
            if row[2] == "accepted" {
                present(&server, &token).await.expect(200);
            } else {
                expect_refused(&server, &token, "invalid_token", &row.concat()).await;
            }
        }
    }
}

async fn server_with(settings: &str) -> Server {
    Server::start_with(&Options::default().authentication_settings(settings)).await
}

// The settings for identity providers in the operator's guide, with tokens of the shape that each provider issues.

/// A server with the settings from the guide, and a stub provider.
struct Configured {
    server: Server,
    provider: StubProvider,
    key: Signer,
}

impl Configured {
    /// Starts a server and a provider. Each of these actors may write below its own path.
    async fn of(recipe: &str, key: Signer, actors: &[&str]) -> Self {
        let provider = StubProvider::start("", &[&key]);
        let mut options = Options::default()
            .identity_provider(&provider.url())
            .authentication_settings(&identity_provider_recipe(recipe));
        for actor in actors {
            options = options.extra(&format!(
                "[[authorization.permissions]]\npath = \"/{}/*\"\nactors = [\"{actor}\"]\noperations = [\"write\"]",
                path(actor),
            ));
        }
        Self {
            server: Server::start_with(&options).await,
            provider,
            key,
        }
    }

    /// Returns a token with these claims, and with `iss`, `iat` and `exp`.
    fn token(&self, claims: &Value) -> String {
        let mut all = self.provider.claims();
        let fields = all.as_object_mut().unwrap();
        fields.retain(|name, _| ["iss", "iat", "exp"].contains(&name.as_str()));
        fields.extend(claims.as_object().unwrap().clone());
        self.key.token(&all)
    }

    /// Asserts the actor of a token: the token permits writing only below the actor's path.
    async fn expect_actor(&self, claims: &Value, actor: &str, others: &[&str]) {
        let token = self.token(claims);
        for (other, status) in others
            .iter()
            .map(|other| (*other, 403))
            .chain([(actor, 200)])
        {
            let body =
                json!({"name": format!("/{}/a", path(other)), "type": "value", "value": "v"});
            let request = self.server.request(Method::PUT, "/api/v1/data");
            let request = request
                .header("content-type", "application/json")
                .bearer_auth(&token)
                .body(body.to_string());
            let response = self.server.send(request).await;
            assert_eq!(response.status, status, "{claims} as {other}: {response:?}");
        }
    }

    async fn expect_refused(&self, claims: &Value, code: &str) {
        let token = self.token(claims);
        expect_refused(&self.server, &token, code, &claims.to_string()).await;
    }
}

/// Returns the path of an actor; credential names can't contain a colon.
fn path(actor: &str) -> String {
    actor.replace([':', '|', '@'], "_")
}

/// Returns the claims with one claim replaced.
fn with(claims: &Value, name: &str, value: Value) -> Value {
    let mut changed = claims.clone();
    changed[name] = value;
    changed
}

#[tokio::test]
async fn settings_in_the_guide_map_uaa_tokens_to_actors() {
    let (client, user) = (
        "uaa-client:ci",
        "uaa-user:7f8b2c1d-0a3e-4b5c-9d6f-1e2a3b4c5d6e",
    );
    let uaa = Configured::of("UAA", Signer::rsa("key-1"), &[client, user]).await;
    let scope = json!(["credhub.read", "credhub.write"]);
    let client_claims = json!({
        "jti": "a1", "sub": "ci", "authorities": scope, "scope": scope, "client_id": "ci", "cid": "ci", "azp": "ci",
        "grant_type": "client_credentials", "zid": "uaa", "aud": ["ci", "credhub"],
    });
    let id = "7f8b2c1d-0a3e-4b5c-9d6f-1e2a3b4c5d6e";
    let user_claims = json!({
        "jti": "a2", "sub": id, "scope": scope, "client_id": "credhub_cli", "cid": "credhub_cli", "azp": "credhub_cli",
        "grant_type": "password", "user_id": id, "origin": "uaa", "user_name": "alice", "aud": ["credhub_cli", "credhub"],
    });
    uaa.expect_actor(&client_claims, client, &[user]).await;
    uaa.expect_actor(&user_claims, user, &[client]).await;
    let as_client = with(&user_claims, "sub", json!("ci"));
    uaa.expect_actor(&as_client, user, &[client]).await;
    let other = with(&user_claims, "grant_type", json!("authorization_code"));
    uaa.expect_refused(&other, "invalid_token").await;
}

#[tokio::test]
async fn settings_in_the_guide_map_keycloak_tokens_to_actors() {
    let (client, user) = (
        "uaa-client:ci",
        "uaa-user:1b2c3d4e-5f60-4718-8293-a4b5c6d7e8f9",
    );
    let keycloak = Configured::of("Keycloak", Signer::rsa("k"), &[client, user]).await;
    let client_claims = json!({
        "jti": "trrtcc:a1", "aud": ["keywright", "account"], "sub": "5e6f7081-92a3-44b5-8c6d-7e8f90a1b2c3", "typ": "Bearer",
        "azp": "ci", "acr": "1", "scope": "email credhub.read profile credhub.write", "client_id": "ci",
        "clientHost": "127.0.0.1", "clientAddress": "127.0.0.1", "preferred_username": "service-account-ci",
    });
    let user_claims = json!({
        "jti": "onrtac:a2", "aud": ["keywright", "account"], "sub": "1b2c3d4e-5f60-4718-8293-a4b5c6d7e8f9", "typ": "Bearer",
        "azp": "cli", "sid": "s", "acr": "1", "scope": "openid credhub.read credhub.write", "preferred_username": "ci",
    });
    keycloak.expect_actor(&client_claims, client, &[user]).await;
    keycloak.expect_actor(&user_claims, user, &[client]).await;
    let through_ci = with(&user_claims, "azp", json!("ci"));
    keycloak.expect_actor(&through_ci, user, &[client]).await;
    let for_another = with(&client_claims, "aud", json!("account"));
    keycloak.expect_refused(&for_another, "invalid_token").await;
    let without_scopes = with(&client_claims, "scope", json!("email profile"));
    keycloak
        .expect_refused(&without_scopes, "insufficient_scope")
        .await;
}

#[tokio::test]
async fn settings_in_the_guide_map_auth0_tokens_to_actors() {
    let (client, user) = (
        "uaa-client:my_client_id",
        "uaa-user:auth0|507f1f77bcf86cd799439020",
    );
    let auth0 = Configured::of("Auth0", Signer::rsa("a"), &[client, user]).await;
    let client_claims = json!({
        "sub": "my_client_id@clients", "aud": "https://keywright.example", "azp": "my_client_id",
        "gty": "client-credentials", "scope": "credhub.read credhub.write",
    });
    let user_claims = json!({
        "sub": "auth0|507f1f77bcf86cd799439020", "azp": "my_client_id",
        "aud": ["https://keywright.example", "https://example.auth0.com/userinfo"],
        "scope": "openid credhub.read credhub.write",
    });
    auth0.expect_actor(&client_claims, client, &[user]).await;
    auth0.expect_actor(&user_claims, user, &[client]).await;
    let by_password = with(&user_claims, "gty", json!("password"));
    auth0.expect_actor(&by_password, user, &[client]).await;
    for (claim, value, code) in [
        ("scope", json!("openid credhub.read"), "insufficient_scope"),
        (
            "scope",
            json!(["credhub.read", "credhub.write"]),
            "invalid_token",
        ),
        (
            "aud",
            json!("https://example.auth0.com/userinfo"),
            "invalid_token",
        ),
        ("azp", json!(""), "invalid_token"),
        ("gty", json!("something-else"), "invalid_token"),
    ] {
        auth0
            .expect_refused(&with(&client_claims, claim, value), code)
            .await;
    }
}

#[tokio::test]
async fn settings_in_the_guide_map_entra_id_tokens_to_actors() {
    let (client, user) = (
        "uaa-client:1a2b3c4d-5e6f-4708-91a2-b3c4d5e6f708",
        "uaa-user:44444444-5555-4666-8777-888888888888",
    );
    let entra = Configured::of("Entra ID", Signer::rsa("e"), &[client, user]).await;
    let audience = "9a8b7c6d-5e4f-4a3b-8c2d-1e0f9a8b7c6d";
    let client_claims = json!({
        "aud": audience, "azp": "1a2b3c4d-5e6f-4708-91a2-b3c4d5e6f708", "azpacr": "1", "idtyp": "app",
        "oid": "99999999-8888-4777-8666-555555555555", "sub": "99999999-8888-4777-8666-555555555555",
        "roles": ["keywright"], "tid": "2f3c1b7e-5d0a-4c8e-9b1f-6a7d8e9f0a1b", "ver": "2.0",
    });
    let user_claims = json!({
        "aud": audience, "azp": "0f1e2d3c-4b5a-4968-8776-655443322110", "azpacr": "0",
        "oid": "44444444-5555-4666-8777-888888888888", "sub": "pairwise", "scp": "access",
        "preferred_username": "alice@example.com", "tid": "2f3c1b7e-5d0a-4c8e-9b1f-6a7d8e9f0a1b", "ver": "2.0",
    });
    entra.expect_actor(&client_claims, client, &[user]).await;
    entra.expect_actor(&user_claims, user, &[client]).await;
    let named = with(&user_claims, "idtyp", json!("user"));
    entra.expect_actor(&named, user, &[client]).await;
    let for_another = with(
        &client_claims,
        "aud",
        json!("00000003-0000-0000-c000-000000000000"),
    );
    entra.expect_refused(&for_another, "invalid_token").await;
}

#[tokio::test]
async fn equal_sub_and_client_id_mean_a_client_only_if_configured() {
    let (client, user, named) = ("uaa-client:ci", "uaa-user:alice", "uaa-user:ci");
    let actors = [client, user, named, "uaa-client:cli"];
    let rfc9068 = Configured::of("oidc-provider", Signer::p256("e"), &actors).await;
    let claims = |subject: &str, client_id: &str| {
        json!({
            "jti": "a", "sub": subject, "client_id": client_id, "aud": "https://keywright.example",
            "scope": "credhub.read credhub.write",
        })
    };
    rfc9068
        .expect_actor(&claims("ci", "ci"), client, &[user, named])
        .await;
    rfc9068
        .expect_actor(&claims("alice", "cli"), user, &[client, named])
        .await;
    // A user whose id equals a client's id remains a user. A user's log-in through a client does not
    // authenticate the client.
    rfc9068
        .expect_actor(&claims("ci", "cli"), named, &[client, user])
        .await;
    rfc9068
        .expect_actor(&claims("alice", "ci"), user, &[client, named])
        .await;
    for (subject, client_id) in [("cli", "cli"), ("*", "*"), ("CI", "CI"), ("", "")] {
        let refused = claims(subject, client_id);
        rfc9068.expect_refused(&refused, "invalid_token").await;
    }
    let grant_type = with(
        &claims("alice", "cli"),
        "grant_type",
        json!("client_credentials"),
    );
    rfc9068.expect_actor(&grant_type, user, &[client]).await;
}

#[tokio::test]
async fn an_asterisk_in_client_subjects_matches_every_client() {
    let key = Signer::rsa("a");
    let provider = StubProvider::start("", &[&key]);
    let claims = provider.claims();
    for (listed, status) in [("other", 401), ("*", 200)] {
        let setting = format!("claims.client_subjects = [\"{listed}\"]");
        let options = provider.options().authentication_settings(&setting);
        let server = Server::start_with(&options).await;
        let response = present(&server, &key.token(&claims)).await;
        assert_eq!(response.status, status, "{listed}: {response:?}");
    }
}

// A server that verifies tokens with a configured key and without a provider.

const ISSUER: &str = "https://issuer.example/oauth/token";

#[tokio::test]
async fn a_configured_key_verifies_tokens_without_a_provider() {
    let rsa = fs::read_to_string(key_file("token-signing-key.pem")).unwrap();
    let p256 = private_key(&["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    let ec_key = EncodingKey::from_ec_pem(p256.as_bytes()).unwrap();
    let rsa_key = signing_key();
    let (rs256, es256) = ((Algorithm::RS256, "ES256"), (Algorithm::ES256, "RS256"));
    for (private_key, form, key, (algorithm, other_algorithm)) in [
        (&rsa, &["pkey", "-pubout"], &rsa_key, rs256),
        (&rsa, &["rsa", "-RSAPublicKey_out"], &rsa_key, rs256),
        (&p256, &["pkey", "-pubout"], &ec_key, es256),
    ] {
        let public_key = public(private_key, form);
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("key.pem"), public_key).unwrap();
        let server = Server::start_in(directory, &options("key.pem")).await;
        let name = format!("{algorithm:?}");
        let token =
            |header: Value, issuer: &str| sign(&header, &mint::claims(issuer), algorithm, key);
        for header in [json!({"alg": name}), json!({"alg": name, "kid": "any"})] {
            present(&server, &token(header, ISSUER)).await.expect(200);
        }
        for issuer in [
            "https://issuer.example",
            "https://issuer.example/oauth/token/",
            "",
        ] {
            let token = token(json!({"alg": name}), issuer);
            expect_refused(&server, &token, "invalid_token", issuer).await;
        }
        let confused = token(json!({"alg": other_algorithm}), ISSUER);
        expect_refused(&server, &confused, "invalid_token", &name).await;
    }
}

#[test]
fn an_unusable_configured_key_is_refused_at_start() {
    let p384 = private_key(&["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"]);
    let short = private_key(&["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"]);
    let ed25519 = private_key(&["-algorithm", "ED25519"]);
    let rsa = fs::read_to_string(key_file("token-signing-key.pem")).unwrap();
    let neither = "neither an RSA nor a P-256 public key";
    for (content, expected) in [
        (fs::read_to_string(key_file("server.pem")).unwrap(), neither),
        (rsa, neither),
        (public(&p384, &["pkey", "-pubout"]), neither),
        (public(&ed25519, &["pkey", "-pubout"]), neither),
        (
            public(&short, &["pkey", "-pubout"]),
            "must have 2048 to 8192 bits",
        ),
        (
            "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n".to_owned(),
            neither,
        ),
        (String::new(), neither),
    ] {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("key.pem");
        fs::write(&file, &content).unwrap();
        let log = Server::refusal(&options(file.to_str().unwrap()));
        assert!(log.contains(expected), "{content}: {log}");
    }
}

fn private_key(kind: &[&str]) -> String {
    Commanded::run("openssl", &[&["genpkey"], kind].concat(), "")
        .expect(0)
        .output
}

fn public(private_key: &str, command: &[&str]) -> String {
    Commanded::run("openssl", command, private_key)
        .expect(0)
        .output
}

fn options(public_key: &str) -> Options {
    Options::default()
        .identity_provider("https://127.0.0.1:1/identity")
        .extra(&format!(
            "[authentication.static_key]\npublic_key = \"{public_key}\"\nissuer = \"{ISSUER}\"\n"
        ))
}
