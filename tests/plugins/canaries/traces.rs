//! The files in which a server could leave a secret: its log, its audit trail and its database files.

#![expect(clippy::unwrap_used, reason = "an unreadable file fails the test")]

use std::{fs, path::Path};

use keywright_harness::Server;

use super::Canaries;

/// Asserts that no canary is in the log, the audit trail or a database file, while the server runs and after its end. The
/// trail and the files must contain this marker, which proves that the search works.
pub(super) async fn assert_left_nowhere(server: Server, canaries: &Canaries, marker: &str) {
    assert!(
        database(server.directory()).contains(marker),
        "the search looks in the wrong files"
    );
    assert!(server.log().contains("keywright"), "the log is empty");
    let trail = server.audit_trail();
    assert!(
        trail.contains(marker),
        "the search looks in the wrong trail"
    );
    canaries.assert_absent("the audit trail", &trail);
    canaries.assert_absent("the log", &server.whole_log().await);
    canaries.assert_absent("the open database", &database(server.directory()));
    let folder = server.stop().await;
    canaries.assert_absent("the closed database", &database(folder.path()));
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    canaries.assert_absent("the log at its end", &log);
}

/// The contents of the database file and of the files that SQLite keeps next to it.
pub(super) fn database(folder: &Path) -> String {
    let mut contents = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("keywright.db") {
            contents.push_str(&String::from_utf8_lossy(&fs::read(&path).unwrap()));
        }
    }
    contents
}
