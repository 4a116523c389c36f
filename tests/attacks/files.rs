//! Files that disappear, are replaced or point elsewhere, and a full disk; `/health` when a dependency of the server fails;
//! and an encryption key at its maximum number of encryptions.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};

use keywright_harness::{Options, Server, Shell, Text, is_on_postgres, run_command, until};
use reqwest::Method;
use serde_json::json;

use crate::limit_file_size;

/// Returns options of a server that starts fast, with a management address.
fn options() -> Options {
    Options::default()
        .without_plugins()
        .watched()
        .environment("KEYWRIGHT_LOG__FILTER", "info")
}

async fn set(server: &Server, name: &str, value: &str) -> u16 {
    server.set(name, "value", json!(value)).await.status
}

async fn get(server: &Server, name: &str) -> u16 {
    let path = format!("/api/v1/data?name={name}&current=true");
    server.get(&path).await.status
}

/// Asserts that the value of each credential is its name.
async fn assert_stored(server: &Server, names: &[String]) {
    for name in names {
        let path = format!("/api/v1/data?name={name}&current=true");
        let found = server.get_json(&path).await;
        assert_eq!(found["data"][0]["value"], json!(name));
    }
}

/// Returns the statuses of `/health` on both listeners.
async fn health(server: &Server) -> [u16; 2] {
    let main = server.request(Method::GET, "/health");
    let main = server.send(main).await.status;
    let management = server.request_management(Method::GET, "/health").await;
    [main, management.status]
}

/// Waits until `/health` has this status on both listeners.
async fn wait_for_health(server: &Server, status: u16) {
    until("new status", async || health(server).await == [status; 2]).await;
}

/// Returns whether the metrics report a part of the server as healthy.
async fn is_healthy(server: &Server, check: &str) -> bool {
    let scrape = server.scrape().await;
    let found = scrape.sum("keywright_health_check", &[("check", check)]);
    found.unwrap() > 0.5
}

/// The ways to remove a file.
#[derive(Clone, Copy, Debug)]
enum Removal {
    Rename,
    /// Renamed, and replaced with a copy.
    Replace,
    /// Renamed, and replaced with an empty file.
    Truncate,
    /// Renamed, and replaced with a symbolic link to another file.
    Link,
}

#[tokio::test]
async fn a_moved_database_is_not_used_until_it_is_restored() {
    if is_on_postgres() {
        return;
    }
    let server = Server::start_with(&options()).await;
    let mut stored = Vec::new();
    let mut number = 0;
    for end in ["", "-wal", "-shm"] {
        for removal in [
            Removal::Rename,
            Removal::Replace,
            Removal::Truncate,
            Removal::Link,
        ] {
            let file = server.directory().join(format!("keywright.db{end}"));
            number += 1;
            let name = format!("/before/{number}");
            assert_eq!(set(&server, &name, &name).await, 200);
            stored.push(name);
            let moved = remove(&file, removal);
            // Even the first write is not acknowledged.
            for attempt in 0..3 {
                let name = format!("/away/{number}/{attempt}");
                assert_eq!(set(&server, &name, "v").await, 503, "{removal:?} of {end}");
            }
            wait_for_health(&server, 503).await;
            assert_eq!(get(&server, &stored[0]).await, 503, "{removal:?} of {end}");
            assert!(!is_healthy(&server, "database_file").await);
            fs::rename(&moved, &file).unwrap();
            wait_for_health(&server, 200).await;
            assert_stored(&server, &stored).await;
            assert_eq!(get(&server, &format!("/away/{number}/0")).await, 404);
        }
    }
    assert!(is_healthy(&server, "database_file").await);
    let log = server.log();
    log.assert_contains("stopped using the database: its file was moved or replaced");
    // After the kill, the files contain all acknowledged writes.
    let server = Server::start_in(server.kill(), &options()).await;
    assert_stored(&server, &stored).await;
}

