//! The `certificates` commands and `bulk-regenerate`; `certificates rotate` has its own files.

mod rotate;
mod rotate_failures;
mod rotate_steps;

use keywright_harness::{BadPlugin, Options, Server, Shell, Text, field};
use serde_json::{Value, json};

use crate::json_of;

async fn summary(server: &Server, name: &str) -> Value {
    let path = format!("/api/v1/certificates?name={name}");
    server.get_json(&path).await["certificates"][0].clone()
}

#[tokio::test]
async fn list_prints_json_in_a_pipe_and_fails_for_an_absent_name() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_leaf("/leaf", "/root").await;
    let all = server.get_json("/api/v1/certificates").await;
    let shell = Shell::of(&server);
    let listed = json_of(shell.run("certificates list"));
    assert_eq!(listed, all["certificates"]);
    let one = json_of(shell.run("certificates list root"));
    assert_eq!(one, Value::Array(vec![summary(&server, "/root").await]));
    assert_eq!(one[0]["signs"], json!(["/leaf"]));
    let absent = shell.run("certificates list /absent");
    assert_eq!(absent.expect(4).output, "");
}

#[tokio::test]
async fn list_prints_a_row_per_certificate_on_a_terminal() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_leaf("/leaf", "/root").await;
    server.regenerate_as_transitional("/root").await;
    let shell = Shell::of(&server);
    let (status, screen) = shell.on_terminal("certificates list").end();
    assert_eq!(status, Some(0), "{screen}");
    let words = |name: &str| -> Vec<&str> {
        let row = screen.lines().find(|line| line.starts_with(name));
        row.unwrap().split_whitespace().skip(2).collect()
    };
    assert_eq!(words("/root"), ["2", "yes", "/root", "1"], "{screen}");
    assert_eq!(words("/leaf"), ["1", "/root", "0"], "{screen}");
}

#[tokio::test]
async fn list_includes_other_types_with_all_types() {
    let options = Options::default().plugin("app-svid", "svid", &["random", "signing"], "");
    let server = Server::start_with(&options).await;
    server.generate_authority("/root", None).await;
    let svid = server.generate("/svid", "app-svid", json!({"ca": "/root"}));
    svid.await.expect(200);
    let shell = Shell::of(&server);
    for (arguments, query) in [
        ("certificates list", ""),
        ("certificates list --all-types", "?all_types=true"),
        (
            "certificates list /svid --all-types",
            "?name=/svid&all_types=true",
        ),
    ] {
        let path = format!("/api/v1/certificates{query}");
        let expected = server.get_json(&path).await;
        assert_eq!(json_of(shell.run(arguments)), expected["certificates"]);
    }
    shell.run("certificates list /svid").expect(4);
    let list = "certificates list --all-types";
    let (_, screen) = shell.on_terminal(list).end();
    for (name, credential_type) in [("/root", "certificate"), ("/svid", "app-svid")] {
        let row = screen.lines().find(|line| line.starts_with(name));
        let words: Vec<_> = row.unwrap().split_whitespace().collect();
        assert_eq!(words[1], credential_type, "{screen}");
        assert_eq!(words[4], "/root", "{screen}");
    }
}

fn ids(versions: &[Value]) -> Vec<&str> {
    let ids = versions.iter().map(|one| one["id"].as_str().unwrap());
    ids.collect()
}

#[tokio::test]
async fn versions_prints_all_or_only_current_versions_in_order() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.regenerated("/root").await;
    server.regenerate_as_transitional("/root").await;
    let all = server.versions("/root").await;
    let shell = Shell::of(&server);
    let listed = json_of(shell.run("certificates versions /root"));
    let listed = listed.as_array().unwrap();
    assert_eq!(ids(listed), ids(&all));
    let current_versions = json_of(shell.run("certificates versions /root --current"));
    let current_versions = current_versions.as_array().unwrap();
    let actual = ids(current_versions);
    assert_eq!(actual, ids(&server.current_versions("/root").await));
    assert_eq!(current_versions[0]["transitional"], false);
    assert_eq!(current_versions[1]["transitional"], true);
}

