//! Dry runs: they list the credentials to regenerate, change nothing, and fail like the real run.

use keywright_harness::{BadPlugin, Options, Server, Text, until};
use reqwest::Method;
use serde_json::{Value, json};

use super::{BULK_REGENERATE, names};
use crate::{
    certificates::Certificate,
    external_certificates::{self, Signing},
};

/// Asserts that a dry run and a real run fail with the same status and error, which contains these words, and that neither
/// changes anything. Returns the error.
async fn refused(server: &Server, body: Value, status: u16, words: &[&str]) -> String {
    let before = server.all_versions().await;
    let mut dry_run = body.clone();
    dry_run["dry_run"] = json!(true);
    let [checked, done] = [dry_run, body].map(|body| server.post(BULK_REGENERATE, body));
    let error = checked.await.expect(status).error();
    assert_eq!(error, done.await.expect(status).error());
    assert_eq!(server.all_versions().await, before);
    for words in words {
        error.assert_contains(words);
    }
    error
}

fn below_root() -> Value {
    json!({"signed_by": "/root"})
}

#[tokio::test]
async fn a_dry_run_lists_signed_certificates_and_changes_nothing() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_authority("/inner", Some("/root")).await;
    server.generate_leaf("/leaf", "/inner").await;
    let before = server.all_versions().await;
    let body = json!({"signed_by": "/root", "dry_run": true});
    let response = server.post(BULK_REGENERATE, body).await.expect(200);
    let expected = json!({"regenerated_credentials": ["/inner", "/leaf"], "dry_run": true});
    assert_eq!(response.json(), expected);
    assert_eq!(server.all_versions().await, before);
    let body = json!({"signed_by": "/root", "dry_run": false});
    let response = server.post(BULK_REGENERATE, body).await.expect(200);
    let expected = json!({"regenerated_credentials": ["/inner", "/leaf"]});
    assert_eq!(response.json(), expected);
}

/// The stored version of `/inner` has no private key, but its new version will have one.
#[tokio::test]
async fn a_dry_run_accepts_a_ca_whose_stored_version_cannot_sign() {
    let server = Server::reused().await;
    let root = external_certificates::authority("root");
    let inner = root.sign_authority("inner");
    server.stored("/root", "certificate", root.value()).await;
    server.generate_authority("/inner", Some("/root")).await;
    server.generate_leaf("/leaf", "/inner").await;
    let value = json!({"certificate": inner.certificate, "ca_name": "/root"});
    server.stored("/inner", "certificate", value).await;
    let body = json!({"signed_by": "/root", "dry_run": true});
    let expected = ["/inner", "/leaf"];
    assert_eq!(names(&server.post(BULK_REGENERATE, body).await), expected);
    assert_eq!(names(&server.bulk_regenerate("/root").await), expected);
}

// Refusals that a dry run shares with the real run.

#[tokio::test]
async fn missing_permissions_are_403_and_404() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_authority("/inner", Some("/root")).await;
    server.generate_leaf("/leaf", "/inner").await;
    let caller = server.as_client("app").await;
    for (path, operation, status) in [
        ("/unrelated", "read", 404),
        ("/root", "read", 403),
        ("/inner", "write", 404),
        ("/*", "read", 403),
        ("/leaf", "write", 200),
    ] {
        server.grant(path, caller.actor(), &[operation]).await;
        let [checked, done] = [true, false].map(|is_dry_run| {
            let body = json!({"signed_by": "/root", "dry_run": is_dry_run});
            caller.post(BULK_REGENERATE, body)
        });
        let (checked, done) = (checked.await, done.await);
        assert_eq!((checked.status, done.status), (status, status), "{path}");
        if status != 200 {
            assert_eq!(checked.error(), done.error());
        }
    }
}

#[tokio::test]
async fn an_unreadable_ca_of_another_chain_is_404() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_authority("/other", None).await;
    server.generate_leaf("/moved", "/root").await;
    server.generate_leaf("/moved", "/other").await;
    let caller = server.as_client("app").await;
    server.grant("/root", caller.actor(), &["read"]).await;
    server.grant("/moved", caller.actor(), &["write"]).await;
    let mut errors = Vec::new();
    for is_dry_run in [true, false] {
        let body = json!({"signed_by": "/root", "dry_run": is_dry_run});
        let response = caller.post(BULK_REGENERATE, body).await;
        errors.push(response.expect(404).error());
    }
    assert!(errors[0].contains("/moved"), "{errors:?}");
    assert_eq!(errors[0], errors[1]);
}

#[tokio::test]
async fn a_plugin_still_configured_or_a_type_without_one_is_400() {
    let bad = BadPlugin::of("password");
    let server = bad.server().await;
    server.generated("/a", "password", json!({})).await;
    refused(
        &server,
        json!({"generated_by": bad.digest()}),
        400,
        &["configure another plugin", "password"],
    )
    .await;

    let options = Options::default().without_plugins();
    let server = Server::start_in(server.stop().await, &options).await;
    refused(
        &server,
        json!({"generated_by": bad.digest()}),
        400,
        &["/a failed: type must be one of"],
    )
    .await;
}

#[tokio::test]
async fn a_ca_that_cannot_sign_is_400_or_404() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_leaf("/leaf", "/root").await;
    let root = external_certificates::authority("root");
    let leaf = root.sign_leaf("root");
    for (value, rule) in [
        (root.public(), "private_key"),
        (leaf.value(), "is not a CA certificate"),
    ] {
        server.stored("/root", "certificate", value).await;
        refused(&server, below_root(), 400, &["/leaf", rule]).await;
    }
    server.delete("/api/v1/data?name=/root").await.expect(204);
    refused(&server, below_root(), 404, &["/leaf"]).await;
}

