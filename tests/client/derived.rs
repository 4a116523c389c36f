//! Credentials that are derived from others: finding, regenerating, exporting and importing them.

use keywright_harness::{Options, ReusedServer, Server, Shell, Text};
use serde_json::json;

use crate::json_of;

const TYPE: &str = "deriving";

async fn server() -> ReusedServer {
    Server::reused_with(&Options::default().generator_with_inputs(TYPE)).await
}

#[tokio::test]
async fn stale_credentials_are_found_and_regenerated() {
    let server = server().await;
    let input = server.stored("/in", "password", json!("first")).await;
    let shell = Shell::of(&server);
    let generate = ["generate", "/out", "--type", TYPE, "--param", "from=/in"];
    shell.run(&generate).expect(0);
    let table = shell.run("get /out --provenance -o table");
    let table = table.expect(0).output;
    let expected = format!("/in {}", input["id"].as_str().unwrap());
    table.assert_contains(&expected);
    let none = shell.run("bulk-regenerate --derived-from /in").expect(0);
    let expected = "No credentials are derived from an older version of /in.";
    none.errors.assert_contains(expected);
    let narrowed = "bulk-regenerate --derived-from /in --path /a";
    let expected = "No credentials below /a are derived from an older version of /in.";
    let none = shell.run(narrowed).expect(0);
    none.errors.assert_contains(expected);
    let none = shell.run(&[narrowed, "-o table"].join(" ")).expect(0);
    assert_eq!(none.output, "");

    server.stored("/in", "password", json!("second")).await;
    shell
        .run(narrowed)
        .expect(0)
        .errors
        .assert_contains(expected);
    let find = ["find", "--derived-from", "/in"];
    let found = json_of(shell.run(&find));
    assert_eq!(found["credentials"][0]["stale"], true);
    let table = shell
        .run(&[&find[..], &["-o", "table"]].concat())
        .expect(0)
        .output;
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0], ["NAME", "CREATED", "STALE"]);
    assert_eq!((rows[1][0], rows[1][2]), ("/out", "yes"));
    for more in [&["--dry-run"][..], &[]] {
        let bulk = [&["bulk-regenerate", "--derived-from", "/in"][..], more].concat();
        let regenerated = json_of(shell.run(&bulk));
        assert_eq!(regenerated["regenerated_credentials"], json!(["/out"]));
    }
    let found = json_of(shell.run(&find));
    assert_eq!(found["credentials"][0]["stale"], false);
    for refused in [
        "find --derived-from /in --expires-within-days 3",
        "find --derived-from /in --generated-by 0",
        "bulk-regenerate /in --derived-from /in",
    ] {
        shell.run(refused).expect(2);
    }
}

#[tokio::test]
async fn imported_credentials_are_regenerated_from_imported_inputs() {
    let source = server().await;
    source.stored("/in", "password", json!("first")).await;
    source.generated("/out", TYPE, json!({"from": "/in"})).await;
    let shell = Shell::of(&source);
    shell.run("export --file export.yml").expect(0);
    let path = shell.file("export.yml");
    let target = server().await;
    let shell = Shell::of(&target);
    let import = ["import", path.to_str().unwrap(), "--skip-unchanged"];
    for (set, unchanged) in [(2, 0), (0, 2)] {
        let summary = json_of(shell.run(&import));
        assert_eq!(summary["set"], set);
        assert_eq!(summary["unchanged"], unchanged);
        assert_eq!(summary["without_provenance"], 0);
    }
    let versions = target.versions("/in").await;
    let regenerated = json_of(shell.run("regenerate /out"));
    let passed = &regenerated["value"]["inputs"][0];
    assert_eq!(passed["value"], "first");
    assert_eq!(passed["version_id"], versions[0]["id"]);
}