#[tokio::test]
async fn versions_prints_no_private_keys() {
    let server = Server::reused().await;
    let root = server.generate_authority("/root", None).await;
    let shell = Shell::of(&server);
    for form in ["json", "yaml", "table"] {
        let run = shell.run(&["certificates", "versions", "/root", "--output", form]);
        let output = run.expect(0).output;
        output.assert_contains(root["id"].as_str().unwrap());
        output.assert_lacks("PRIVATE KEY");
    }
    let listed = json_of(shell.run("certificates versions /root"));
    let actual = field(&listed[0], "certificate");
    assert_eq!(actual, field(&root, "certificate"));
    for fact in "expiry_date generated certificate_authority self_signed".split(' ') {
        assert_eq!(listed[0][fact], root[fact], "{fact}");
    }
}

#[tokio::test]
async fn versions_prints_a_row_with_flags_on_a_terminal() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.regenerate_as_transitional("/root").await;
    let shell = Shell::of(&server);
    let (status, screen) = shell.on_terminal("certificates versions /root").end();
    assert_eq!(status, Some(0), "{screen}");
    let rows: Vec<_> = screen.lines().skip(1).collect();
    let flags = |row: &str| row.matches("yes").count();
    let actual = rows.iter().map(|row| flags(row)).collect::<Vec<_>>();
    assert_eq!(actual, [3, 2], "{screen}");
}

/// Returns the ids of the transitional versions.
async fn flagged(server: &Server) -> Vec<Value> {
    let summary = summary(server, "/root").await;
    let versions = summary["versions"].as_array().unwrap().iter();
    let flagged = versions.filter(|version| version["transitional"] == true);
    flagged.map(|version| version["id"].clone()).collect()
}

#[tokio::test]
async fn transitional_moves_or_clears_the_flag() {
    let server = Server::reused().await;
    let old = server.generate_authority("/root", None).await["id"].clone();
    let new = server.regenerated("/root").await["id"].clone();
    let shell = Shell::of(&server);
    let to_old = format!("--version {}", old.as_str().unwrap());
    for (arguments, expected) in [
        (&*to_old, vec![old]),
        ("--latest", vec![new.clone()]),
        ("--clear", vec![]),
    ] {
        let arguments = format!("certificates transitional /root {arguments}");
        let run = shell.run(&arguments).expect(0);
        run.output.assert_lacks("PRIVATE KEY");
        assert_eq!(flagged(&server).await, expected, "{arguments:?}");
        let shown = json_of(run);
        assert_eq!(shown.as_array().unwrap().len(), 1 + expected.len());
    }
    let arguments = "certificates transitional /root --latest";
    let (status, screen) = shell.on_terminal(arguments).end();
    assert_eq!(status, Some(0), "{screen}");
    assert_eq!(flagged(&server).await, [new]);
}

#[tokio::test]
async fn transitional_requires_exactly_one_valid_target() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    let shell = Shell::of(&server);
    shell.run("certificates transitional /root").expect(2);
    for (target, status) in [
        ("--latest --clear", 2),
        ("--version no-id", 2),
        ("--version 0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55", 1),
    ] {
        let arguments = format!("certificates transitional /root {target}");
        shell.run(&arguments).expect(status);
    }
    assert_eq!(flagged(&server).await, Vec::<Value>::new());
}

#[tokio::test]
async fn regenerate_prints_the_new_version() {
    let server = Server::reused().await;
    let root = server.generate_authority("/root", None).await;
    let shell = Shell::of(&server);
    let made = json_of(shell.run("certificates regenerate root"));
    assert_ne!(made["id"], root["id"]);
    assert_eq!(made["transitional"], false);
    let current = server.current_versions("/root").await;
    assert_eq!(made["value"], current[0]["value"]);
    let arguments = "certificates regenerate /root --transitional";
    let (status, screen) = shell.on_terminal(arguments).end();
    assert_eq!(status, Some(0), "{screen}");
    let id = server.current_versions("/root").await[1]["id"].clone();
    screen.assert_contains(id.as_str().unwrap());
    // A transitional version already exists.
    shell.run(arguments).expect(1);
}