#[tokio::test]
async fn after_deletion_of_the_database_writes_and_starts_fail() {
    if is_on_postgres() {
        return;
    }
    let server = Server::start_with(&options()).await;
    assert_eq!(set(&server, "/a", "v").await, 200);
    fs::remove_file(server.directory().join("keywright.db")).unwrap();
    assert_eq!(set(&server, "/b", "v").await, 503);
    wait_for_health(&server, 503).await;
    let refused = Server::try_start_in(server.stop().await, &options()).await;
    let log = refused.err().unwrap();
    log.assert_contains("is missing");
}

/// Renames a file, replaces it unless `removal` is `Rename`, and returns its new path.
fn remove(file: &Path, removal: Removal) -> PathBuf {
    let moved = file.with_extension("taken");
    fs::rename(file, &moved).unwrap();
    match removal {
        Removal::Rename => {}
        Removal::Replace => {
            fs::copy(&moved, file).unwrap();
        }
        Removal::Truncate => fs::write(file, "").unwrap(),
        Removal::Link => {
            let copy = file.with_extension("copy");
            fs::copy(&moved, &copy).unwrap();
            std::os::unix::fs::symlink(&copy, file).unwrap();
        }
    }
    moved
}

#[tokio::test]
async fn a_missing_database_is_not_replaced_by_an_empty_one() {
    if is_on_postgres() {
        return;
    }
    let server = Server::start_with(&options()).await;
    assert_eq!(set(&server, "/a", "v").await, 200);
    let directory = server.stop().await;
    let file = |end: &str| directory.path().join(format!("keywright.db{end}"));
    let backup = fs::read(file("")).unwrap();
    fs::remove_file(file("")).unwrap();
    let missing = "is missing or empty, though a server has used it before";
    assert_refused(directory.path(), missing);
    fs::write(file(""), "").unwrap();
    assert_refused(directory.path(), missing);

    // A restored backup is used.
    fs::write(file(""), backup).unwrap();
    let server = Server::start_in(directory, &options()).await;
    let found = server.get("/api/v1/data?name=/a&current=true").await;
    assert_eq!(found.expect(200).json()["data"][0]["value"], json!("v"));

    // A leftover write-ahead log contains writes that the database needs.
    let directory = server.kill();
    let file = |end: &str| directory.path().join(format!("keywright.db{end}"));
    fs::remove_file(file(".created")).unwrap();
    fs::remove_file(file("")).unwrap();
    assert_refused(directory.path(), "though its write-ahead log");

    // Without the marker and the log, the server creates an empty database, but a command does not.
    for end in ["-wal", "-shm"] {
        fs::remove_file(file(end)).unwrap();
    }
    let refused = run_command(directory.path(), "keys rotate").expect(1);
    refused.errors.assert_contains("there is no database at");
    let server = Server::start_in(directory, &options()).await;
    server.get("/api/v1/data?name=/a").await.expect(404);
    assert!(server.log().contains("created a new and empty database"));
}

#[test]
fn a_missing_database_prevents_start_if_creation_is_disabled() {
    let setting = "KEYWRIGHT_STORAGE__FILE_CREATION_ENABLED";
    let options = options().environment(setting, "false");
    if is_on_postgres() {
        return;
    }
    let refusal = Server::refusal(&options);
    let words = "start a server with storage.file_creation_enabled = true";
    refusal.assert_contains(words);
}

/// Asserts that neither a server nor a command creates an empty database.
#[track_caller]
fn assert_refused(directory: &Path, words: &str) {
    for command in [&["keys", "rotate"][..], &["serve"]] {
        let refused = run_command(directory, command).expect(1);
        refused.errors.assert_contains(words);
    }
}

