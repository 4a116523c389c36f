//! `keywright check` of undamaged databases, its refusals, and its memory usage.

use std::sync::Arc;

use keywright_harness::{
    Options, Server, Text, is_on_postgres, memory_of_command, run_command, run_program, run_sql,
};
use serde_json::{Value, json};

use super::fill;
use crate::certificates::Certificate;

#[tokio::test]
async fn a_store_with_every_type_of_credential_has_no_findings() {
    let concatenated = Options::default().extra("\n[certificates]\nconcatenate_cas = true");
    let server = Server::start_with(&concatenated).await;
    fill(&server).await;
    // Writes with another casing belong to the same credential.
    for name in ["/Cased/A", "/cased/a"] {
        server.set_value(name, "v").await;
    }
    for name in ["/Cased/B", "/cased/b"] {
        let body = json!({"name": name, "type": "password", "mode": "overwrite"});
        server.post("/api/v1/data", body).await.expect(200);
    }
    let result = server.run_command("check").expect(0);
    assert!(result.output.ends_with(": 0 findings\n"), "{result:?}");
    let credentials = server.found_names("path=").await.len();
    let versions = server.all_versions().await.len();
    assert_eq!(
        result.output,
        format!(
            "checked {credentials} credentials with {versions} versions, and 2 permissions: 0 findings\n"
        )
    );
}

#[tokio::test]
async fn an_empty_store_has_no_findings_and_stays_unchanged() {
    let server = Server::start().await;
    let directory = server.stop().await;
    let count = "select count(*) || '' from encryption_key";
    let keys = run_sql(directory.path(), count).await;
    let result = run_command(directory.path(), "check --json").expect(0);
    let summary: Value = serde_json::from_str(&result.output).unwrap();
    let expected = json!({"credentials": 0, "versions": 0, "permissions": 2, "findings": 0});
    assert_eq!(summary, expected);
    assert_eq!(run_sql(directory.path(), count).await, keys);
}

#[tokio::test]
async fn concurrent_writes_deletions_and_moves_are_not_reported() {
    let server = Server::start().await;
    fill(&server).await;
    let root = Certificate::generate(&server, "/moving", json!({"is_ca": true})).await;
    let work = async {
        for round in 0..30 {
            let name = format!("/meanwhile/{round}");
            server.issued(&name, json!({"ca": "/moving"})).await;
            server.set_value("/meanwhile/value", "v").await;
            let body = json!({"set_as_transitional": true});
            root.regenerate(body).await.expect(200);
            root.move_transitional(Value::Null).await.expect(200);
            let response = server.delete(&format!("/api/v1/data?name={name}")).await;
            response.expect(204);
        }
    };
    let directory = server.directory().to_owned();
    let checking = tokio::task::spawn_blocking(move || {
        (0..10)
            .map(|_| run_command(&directory, "check"))
            .collect::<Vec<_>>()
    });
    let ((), result) = tokio::join!(work, checking);
    for result in result.unwrap() {
        result.expect(0);
    }
}

/// The commands that never migrate a database.
const READ_ONLY_COMMANDS: [&[&str]; 2] = [&["check"], &["keys", "status"]];

