//! Backups during writes, their restoration, and refused backups.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use keywright_harness::{
    Commanded, Options, Server, Text, copied_by_backup, is_on_postgres, print_message, run_command,
    run_command_with_files_up_to, run_sql, until,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::fill;
use crate::given;

// Backups during writes, and their restoration: by `keywright backup` on SQLite, by `pg_dump` on PostgreSQL.

/// The acknowledged writes of a server.
#[derive(Clone, Default)]
struct Acknowledged {
    /// Versions as returned in responses.
    written: Vec<Value>,
    /// The names of deleted credentials.
    deleted: Vec<String>,
}

#[tokio::test]
async fn a_backup_contains_all_previously_acknowledged_writes() {
    let server = Server::start().await;
    fill(&server).await;
    let acknowledged = Mutex::new(Acknowledged::default());
    let is_over = AtomicBool::new(false);
    let write = async |writer: usize| {
        let mut round = 0;
        while !is_over.load(Ordering::Relaxed) {
            write_once(&server, &acknowledged, writer, round).await;
            round += 1;
        }
    };
    let back_up = async {
        let mut backups = Vec::new();
        for number in 1..=BACKUPS {
            let deleted = || acknowledged.lock().unwrap().deleted.len();
            let are_enough = async || deleted() >= number * DELETED_BETWEEN;
            until("deletions", are_enough).await;
            let before = acknowledged.lock().unwrap().clone();
            let directory = server.directory().to_owned();
            let copying = tokio::task::spawn_blocking(move || copied_by_backup(&directory));
            backups.push((copying.await.unwrap(), before));
        }
        is_over.store(true, Ordering::Relaxed);
        backups
    };
    let ((), (), (), backups) = tokio::join!(write(0), write(1), write(2), back_up);
    for (copy, before) in backups {
        assert_check_finds_nothing(copy.path());
        let restored = Server::start_in(copy, &Options::default()).await;
        for version in before.written {
            let id = given::id(&version);
            let read = restored.get(&format!("/api/v1/data/{id}")).await;
            assert_eq!(read.expect(200).json(), version);
        }
        for name in before.deleted {
            let gone = restored.get(&format!("/api/v1/data?name={name}")).await;
            gone.expect(404);
        }
        restored.set_value("/after", "v").await;
        assert_check_finds_nothing(restored.directory());
    }
}

#[tokio::test]
async fn a_restored_backup_has_the_state_of_the_killed_server() {
    if is_on_postgres() {
        return;
    }
    let server = Server::start().await;
    fill(&server).await;
    let everything = server.all_versions().await;
    let copy = copied_by_backup(server.directory());
    for round in 0..10 {
        server.set_value(&format!("/since/{round}"), "v").await;
    }
    // A killed server leaves a write-ahead log that SQLite would apply to the copy.
    let directory = server.kill();
    let database = directory.path().join("keywright.db");
    fs::copy(copy.path().join("keywright.db"), &database).unwrap();
    for end in ["-wal", "-shm"] {
        fs::remove_file(format!("{}{end}", database.display())).unwrap();
    }
    assert_check_finds_nothing(directory.path());
    let restored = Server::start_in(directory, &Options::default()).await;
    assert_eq!(restored.all_versions().await, everything);
    assert_check_finds_nothing(restored.directory());
}

#[track_caller]
fn assert_check_finds_nothing(directory: &Path) {
    let result = run_command(directory, "check").expect(0);
    assert!(result.output.ends_with(": 0 findings\n"), "{result:?}");
}

/// Sends one set, generate, regenerate and delete request each, and records each request that the server acknowledges.
async fn write_once(
    server: &Server,
    acknowledged: &Mutex<Acknowledged>,
    writer: usize,
    round: usize,
) {
    let record = |version| acknowledged.lock().unwrap().written.push(version);
    let name = format!("/load/{writer}");
    record(
        server
            .set_value(&format!("{name}/value"), &"v".repeat(2_000))
            .await,
    );
    let password = format!("{name}/password");
    record(server.generated(&password, "password", json!({})).await);
    record(server.regenerated(&password).await);
    let deleted = format!("{name}/{round}");
    server.set_value(&deleted, "v").await;
    let path = format!("/api/v1/data?name={deleted}");
    server.delete(&path).await.expect(204);
    acknowledged.lock().unwrap().deleted.push(deleted);
}

const BACKUPS: usize = 3;

/// The minimum number of deletions between two backups.
const DELETED_BETWEEN: usize = 10;

// Backups that `keywright backup` refuses, and the files left behind.

#[tokio::test]
async fn a_backup_is_private_and_its_contents_are_reported() {
    let Some((server, folder)) = server_with_values().await else {
        return;
    };
    let target = folder.path().join("copy");
    let result = back_up(server.directory(), &target, &[]).expect(0);
    let file = fs::metadata(&target).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    assert_eq!(
        result.output,
        format!(
            "backed up to {}: 3 credentials with 4 versions, and 2 permissions, in {} bytes\n",
            target.display(),
            file.len()
        )
    );
    assert_eq!(files(folder.path()), ["copy"]);
}

