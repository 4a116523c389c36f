//! Where a test's server keeps what it stores: in a file, or, when `KEYWRIGHT_TEST_STORAGE` is `postgres`, in a database of its
//! own on a PostgreSQL that this process starts.

use std::{fs, path::Path};

/// The lines of the section `storage` for a server in this folder. A later server in it is given the same database.
pub(crate) fn settings(directory: &Path) -> String {
    if std::env::var_os(VARIABLE).is_none_or(|engine| engine != "postgres") {
        return "file = \"keywright.db\"".to_owned();
    }
    let Some(postgres) = keywright_test_postgres::shared() else {
        // Nothing can be tested, which was said.
        std::process::exit(0);
    };
    let known = directory.join("database-url");
    let url = fs::read_to_string(&known).unwrap_or_else(|_| {
        let url = postgres.new_database();
        fs::write(&known, &url).unwrap();
        url
    });
    format!("url = \"{url}\"")
}

/// The lines of the section `storage` for another server on the database of the one in this folder.
pub(crate) fn shared_settings(directory: &Path, configured: Option<&str>) -> String {
    let own = configured.map_or_else(|| settings(directory), str::to_owned);
    let folder = directory.display();
    own.replace(
        "file = \"keywright.db\"",
        &format!("file = \"{folder}/keywright.db\""),
    )
}

/// Says which engine the servers of all tests have. It is for the harness alone: a server would take it for a setting.
pub(crate) const VARIABLE: &str = "KEYWRIGHT_TEST_STORAGE";