#[tokio::test]
async fn a_missing_database_is_refused_and_not_created() {
    if is_on_postgres() {
        return;
    }
    let server = Server::start().await;
    let directory = server.stop().await;
    let file = directory.path().join("keywright.db");
    std::fs::remove_file(&file).unwrap();
    let backup: &[&str] = &["backup", "copy"];
    let commands = READ_ONLY_COMMANDS.into_iter().chain([backup]);
    for command in commands.clone() {
        let result = run_command(directory.path(), command).expect(1);
        result
            .errors
            .assert_contains("keywright.db; correct storage.file");
        assert!(!file.exists());
    }
    std::fs::write(&file, "").unwrap();
    for command in commands {
        let result = run_command(directory.path(), command).expect(1);
        result
            .errors
            .assert_contains("no server has used it; correct the section storage");
        assert_eq!(std::fs::read(&file).unwrap(), b"");
    }
    assert!(!directory.path().join("copy").exists());
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_and_not_changed() {
    let directory = Server::start().await.stop().await;
    let file = directory.path().join("keywright.db");
    let (start, tables) = if is_on_postgres() {
        (
            "drop schema public cascade; create schema public; ",
            "select count(*) || '' from pg_tables where schemaname = 'public'",
        )
    } else {
        std::fs::write(&file, "").unwrap();
        ("", "select count(*) || '' from sqlite_schema")
    };
    let create = format!("{start}create table note (content text)");
    run_sql(directory.path(), &create).await;
    let before = std::fs::read(&file).ok();
    for command in [
        &["check"][..],
        &["keys", "status"],
        &["keys", "rotate"],
        &["serve"],
    ] {
        run_command(directory.path(), command).expect(1);
    }
    for command in [&["keys", "rotate"][..], &["serve"]] {
        let result = run_command(directory.path(), command).expect(1);
        result
            .errors
            .assert_contains("it has tables of another program");
    }
    let check = [
        "check-config",
        "--no-plugins",
        "--connect",
        "keywright.toml",
    ];
    let checked = run_program(directory.path(), &check, &[]).expect(1);
    checked
        .output
        .assert_contains("it has tables of another program");
    assert_eq!(run_sql(directory.path(), tables).await, "1");
    assert_eq!(std::fs::read(&file).ok(), before);
}

#[tokio::test]
async fn a_schema_of_another_version_is_refused_and_not_changed() {
    let newest = "(select max(version) from _sqlx_migrations)";
    let directory = Server::start().await.stop().await;
    for (sql, reason) in [
        (
            format!(
                "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
                 select version + 1, description, success, checksum, execution_time from _sqlx_migrations
                 where version = {newest}"
            ),
            "is newer than this program",
        ),
        (
            format!(
                "delete from _sqlx_migrations where version = {newest};
                 delete from _sqlx_migrations where version = {newest}"
            ),
            "is older than this program",
        ),
        (
            "update _sqlx_migrations set version = version + 1000".to_owned(),
            "does not match this program",
        ),
        (
            "delete from _sqlx_migrations".to_owned(),
            "has no schema",
        ),
    ] {
        run_sql(directory.path(), &sql).await;
        let applied = "select version || '' from _sqlx_migrations order by version";
        let before = run_sql(directory.path(), applied).await;
        for command in READ_ONLY_COMMANDS {
            let result = run_command(directory.path(), command).expect(1);
            result.errors.assert_contains(reason);
            assert_eq!(result.output, "");
            assert_eq!(run_sql(directory.path(), applied).await, before);
        }
    }
}

#[tokio::test]
async fn keys_that_decrypt_nothing_are_refused() {
    let server = Server::start().await;
    server.set_value("/value", "v").await;
    let directory = server.stop().await;
    let configuration = directory.path().join("keywright.toml");
    let text = std::fs::read_to_string(&configuration).unwrap();
    let other = format!("{}=", "A".repeat(43));
    std::fs::write(directory.path().join("other.key"), other).unwrap();
    let own = keywright_harness::key_file("encryption.key");
    let text = text.replace(own.to_str().unwrap(), "other.key");
    std::fs::write(&configuration, text).unwrap();
    let result = run_command(directory.path(), "check").expect(1);
    let reason = "no configured encryption key can decrypt any of the stored values";
    result.errors.assert_contains(reason);
    let check = ["check-config", "--no-plugins", "keywright.toml"];
    run_program(directory.path(), &check, &[]).expect(0);
    let check = [&check[..], &["--connect"]].concat();
    let checked = run_program(directory.path(), &check, &[]).expect(1);
    checked
        .output
        .assert_contains(&format!("encryption.keys: {reason}"));
}

// `keywright check` of a store that is larger than its memory limit.

#[tokio::test]
async fn memory_of_a_check_is_independent_of_the_number_of_versions() {
    let server = Arc::new(Server::start().await);
    write(&server, FEW).await;
    let measure = |_| memory_of_command(server.directory(), "check");
    let few = (0..RUNS).map(measure).max().unwrap();
    write(&server, MANY - FEW).await;
    let many = (0..RUNS).map(measure).min().unwrap();
    let versions = server.run_sql("select count(*) || '' from credential_version");
    assert_eq!(versions.await, MANY.to_string());
    assert!(
        many < few + GROWTH_KIBIBYTES_MAX,
        "{few} KiB for {FEW} versions, {many} KiB for {MANY}"
    );
}

/// Adds versions of a few credentials.
async fn write(server: &Arc<Server>, count: usize) {
    let value = "v".repeat(VALUE_BYTES);
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let (server, value) = (Arc::clone(server), value.clone());
        writers.spawn(async move {
            let name = format!("/large/{writer}");
            for _ in 0..count / WRITERS {
                server.set_value(&name, &value).await;
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
}

/// A sixteenth of the size of the added values.
const GROWTH_KIBIBYTES_MAX: u64 = 8 * 1_000;
const VALUE_BYTES: usize = 65_536;
/// So many that nearly all runs last until the memory of their threads has stopped growing.
const FEW: usize = 1_000;
const MANY: usize = 3_000;
/// On a busy machine, the memory of the threads of a run varies by more than 20 MiB.
const RUNS: usize = 8;
const WRITERS: usize = 20;
