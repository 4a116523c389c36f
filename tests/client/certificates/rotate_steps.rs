//! The steps of `keywright certificates rotate`: which credentials below a CA it regenerates, how many steps it takes, and
//! when it refuses.

use std::{fs, os::unix::fs::PermissionsExt};

use keywright_harness::{Options, ReusedServer, Server, Shell, Text, field};
use serde_json::json;

use super::rotate::{rotate, run_rotate, server_with_leaf};

/// Starts a server with `/root`, `/inner` that it signed, `/leaf` that `/inner` signed, and `/other` that `/root` signed.
async fn server_with_tree() -> ReusedServer {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_authority("/inner", Some("/root")).await;
    server.generate_leaf("/leaf", "/inner").await;
    server.generate_leaf("/other", "/root").await;
    server
}

#[tokio::test]
async fn certificates_below_a_regenerated_one_stay_outstanding() {
    let server = server_with_tree().await;
    for ca in ["/root", "/inner"] {
        server.generate_leaf("/moved", ca).await;
    }
    let shell = Shell::of(&server);
    rotate(&shell, "/root", &["--next"]);
    rotate(&shell, "/root", &["--next"]);
    let outstanding = || rotate(&shell, "/root", &["--status"])["outstanding"].clone();
    // Certificates below an outstanding one are regenerated with it and not listed.
    assert_eq!(outstanding(), json!(["/inner", "/other"]));
    server.regenerated("/other").await;
    assert_eq!(outstanding(), json!(["/inner"]));
    server.regenerated("/inner").await;
    assert_eq!(outstanding(), json!(["/leaf", "/moved"]));
    server.regenerated("/leaf").await;
    assert_eq!(outstanding(), json!(["/moved"]));
    assert_eq!(rotate(&shell, "/root", &["--status"])["stage"], "switched");
    server.regenerated("/moved").await;
    assert_eq!(outstanding(), json!([]));
    assert_eq!(rotate(&shell, "/root", &["--status"])["stage"], "renewed");
}

#[tokio::test]
async fn all_certificates_below_a_rotated_ca_are_regenerated() {
    let server = server_with_tree().await;
    let output = rotate(&Shell::of(&server), "/root", &["--yes"]);
    let names = json!(["/inner", "/leaf", "/other"]);
    assert_eq!(output["regenerated_credentials"], names);
    let mut above = server.current_versions("/root").await[0].clone();
    for name in ["/inner", "/leaf"] {
        let signed = server.current_versions(name).await[0].clone();
        assert_eq!(
            signed["value"]["ca"], above["value"]["certificate"],
            "{name}"
        );
        above = signed;
    }
}

#[tokio::test]
async fn an_intermediate_ca_is_rotated_like_a_root_ca() {
    let server = server_with_tree().await;
    let root = server.current_versions("/root").await;
    let shell = Shell::of(&server);
    let output = rotate(&shell, "/inner", &["--yes"]);
    assert_eq!(output["regenerated_credentials"], json!(["/leaf"]));
    let inner = server.current_versions("/inner").await;
    assert_eq!(inner[0]["value"]["ca"], root[0]["value"]["certificate"]);
    assert_eq!(server.current_versions("/root").await, root);
    assert_eq!(server.versions("/other").await.len(), 1);
}

#[tokio::test]
async fn a_certificate_moved_to_another_ca_is_not_outstanding() {
    let server = server_with_tree().await;
    server.generate_authority("/elsewhere", None).await;
    server.generate_leaf("/other", "/elsewhere").await;
    let shell = Shell::of(&server);
    rotate(&shell, "/root", &["--next"]);
    let output = rotate(&shell, "/root", &["--next"]);
    assert_eq!(output["outstanding"], json!(["/inner"]));
    let output = rotate(&shell, "/root", &["--next"]);
    assert_eq!(output["stage"], "renewed");
}

#[tokio::test]
async fn an_unreadable_certificate_below_the_ca_is_named() {
    let server = server_with_tree().await;
    let operations = ["read", "write"];
    for path in ["/root", "/inner", "/leaf"] {
        server.grant(path, "uaa-client:app", &operations).await;
    }
    let caller = server.as_client("app").await;
    let shell = Shell::at(&server).variable("KEYWRIGHT_CLIENT_TOKEN", caller.token());
    for _ in 0..2 {
        rotate(&Shell::of(&server), "/root", &["--next"]);
    }
    let run = run_rotate(&shell, "/root", &["--next"]);
    let run = run.expect(4);
    run.errors
        .assert_contains("could not read /other, which /root signed");
    server.grant("/other", "uaa-client:app", &operations).await;
    let output = rotate(&shell, "/root", &["--next"]);
    assert_eq!(output["stage"], "renewed");
}

#[tokio::test]
async fn yes_option_takes_all_remaining_steps_from_any_stage() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    let steps = ["introduce", "switch", "renew", "retire"];
    for taken_before in 0..4 {
        for _ in 0..taken_before {
            rotate(&shell, "/root", &["--next"]);
        }
        let reported = rotate(&shell, "/root", &["--yes"]);
        assert_eq!(reported["steps_taken"], json!(steps[taken_before..]));
        assert_eq!(reported["stage"], "not_begun");
        let renewed = taken_before < 3;
        let regenerated = reported["regenerated_credentials"].as_array().unwrap();
        assert_eq!(!regenerated.is_empty(), renewed, "{reported}");
    }
    // Each rotation adds one version of the CA and one of the leaf.
    for name in ["/root", "/leaf"] {
        assert_eq!(server.versions(name).await.len(), 5);
    }
}