#[tokio::test]
async fn regenerate_options_change_key_length_and_duration() {
    let server = Server::reused().await;
    let parameters = json!({"common_name": "root", "is_ca": true});
    server.generated("/root", "certificate", parameters).await;
    let shell = Shell::of(&server);
    let certificate = ["certificates", "regenerate", "/root"];
    let longer = ["--key-length", "3072", "--duration", "7"];
    let made = json_of(shell.run(&[&certificate as &[&str], &longer].concat()));
    assert_eq!(made["key_length"], 3072);
    assert_eq!(made["duration_used"], 7);
    let stored = server.current_versions("/root").await;
    assert_eq!(made["value"], stored[0]["value"]);
    for refused in [["--key-length", "1024"], ["--duration", "0"]] {
        let run = shell.run(&[&certificate as &[&str], &refused].concat());
        run.expect(1);
    }
}

#[tokio::test]
async fn a_transitional_ca_version_signs_only_if_allowed() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_leaf("/leaf", "/root").await;
    server.regenerate_as_transitional("/root").await;
    let authorities = server.current_versions("/root").await;
    let shell = Shell::of(&server);
    for (arguments, signer) in [
        ("certificates regenerate /leaf", &authorities[0]),
        (
            "certificates regenerate /leaf --allow-transitional-parent-to-sign",
            &authorities[1],
        ),
    ] {
        let made = json_of(shell.run(arguments));
        let (ca, expected) = (&made["value"]["ca"], &signer["value"]["certificate"]);
        assert_eq!(ca, expected, "{arguments}");
    }
}

#[tokio::test]
async fn bulk_regenerate_lists_all_certificates_below_a_ca() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_authority("/inner", Some("/root")).await;
    server.generate_leaf("/leaf", "/inner").await;
    let before = server.current_versions("/leaf").await;
    let shell = Shell::of(&server);
    let expected = json!({"regenerated_credentials": ["/inner", "/leaf"]});
    assert_eq!(json_of(shell.run("bulk-regenerate /root")), expected);
    assert_ne!(server.current_versions("/leaf").await, before);
    let (status, screen) = shell.on_terminal("bulk-regenerate inner").end();
    assert_eq!(status, Some(0), "{screen}");
    assert!(screen.ends_with("/leaf\n"), "{screen}");
    screen.assert_lacks("/inner");
    server.generate_authority("/alone", None).await;
    let run = shell.run("bulk-regenerate /alone").expect(0);
    run.errors
        .assert_contains("No credentials are signed by /alone.");
    assert_eq!(json_of(run), json!({"regenerated_credentials": []}));
    server.generate_leaf("/team/leaf", "/inner").await;
    let expected = json!({"regenerated_credentials": ["/team/leaf"]});
    let below = ["bulk-regenerate", "/root", "--path", "/team"];
    assert_eq!(json_of(shell.run(&below)), expected);
    let below = ["bulk-regenerate", "/root", "--path", "/none"];
    let errors = shell.run(&below).expect(0).errors;
    errors.assert_contains("No credentials below /none are signed by /root.");
}