#[tokio::test]
async fn health_is_down_until_a_full_disk_has_room_again() {
    if is_on_postgres() {
        return;
    }
    let server = Server::start_with(&options().audit("[audit]\nsink = \"off\"")).await;
    let mut stored = Vec::new();
    let sizes = fs::read_dir(server.directory()).unwrap();
    let largest = sizes.map(|entry| entry.unwrap().metadata().unwrap().len());
    let before = limit_file_size(&server, Some(largest.max().unwrap() + 200_000));
    let filler = "x".repeat(50_000);
    let mut is_full = false;
    for number in 0..200 {
        let name = format!("/stored/{number}");
        match set(&server, &name, &name).await {
            200 => stored.push(name),
            status => {
                assert_eq!(status, 503);
                is_full = true;
                break;
            }
        }
        set(&server, &format!("/filler/{number}"), &filler).await;
    }
    assert!(is_full, "the disk was not full");
    wait_for_health(&server, 503).await;
    assert!(!is_healthy(&server, "database_writes").await);
    assert_eq!(get(&server, &stored[0]).await, 200);
    limit_file_size(&server, before);
    // Health recovers without a write request.
    wait_for_health(&server, 200).await;
    assert_eq!(set(&server, "/after", "/after").await, 200);
    assert_stored(&server, &stored).await;
    let server = Server::start_in(server.kill(), &options()).await;
    assert_stored(&server, &stored).await;
}

#[tokio::test]
async fn health_is_down_until_the_audit_trail_can_be_written() {
    let server = Server::start_with(&options()).await;
    assert_eq!(set(&server, "/a", "v").await, 200);
    let trail = server.directory().join("audit.log");
    fs::remove_file(&trail).unwrap();
    fs::create_dir(&trail).unwrap();
    // The first request detects the failure; the others are rejected before they access anything.
    assert_eq!(set(&server, "/b", "v").await, 500);
    assert_eq!(set(&server, "/c", "v").await, 503);
    assert_eq!(health(&server).await, [503; 2]);
    assert!(!is_healthy(&server, "audit_trail").await);
    fs::remove_dir(&trail).unwrap();
    // Health recovers without any other request.
    wait_for_health(&server, 200).await;
    assert!(server.audit_trail().contains("\"/b\""));
    assert_eq!(get(&server, "/c").await, 404);
}

#[tokio::test]
async fn health_stays_up_if_audit_failures_do_not_block_requests() {
    let audit = "[audit]\nsink = \"file\"\nfile = \"/dev/full\"\non_failure = \"continue\"";
    let server = Server::start_with(&options().audit(audit)).await;
    assert_eq!(set(&server, "/a", "v").await, 200);
    assert!(!is_healthy(&server, "audit_trail").await);
    assert_eq!(health(&server).await, [200; 2]);
}

#[tokio::test]
async fn idle_connections_do_not_block_health_and_metrics() {
    let server = Server::start_with(&Options::default().without_plugins().watched()).await;
    let address = server.management_url();
    let address = address.trim_start_matches("http://");
    let beginnings: [&[u8]; 4] = [b"", b"G", b"GET /health HTTP/1.1\r\nHost:", b"\r\n\r\n"];
    let mut idle = Vec::new();
    for number in 0..70 {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .write_all(beginnings[number % beginnings.len()])
            .unwrap();
        idle.push(stream);
    }
    for round in 0..3 {
        for path in ["/health", "/metrics"] {
            // The timeout must be below five seconds: after that time, idle connections lose their slots in any case.
            let response = response_within(address, path, Duration::from_secs(3));
            assert!(
                response.starts_with("HTTP/1.1 200 OK"),
                "{round} {path} {response}"
            );
        }
        for _ in 0..70 {
            idle.push(TcpStream::connect(address).unwrap());
        }
    }
}

/// Returns the response, or the error of a client with this timeout.
fn response_within(address: &str, path: &str, time_max: Duration) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(time_max)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    match stream.read_to_string(&mut response) {
        Ok(_) => response,
        Err(cause) => cause.to_string(),
    }
}