#[tokio::test]
async fn resume_continues_a_rotation_but_does_not_start_one() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    for arguments in [&["--resume", "--yes"], &["--resume", "--next"]] {
        let reported = rotate(&shell, "/root", arguments);
        assert_eq!(reported["steps_taken"], json!([]));
    }
    let run = run_rotate(&shell, "/root", &["--resume"]);
    assert!(run.expect(0).errors.contains("nothing to resume"));
    assert_eq!(server.versions("/root").await.len(), 1);
    rotate(&shell, "/root", &["--next"]);
    let reported = rotate(&shell, "/root", &["--resume", "--yes"]);
    assert_eq!(
        reported["steps_taken"],
        json!(["switch", "renew", "retire"])
    );
}

#[tokio::test]
async fn without_a_terminal_next_or_yes_is_required() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    let run = run_rotate(&shell, "/root", &[]).expect(2);
    run.errors.assert_contains("--next");
    run.errors.assert_contains("--yes");
    for arguments in [
        ["--next", "--yes"],
        ["--status", "--next"],
        ["--status", "--yes"],
    ] {
        run_rotate(&shell, "/root", &arguments).expect(2);
    }
    assert_eq!(server.versions("/root").await.len(), 1);
}

#[tokio::test]
async fn leaf_certificates_and_missing_names_are_refused() {
    let server = server_with_leaf(&Options::default()).await;
    let shell = Shell::of(&server);
    for (name, status, message) in [("/leaf", 1, "/leaf is not a CA"), ("/absent", 4, "")] {
        let run = run_rotate(&shell, name, &["--next"]);
        let run = run.expect(status);
        run.errors.assert_contains(message);
        assert_eq!(run.output, "");
    }
    assert_eq!(server.versions("/leaf").await.len(), 1);
}

#[tokio::test]
async fn a_ca_without_a_signing_version_is_refused_with_a_remedy() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    let shell = Shell::of(&server);
    shell
        .run("certificates transitional /root --latest")
        .expect(0);
    let run = run_rotate(&shell, "/root", &["--next"]).expect(1);
    let remedy = "certificates transitional /root --clear";
    run.errors.assert_contains(remedy);
    shell.bash(&format!("keywright {remedy}")).expect(0);
    rotate(&shell, "/root", &["--next"]);
}

#[tokio::test]
async fn a_ca_that_signed_nothing_skips_the_regeneration() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    let run = run_rotate(&Shell::of(&server), "/root", &["--yes"]).expect(0);
    run.errors.assert_contains("Skipped step 3 of 4: ");
    let reported = run.json();
    assert_eq!(
        reported["steps_taken"],
        json!(["introduce", "switch", "retire"])
    );
    assert_eq!(reported["regenerated_credentials"], json!([]));
}

#[tokio::test]
async fn a_key_in_the_text_of_a_ca_is_not_printed_or_in_the_bundle() {
    let server = Server::reused().await;
    let root = server.generate_authority("/root", None).await;
    let [certificate, key] = ["certificate", "private_key"].map(|name| field(&root, name));
    let value = json!({"certificate": format!("{key}{certificate}"), "private_key": key});
    server.stored("/root", "certificate", value).await;
    server.generate_leaf("/leaf", "/root").await;
    let shell = Shell::of(&server);
    rotate(&shell, "/root", &["--next", "--bundle", "trusted.pem"]);
    let bundle = fs::read_to_string(shell.file("trusted.pem")).unwrap();
    assert!(bundle.starts_with(certificate), "{bundle}");
    assert_eq!(bundle.matches("BEGIN").count(), 2, "{bundle}");
    let listed = shell.run("certificates versions /root").expect(0);
    listed.output.assert_lacks("PRIVATE KEY");
    rotate(&shell, "/root", &["--next"]);
    let reported = rotate(&shell, "/root", &["--next"]);
    assert_eq!(reported["regenerated_credentials"], json!(["/leaf"]));
    assert_eq!(reported["stage"], "renewed");
}

#[tokio::test]
async fn an_unwritable_bundle_stops_the_run_before_a_step() {
    let server = server_with_leaf(&Options::default()).await;
    server.regenerate_as_transitional("/root").await;
    let shell = Shell::of(&server);
    rotate(&shell, "/root", &["--status", "--bundle", "trusted.pem"]);
    let bundle = shell.file("trusted.pem");
    let mode = fs::metadata(&bundle).unwrap().permissions().mode();
    assert_eq!(mode & 0o700, 0o600);
    assert_eq!(mode & 0o133, 0);
    assert!(!fs::read_to_string(&bundle).unwrap().contains("PRIVATE KEY"));
    fs::write(shell.file("key.pem"), "precious").unwrap();
    for (file, reason) in [
        ("absent/trusted.pem", "could not write absent/trusted.pem: "),
        (
            "key.pem",
            "key.pem already exists and contains more than certificates",
        ),
    ] {
        let run = run_rotate(&shell, "/root", &["--next", "--bundle", file]);
        run.expect(1).errors.assert_contains(reason);
    }
    assert_eq!(fs::read(shell.file("key.pem")).unwrap(), b"precious");
    let reported = rotate(&shell, "/root", &["--status"]);
    assert_eq!(reported["stage"], "introduced");
}
