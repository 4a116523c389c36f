//! The storage of a test server: a file, or its own database on a PostgreSQL server that this process starts if
//! `KEYWRIGHT_TEST_STORAGE` is `postgres`.

use std::{fs, path::Path, time::Duration};

use sqlx::{
    AssertSqlSafe, Connection, Row, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteRow},
};

use crate::Server;

impl Server {
    /// Adds permissions of an actor to read 100,000 names below a path to the database.
    pub async fn grant_many(&self, below: &str, actor: &str) {
        let id = random_id();
        let sql = format!(
            "insert into permission (id, path, actor, operations)
             with recursive number (n) as (select 1 union all select n + 1 from number where n < 100000)
             select {id}, '{below}/' || n, '{actor}', 1 from number"
        );
        self.run_sql(&sql).await;
    }

    /// Adds copies of a certificate under other names to the database. Their values can't be decrypted.
    pub async fn copy_certificate(&self, of: &str, count: u32) {
        let id = random_id();
        let version = "created_at, is_transitional, is_generated, expires_at, is_certificate_authority, is_self_signed, \
            key_length_bits, signed_by, signed_by_folded, encryption_key_id, nonce, ciphertext";
        let prefixed = format!("v.{}", version.replace(", ", ", v."));
        let sql = format!(
            "insert into credential (id, name, name_folded, credential_type, created_at)
             with recursive number (n) as (select 1 union all select n + 1 from number where n < {count})
             select {id}, '/copy/' || n, '/copy/' || n, 'certificate', 0 from number;
             insert into credential_version (id, credential_sequence, {version})
             select {id}, c.sequence, {prefixed} from credential c, credential_version v
             where c.name_folded like '/copy/%'
                and v.sequence = (select o.newest_sequence from credential o where o.name_folded = '{of}')
             order by c.sequence;
             update credential set (newest_sequence, current_sequence, newest_created_at, current_created_at, newest_expires_at) = (
                select v.sequence, v.sequence, v.created_at, v.created_at, v.expires_at
                from credential_version v where v.credential_sequence = credential.sequence
             ) where name_folded like '/copy/%';
             analyze"
        );
        self.run_sql(&sql).await;
    }

    /// Runs SQL directly on the server's database, and returns the result: one row per line, with columns, which must
    /// be texts or integers, separated by `|`.
    pub async fn run_sql(&self, sql: &str) -> String {
        run_sql(self.directory(), sql).await
    }
}

/// Returns an SQL expression for a random id.
fn random_id() -> &'static str {
    if is_on_postgres() {
        "gen_random_uuid()"
    } else {
        "randomblob(16)"
    }
}

/// Runs SQL on the database of the server in this folder, running or not. Statements are separated by semicolons.
///
/// # Panics
///
/// Panics if a statement fails.
pub async fn run_sql(directory: &Path, sql: &str) -> String {
    if let Ok(url) = fs::read_to_string(directory.join(DATABASE_URL)) {
        let postgres = keywright_test_postgres::shared().unwrap();
        return postgres.run_at(&url, sql);
    }
    let options = SqliteConnectOptions::new()
        .filename(directory.join(FILE))
        .busy_timeout(BUSY_MAX);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    let rows = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .fetch_all(&mut connection)
        .await
        .unwrap_or_else(|cause| panic!("{sql}: {cause}"));
    connection.close().await.unwrap();
    let lines: Vec<String> = rows.iter().map(line_of).collect();
    lines.join("\n")
}

/// Copies the database of the server in a folder with `pg_dump` and `pg_restore`, for a server in another folder. Returns
/// the URLs of both databases, or `None` if the server does not use PostgreSQL.
pub(crate) fn copy_on_postgres(from: &Path, to: &Path) -> Option<(String, String)> {
    let url = fs::read_to_string(from.join(DATABASE_URL)).ok()?;
    let postgres = keywright_test_postgres::shared().unwrap();
    let copy = postgres.dump_and_restore(&url);
    fs::write(to.join(DATABASE_URL), &copy).unwrap();
    Some((url, copy))
}

/// Returns whether all test servers use PostgreSQL.
pub fn is_on_postgres() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|engine| engine == "postgres")
}

/// Returns the lines of the section `storage` for a server in this folder. Later servers in it get the same database.
pub(crate) fn settings(directory: &Path) -> String {
    if !is_on_postgres() {
        return format!("file = \"{FILE}\"");
    }
    let Some(postgres) = keywright_test_postgres::shared() else {
        // Nothing can be tested; the reason was printed.
        std::process::exit(0);
    };
    let known = directory.join(DATABASE_URL);
    let url = fs::read_to_string(&known).unwrap_or_else(|_| {
        let url = postgres.new_database();
        fs::write(&known, &url).unwrap();
        url
    });
    format!("url = \"{url}\"")
}

fn line_of(row: &SqliteRow) -> String {
    let columns = (0..row.len()).map(|position| {
        let text = row
            .try_get_unchecked::<Option<String>, _>(position)
            .unwrap();
        text.unwrap_or_default()
    });
    columns.collect::<Vec<_>>().join("|")
}

/// The database of a server on SQLite, in its folder.
pub(crate) const FILE: &str = "keywright.db";

/// Holds the URL of the database of a server on PostgreSQL, in its folder.
const DATABASE_URL: &str = "database-url";

/// The maximum wait for a lock of the server.
const BUSY_MAX: Duration = Duration::from_mins(10);

/// Returns the lines of the section `storage` for sharing the database of the server in this folder, which may not exist yet.
pub fn shared_storage(directory: &Path) -> String {
    shared_settings(directory, None)
}

/// Like [`shared_storage`], for a server with these lines in its configuration.
pub(crate) fn shared_settings(directory: &Path, configured: Option<&str>) -> String {
    let own = configured.map_or_else(|| settings(directory), str::to_owned);
    let folder = directory.display();
    own.replace(
        "file = \"keywright.db\"",
        &format!("file = \"{folder}/keywright.db\""),
    )
}

/// Selects the storage engine of all test servers. For the harness only: a server would read it as a setting.
pub(crate) const VARIABLE: &str = "KEYWRIGHT_TEST_STORAGE";