#[tokio::test]
async fn a_key_warns_at_half_its_limit_and_stops_at_its_limit() {
    let server = Server::start_with(&options()).await;
    let (half, most) = (1_u64 << 31, (1_u64 << 32) - (1 << 16));

    // Before its first encryption, a server reserves 1,024 encryptions.
    for encryptions in [most - 1_023, i64::MAX.unsigned_abs()] {
        set_encryptions(&server, encryptions).await;
        let refused = server.set("/a", "value", json!("v")).await.expect(503);
        refused.error().assert_contains("activate a new key");
        assert!(refused.header("retry-after").is_some());
        assert_eq!(encryptions_of_key(&server).await, encryptions);
    }

    set_encryptions(&server, most - 1_024).await;
    assert_eq!(set(&server, "/a", "v").await, 200);
    assert_eq!(encryptions_of_key(&server).await, most);
    for number in 1..1_024 {
        assert_eq!(set(&server, &format!("/b/{number}"), "v").await, 200);
    }
    assert_eq!(set(&server, "/c", "v").await, 503);
    assert_eq!(get(&server, "/a").await, 200);

    set_encryptions(&server, half - 1_024).await;
    let server = Server::start_in(server.kill(), &options()).await;
    let warning = "has encrypted more than half of its maximum";
    assert!(!server.log().contains(warning));
    assert_eq!(set(&server, "/a", "w").await, 200);
    assert_eq!(encryptions_of_key(&server).await, half);
    assert!(server.log().contains(warning));
    let status = server.run_command("keys status --json").expect(0);
    let status = status.json();
    assert_eq!(status["keys"][0]["encryptions"], json!(half));
    assert_eq!(status["encryptions_max"], json!(most));
    let table = server.run_command("keys status").expect(0);
    table.output.assert_contains("configure a new active key");
    let scrape = server.scrape().await;
    let measured = scrape.sum("keywright_encryption_key_encryptions", &[]);
    assert_eq!(measured, u32::try_from(half).ok().map(f64::from));

    // The reservation of a killed server counts as used, and each server has its own reservation.
    let server = Server::start_in(server.kill(), &options()).await;
    let other = server.start_another().await;
    for server in [&server, &other] {
        assert_eq!(set(server, "/a", "x").await, 200);
    }
    assert_eq!(encryptions_of_key(&server).await, half + 2 * 1_024);
}

/// Sets the number of encryptions of the only key.
async fn set_encryptions(server: &Server, encryptions: u64) {
    let sql = format!(
        "insert into encryption_key_usage (encryption_key_id, encryptions)
         select k.id, {encryptions} from encryption_key k where {}
         on conflict (encryption_key_id) do update set encryptions = excluded.encryptions",
        if is_on_postgres() { "true" } else { "1" }
    );
    server.run_sql(&sql).await;
}

async fn encryptions_of_key(server: &Server) -> u64 {
    let sql = "select encryptions from encryption_key_usage";
    server.run_sql(sql).await.parse().unwrap()
}

#[tokio::test]
async fn an_export_follows_a_symbolic_link_only_with_force() {
    let server = Server::start_with(&options()).await;
    assert_eq!(set(&server, "/a", "secret").await, 200);
    let shell = Shell::of(&server);
    let elsewhere = tempfile::tempdir().unwrap();
    let elsewhere = |name: &str| elsewhere.path().join(name);
    fs::write(elsewhere("theirs"), "theirs").unwrap();
    fs::create_dir(elsewhere("folder")).unwrap();
    symlink(elsewhere("absent"), elsewhere("chain")).unwrap();
    for target in ["theirs", "absent", "chain", "folder/file"] {
        let link = shell.file("export.yml");
        symlink(elsewhere(target), &link).unwrap();
        let refused = shell.run("export --file export.yml").expect(1);
        refused
            .errors
            .assert_contains("is a symbolic link; use --force");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        fs::remove_file(&link).unwrap();
    }
    assert_eq!(fs::read_to_string(elsewhere("theirs")).unwrap(), "theirs");
    for target in ["absent", "folder/file"] {
        assert!(!elsewhere(target).exists());
    }
    symlink(elsewhere("absent"), shell.file("export.yml")).unwrap();
    shell.run("export --file export.yml --force").expect(0);
    let followed = fs::read_to_string(elsewhere("absent")).unwrap();
    followed.assert_contains("secret");
    // `/dev/stdout` is a symbolic link, too, but does not need `--force`.
    let piped = shell.run("export --file /dev/stdout").expect(0);
    piped.output.assert_contains("secret");
}