#[tokio::test]
async fn an_existing_file_is_only_overwritten_on_request() {
    let Some((server, folder)) = server_with_values().await else {
        return;
    };
    let target = folder.path().join("copy");
    fs::write(&target, "something else").unwrap();
    let result = back_up(server.directory(), &target, &[]).expect(1);
    result.errors.assert_contains("already exists");
    assert_eq!(fs::read(&target).unwrap(), b"something else");
    back_up(server.directory(), &target, &["--force"]).expect(0);
    assert!(fs::read(&target).unwrap().starts_with(b"SQLite format 3"));
    assert_eq!(files(folder.path()), ["copy"]);
}

#[tokio::test]
async fn a_backup_never_overwrites_its_own_database() {
    let Some((server, folder)) = server_with_values().await else {
        return;
    };
    let database = server.directory().join("keywright.db");
    let linked = folder.path().join("linked");
    fs::hard_link(&database, &linked).unwrap();
    let indirect = server.directory().join("../").join(
        server
            .directory()
            .file_name()
            .map(|name| Path::new(name).join("keywright.db-wal"))
            .unwrap(),
    );
    for target in [&database, &linked, &indirect] {
        let result = back_up(server.directory(), target, &["--force"]).expect(1);
        let reason = "is the database itself or one of its files";
        result.errors.assert_contains(reason);
    }
    server.run_command("check").expect(0);
}

#[tokio::test]
async fn a_failed_backup_leaves_no_file() {
    let Some((server, folder)) = server_with_values().await else {
        return;
    };
    let missing = folder.path().join("missing/copy");
    let result = back_up(server.directory(), &missing, &[]).expect(1);
    result.errors.assert_contains("could not write ");
    let target = folder.path().join("copy");
    let to = target.to_str().unwrap();
    // The size limit permits only a part of the database in the copy.
    let result = run_command_with_files_up_to(64, server.directory(), &["backup", to]).expect(1);
    result.errors.assert_contains("could not copy the database");
    assert!(files(folder.path()).is_empty());
    // The copy of a damaged database is damaged, too.
    let sql = "delete from credential_name_data where id > 10";
    server.run_sql(sql).await;
    let result = back_up(server.directory(), &target, &[]).expect(1);
    result.errors.assert_contains("the copy is unusable: ");
    assert!(files(folder.path()).is_empty());
}

#[tokio::test]
async fn root_opens_no_database_whose_folder_another_user_could_move() {
    let Some((server, target)) = server_with_values().await else {
        return;
    };
    let folder = server.stop().await;
    if fs::metadata(folder.path()).unwrap().uid() != 0 {
        return print_message("skipped: only root can give a folder to another user");
    }
    let (linked, below) = (
        folder.path().join("keywright.db"),
        folder.path().join("sub"),
    );
    fs::create_dir(&below).unwrap();
    fs::rename(&linked, below.join("db")).unwrap();
    symlink("sub/db", &linked).unwrap();
    chown(&below, Some(65_534), None).unwrap();
    back_up(folder.path(), &target.path().join("a"), &[]).expect(0);
    let link = target.path().join("link");
    symlink("a", &link).unwrap();
    let refused = back_up(folder.path(), &link, &["--force"]).expect(1);
    refused.errors.assert_contains("is not a file");
    chown(folder.path(), Some(65_534), None).unwrap();
    for command in [
        "check",
        "keys status",
        &format!("backup {}/b", target.path().display()),
    ] {
        let result = run_command(folder.path(), command).expect(1);
        result
            .errors
            .assert_contains("belongs to another user (id 65534)");
    }
}

#[tokio::test]
async fn a_database_with_another_schema_version_can_be_backed_up() {
    let Some((server, folder)) = server_with_values().await else {
        return;
    };
    let directory = server.stop().await;
    let sql = "delete from _sqlx_migrations where version > 1";
    run_sql(directory.path(), sql).await;
    back_up(directory.path(), &folder.path().join("copy"), &[]).expect(0);
}

#[tokio::test]
async fn on_postgresql_the_error_names_the_tool_to_use() {
    if !is_on_postgres() {
        return;
    }
    let server = Server::start().await;
    let result = server.run_command("backup copy").expect(1);
    result.errors.assert_contains("use pg_dump");
    assert!(!server.directory().join("copy").exists());
}

/// Starts a server on SQLite with some values, and creates a folder for copies. Returns `None` on PostgreSQL.
async fn server_with_values() -> Option<(Server, TempDir)> {
    if is_on_postgres() {
        return None;
    }
    let server = Server::start().await;
    for name in ["/a", "/b", "/c", "/c"] {
        server.set_value(name, &"v".repeat(60_000)).await;
    }
    Some((server, TempDir::new().unwrap()))
}

fn back_up(directory: &Path, target: &Path, options: &[&str]) -> Commanded {
    let mut arguments = vec!["backup", target.to_str().unwrap()];
    arguments.extend(options);
    run_command(directory, &arguments)
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}