#[tokio::test]
async fn a_ca_with_only_a_transitional_version_is_404() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_leaf("/leaf", "/root").await;
    let root = Certificate::named(&server, "/root").await;
    root.move_transitional(json!("latest")).await.expect(200);
    refused(&server, below_root(), 404, &["/leaf"]).await;
    root.move_transitional(Value::Null).await.expect(200);
    assert_eq!(names(&server.bulk_regenerate("/root").await), ["/leaf"]);
}

#[tokio::test]
async fn dry_and_real_runs_report_the_same_of_several_failures() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_authority("/middle", Some("/root")).await;
    server.generate_leaf("/a", "/middle").await;
    let elsewhere = external_certificates::authority("elsewhere");
    for number in 0..6 {
        let name = format!("/leaf/{number}");
        server.generate_leaf(&name, "/root").await;
        let made = elsewhere.sign_leaf("leaf");
        let value = json!({"certificate": made.certificate, "ca": elsewhere.certificate});
        server.stored(&name, "certificate", value).await;
    }
    let first = refused(&server, below_root(), 400, &["/leaf/"]).await;
    for _ in 0..4 {
        assert_eq!(refused(&server, below_root(), 400, &[]).await, first);
    }
}

// A misbehaving plugin, with a credential that the CA signed.

/// Starts a server with a CA and the credential `/a` of type `hostile` that it signed, and restarts the server with these
/// options.
async fn server_with(options: Options) -> Server {
    let server = Server::start_with(&Options::default().hostile("", "")).await;
    server.generate_authority("/root", None).await;
    let parameters = json!({"ca": "/root"});
    server.generated("/a", "hostile", parameters).await;
    Server::start_in(server.stop().await, &options).await
}

#[tokio::test]
async fn a_failing_recoverer_is_500() {
    let server = server_with(Options::default().hostile("", "recover = \"trap\"")).await;
    refused(
        &server,
        below_root(),
        500,
        &["/a failed: the plugin hostile"],
    )
    .await;
}

#[tokio::test]
async fn stored_parameters_that_the_plugin_refuses_are_400() {
    let newer = BadPlugin::of("hostile");
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\", \"signing\"]\nderived = true\n\
         settings = {{ normalize = \"refuse-parameters\" }}",
        newer.path().display()
    );
    let server = server_with(Options::default().generator("hostile", &section)).await;
    refused(
        &server,
        below_root(),
        400,
        &["/a", "does not accept the stored parameters"],
    )
    .await;
}

/// The plugin exports no recoverer, so generation is its only call. A dry run checks the size of that call's input without
/// making the call.
#[tokio::test]
async fn parameters_that_exceed_a_lowered_limit_are_413() {
    let section = |limits: &str| {
        Options::default().plugin("app-svid", "svid", &["random", "signing"], limits)
    };
    let server = Server::start_with(&section("")).await;
    server.generate_authority("/root", None).await;
    let spiffe_id = format!("spiffe://example.org/{}", "w".repeat(1_200));
    let parameters = json!({"ca": "/root", "spiffe_id": spiffe_id});
    server.generated("/a", "app-svid", parameters).await;
    let lowered = section("limits = { input_bytes_max = 1024 }");
    let server = Server::start_in(server.stop().await, &lowered).await;
    refused(&server, below_root(), 413, &["/a"]).await;
}

#[tokio::test]
async fn an_open_circuit_is_503() {
    let options = Options::default()
        .hostile("", "generate = \"trap\"")
        .environment("KEYWRIGHT_PLUGINS__FAULTS_MAX", "1");
    let server = server_with(options).await;
    let trapped = server.generate("/b", "hostile", json!({})).await;
    trapped.expect(500);
    refused(&server, below_root(), 503, &["/a", "temporarily disabled"]).await;
}

#[tokio::test]
async fn bulk_regenerations_beyond_the_limits_are_429_and_503() {
    let endless = Options::default().hostile("deadline_ms = 600000", "generate = \"loop\"");
    let server = server_with(endless).await;
    let mut busy = Vec::new();
    for name in ["one", "two"] {
        let caller = server.as_client(name).await;
        server.grant("/*", caller.actor(), &["read", "write"]).await;
        let request = caller.request(Method::POST, BULK_REGENERATE);
        let request = request.body(below_root().to_string());
        // One of the dry runs below may be in progress, so this request is repeated until it is accepted.
        tokio::spawn(async move {
            while let Ok(response) = request.try_clone().unwrap().send().await
                && response.status() == 429
            {}
        });
        busy.push(caller);
    }
    let dry_run = json!({"signed_by": "/root", "dry_run": true});
    for caller in busy {
        let is_refused = async || caller.post(BULK_REGENERATE, dry_run.clone()).await.status != 200;
        until("refusal", is_refused).await;
        let refused = caller.post(BULK_REGENERATE, below_root()).await;
        refused.expect_error(429, "of this caller");
        assert!(refused.header("retry-after").is_some(), "{refused:?}");
    }
    refused(&server, below_root(), 503, &["too many bulk regenerations"]).await;
}

#[tokio::test]
async fn a_dry_run_does_not_predict_a_failing_generation() {
    let server = server_with(Options::default().hostile("", "generate = \"trap\"")).await;
    let body = json!({"signed_by": "/root", "dry_run": true});
    assert_eq!(names(&server.post(BULK_REGENERATE, body).await), ["/a"]);
    server.bulk_regenerate("/root").await.expect(500);
}