#[tokio::test]
async fn bulk_regenerate_keeps_going_and_exits_with_3() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_leaf("/leaf", "/root").await;
    server.generate_authority("/stuck", Some("/root")).await;
    server.generate_leaf("/below", "/stuck").await;
    server.generate_authority("/elsewhere", None).await;
    let made = server.generate_authority("/made", Some("/elsewhere")).await;
    let value = &made["value"];
    let value = json!({"certificate": value["certificate"], "ca": value["ca"]});
    server.stored("/stuck", "certificate", value).await;
    let shell = Shell::of(&server);
    let bulk = ["bulk-regenerate", "/root"];
    for refused in [&bulk[..], &[&bulk[..], &["--dry-run"]].concat()] {
        let errors = shell.run(refused).expect(1).errors;
        errors.assert_contains("regenerating /stuck failed");
    }
    let keep_going = [&bulk[..], &["--keep-going"]].concat();
    let dry_run = [&keep_going[..], &["--dry-run", "-o", "table"]].concat();
    let run = shell.run(&dry_run).expect(3);
    assert_eq!(run.output, "TO BE REGENERATED\n/leaf\n");
    assert_eq!(server.versions("/leaf").await.len(), 1);
    let run = shell.run(&keep_going).expect(3);
    for failed in ["failed: /stuck: ", "failed: /below: "] {
        assert!(run.errors.contains(failed), "{}", run.errors);
    }
    let done = run.json();
    assert_eq!(done["regenerated_credentials"], json!(["/leaf"]));
    assert_eq!(done["failed_credentials"][0]["name"], "/below");
    assert_eq!(done["failed_credentials"][1]["name"], "/stuck");
    assert_eq!(server.versions("/leaf").await.len(), 2);
    server.delete("/api/v1/data?name=/stuck").await.expect(204);
    server.delete("/api/v1/data?name=/below").await.expect(204);
    let done = json_of(shell.run(&keep_going));
    let expected = json!({"regenerated_credentials": ["/leaf"], "failed_credentials": []});
    assert_eq!(done, expected);
}

#[tokio::test]
async fn values_of_the_current_plugin_are_found_but_not_regenerated() {
    let server = Server::reused().await;
    for name in ["/a/one", "/a/two", "/b"] {
        server.generated(name, "password", json!({})).await;
    }
    let shell = Shell::of(&server);
    let known = json_of(shell.run("types password"));
    let digest = known["plugin"]["digest"].as_str().unwrap();
    let digest = format!("sha256:{digest}");
    let found = ["find", "--names", "--generated-by", &digest];
    let run = shell.run(&found).expect(0);
    assert_eq!(run.output, "/b\n/a/two\n/a/one\n");
    let run = shell.run(&[&found[..], &["--name-like", "o"]].concat());
    assert_eq!(run.expect(0).output, "/a/two\n/a/one\n");

    let bulk = ["bulk-regenerate", "--generated-by", &digest];
    let below = [&bulk[..], &["--path", "/a", "--keep-going"]].concat();
    let dry_run = [&bulk[..], &["--dry-run"]].concat();
    for arguments in [&bulk[..], &below, &dry_run] {
        let run = shell.run(arguments).expect(1);
        let errors = run.errors;
        errors.assert_contains("configure another plugin first");
    }
    assert_eq!(server.versions("/b").await.len(), 1);
}

#[tokio::test]
async fn a_dry_run_lists_the_credentials_to_regenerate() {
    let bad = BadPlugin::of("password");
    let server = bad.server().await;
    for name in ["/a/one", "/a/two", "/b"] {
        server.generated(name, "password", json!({})).await;
    }
    let server = BadPlugin::replaced(server).await;
    let shell = Shell::of(&server);
    let digest = bad.digest();
    let dry_run = format!("bulk-regenerate --dry-run --path /a --generated-by {digest}");
    let expected = json!({"regenerated_credentials": ["/a/one", "/a/two"], "dry_run": true});
    assert_eq!(json_of(shell.run(&dry_run)), expected);
    let table = shell.run(&format!("{dry_run} -o table"));
    assert!(table.expect(0).output.starts_with("TO BE REGENERATED\n"));
    assert_eq!(server.versions("/b").await.len(), 1);
}

#[test]
fn bulk_regenerate_requires_either_a_ca_or_a_plugin() {
    let shell = Shell::new();
    for wrong in [
        "bulk-regenerate",
        "bulk-regenerate --dry-run",
        "bulk-regenerate /root --generated-by sha256:0",
        "bulk-regenerate --path /a",
        "find --generated-by 0 --expires-within-days 3",
    ] {
        shell.run(wrong).expect(2);
    }
}
