//! Providers whose tokens use other claims than UAA's.

use keywright_harness::{Options, Server};
use serde_json::{Value, json};

use super::mint::{Mint, expect_refused, present};

#[tokio::test]
async fn scopes_are_of_the_configured_form_and_name() {
    let both = json!(["credhub.read", "credhub.write"]);
    let (invalid, insufficient) = (Some("invalid_token"), Some("insufficient_scope"));
    for (settings, claim, scopes, code) in [
        ("", "scope", both.clone(), None),
        ("", "scope", json!("credhub.read credhub.write"), invalid),
        ("", "scp", both.clone(), insufficient),
        (r#"scope = "scp""#, "scp", both.clone(), None),
        (r#"scope = "scp""#, "scope", both.clone(), insufficient),
        (r#"scope_form = "text""#, "scope", both.clone(), invalid),
        (
            r#"scope_form = "text""#,
            "scope",
            json!("credhub.write x credhub.read"),
            None,
        ),
        (
            r#"scope_form = "text""#,
            "scope",
            json!("credhub.read,credhub.write"),
            insufficient,
        ),
        (
            r#"scope_form = "text""#,
            "scope",
            json!("credhub.read\tcredhub.write"),
            insufficient,
        ),
        (
            r#"scope_form = "text""#,
            "scope",
            json!("Credhub.read credhub.write"),
            insufficient,
        ),
        (r#"scope_form = "text""#, "scope", json!(""), insufficient),
        (r#"scope_form = "text""#, "scope", json!(1), invalid),
    ] {
        let server = server_with(&format!("[authentication.claims]\n{settings}")).await;
        let mint = Mint::of(&server).await;
        let mut claims = mint.claims_with("scope", Value::Null);
        claims[claim] = scopes;
        let token = mint.token(&claims);
        match code {
            Some(code) => expect_refused(&server, &token, code, settings).await,
            None => drop(present(&server, &token).await.expect(200)),
        }
    }
}

#[tokio::test]
async fn other_scopes_can_be_required_and_the_challenge_names_them() {
    let server = server_with(r#"scopes_required = ["secrets"]"#).await;
    let mint = Mint::of(&server).await;
    for (scope, status) in [("secrets", 200), ("credhub.read", 403), ("secret", 403)] {
        let token = mint.token(&mint.claims_with("scope", json!([scope])));
        let answer = present(&server, &token).await.expect(status);
        if status == 403 {
            let challenge = answer.header("www-authenticate").unwrap();
            assert!(challenge.contains(r#"scope="secrets""#), "{challenge}");
        }
    }
    present(&server, server.token()).await.expect(200);
}

#[tokio::test]
async fn configured_grant_types_distinguish_clients_from_users() {
    for (settings, claims, is_let_in) in [
        ("", json!({"grant_type": "authorization_code"}), false),
        (
            r#"of_users = ["password", "authorization_code"]"#,
            json!({"grant_type": "authorization_code", "user_id": "u"}),
            true,
        ),
        (
            r#"of_users = ["password", "authorization_code"]"#,
            json!({"grant_type": "authorization_code", "user_id": null}),
            false,
        ),
        (
            r#"when_absent = "client""#,
            json!({"grant_type": null}),
            true,
        ),
        (
            r#"when_absent = "user""#,
            json!({"grant_type": null}),
            false,
        ),
        (
            r#"when_absent = "user""#,
            json!({"grant_type": null, "user_id": "u"}),
            true,
        ),
        (
            r#"when_absent = "user""#,
            json!({"grant_type": ["password"], "user_id": "u"}),
            false,
        ),
        (
            r#"of_clients = ["*"]"#,
            json!({"grant_type": "anything"}),
            true,
        ),
        (
            r#"of_clients = ["*"]"#,
            json!({"grant_type": "password"}),
            false,
        ),
        (r#"of_clients = ["*"]"#, json!({"grant_type": null}), false),
        (
            r#"claim = "idtyp""#,
            json!({"idtyp": "client_credentials", "grant_type": "x"}),
            true,
        ),
        (r#"claim = "idtyp""#, json!({}), false),
    ] {
        let server = server_with(&format!("[authentication.claims.grant_type]\n{settings}")).await;
        let mint = Mint::of(&server).await;
        let mut token_claims = mint.claims();
        let members = token_claims.as_object_mut().unwrap();
        for (name, value) in claims.as_object().unwrap() {
            members.insert(name.clone(), value.clone());
        }
        members.retain(|_, value| !value.is_null());
        let token = mint.token(&token_claims);
        if is_let_in {
            present(&server, &token).await.expect(200);
        } else {
            expect_refused(&server, &token, "invalid_token", settings).await;
        }
    }
}

#[test]
fn invalid_claim_rules_are_refused_at_start() {
    for (settings, expected) in [
        ("scopes_required = []", "audience"),
        (r#"scopes_required = ["a b"]"#, "scopes_required"),
        (r#"audience = """#, "audience"),
        ("[authentication.claims]\nuser_id = \"\"", "claims.user_id"),
        ("[authentication.claims]\nuser = \"sub\"", "user"),
        (
            "[authentication.claims]\nscope_form = \"list\"",
            "scope_form",
        ),
        (
            "[authentication.claims.grant_type]\nof_clients = [\"password\"]",
            "of_users",
        ),
        (
            "[authentication.claims.grant_type]\nof_clients = []\nof_users = []",
            "lists no grant types",
        ),
        (
            "[authentication.claims]\nclient_subjects = [\"a\"]\n[authentication.claims.grant_type]\nclaim = \"gty\"",
            "exclude each other",
        ),
    ] {
        let log = Server::refusal(&Options::default().authentication_settings(settings));
        assert!(log.contains(expected), "{settings}: {log}");
    }
}

async fn server_with(settings: &str) -> Server {
    Server::start_with(&Options::default().authentication_settings(settings)).await
}
