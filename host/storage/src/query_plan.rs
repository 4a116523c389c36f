//! Lets the database explain every statement, and finds none that reads a whole table.

use std::sync::Arc;

use keywright_core::ports::Identifiers;
use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

use crate::{
    SqliteDatabase, SqliteOptions, credential::statements as credential, encryption_key,
    permission::statements as permission,
};

/// Statements that read with an index, however much is stored.
fn indexed_statements() -> Vec<String> {
    let newest_by_names = credential::newest_by_names(3);
    let newest_signed_by = credential::newest_signed_by(3);
    let newest_ids_signed_by = credential::newest_ids_signed_by(3);
    let names_signed_by = credential::names_signed_by(3);
    let of_actor_on = permission::of_actor_on(4);
    [
        credential::VERSION_BY_ID,
        credential::NAME_OF_VERSION,
        credential::NAME_OF_CERTIFICATE,
        credential::STORED_NAME,
        credential::VERSIONS_NEWEST_FIRST,
        credential::VERSIONS_CURRENT,
        &newest_by_names,
        &newest_signed_by,
        &newest_ids_signed_by,
        &names_signed_by,
        credential::VERSIONS_OF_CREDENTIAL_NEWEST_FIRST,
        credential::VERSIONS_OF_CREDENTIAL_CURRENT,
        credential::CERTIFICATES,
        credential::CERTIFICATE_BY_NAME,
        credential::CERTIFICATES_SIGNED_BY,
        credential::CERTIFICATES_BY_EXPIRY,
        credential::FIND_BELOW,
        credential::FIND_EXPIRING,
        credential::FIND_EXPIRING_BELOW,
        credential::FIND_CONTAINING,
        credential::FIND_EXPIRING_CONTAINING,
        credential::FIND_CONTAINING_SHORT,
        credential::FIND_EXPIRING_CONTAINING_SHORT,
        credential::EFFECTIVE_EXPIRIES,
        credential::EFFECTIVE_EXPIRIES_BELOW,
        credential::EFFECTIVE_EXPIRIES_CONTAINING,
        credential::EFFECTIVE_EXPIRIES_CONTAINING_SHORT,
        credential::CREDENTIAL_AND_NEWEST_VERSION,
        credential::INSERT_CREDENTIAL,
        credential::INSERT_VERSION,
        credential::POINT_AT_NEW_VERSION,
        credential::CREDENTIAL_BY_ID,
        credential::VERSION_OF_CREDENTIAL,
        credential::LATEST_CERTIFICATE_OF_CREDENTIAL,
        credential::CLEAR_TRANSITIONAL,
        credential::SET_TRANSITIONAL,
        credential::DELETE_VERSION,
        credential::POINT_AT_VERSIONS,
        credential::DELETE_CREDENTIAL,
        credential::PING,
        encryption_key::statements::INSERT_KEY,
        encryption_key::statements::KEYS_IN_USE,
        encryption_key::statements::VERSIONS_BY_KEY,
        permission::OF_ACTOR,
        &of_actor_on,
        permission::BY_ID,
        permission::ON_PATH,
        permission::GRANT,
        permission::ADD,
        permission::REPLACE_OPERATIONS,
        permission::DELETE,
        permission::DELETE_OF_ACTOR_ON,
    ]
    .map(str::to_owned)
    .to_vec()
}

struct NoIdentifiers;

impl Identifiers for NoIdentifiers {
    fn fresh(&self) -> Uuid {
        Uuid::nil()
    }
}

#[tokio::test]
async fn no_statement_reads_a_whole_table() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions {
        path: folder.path().join("plans.sqlite"),
        readers_max: 1,
        wait_max: std::time::Duration::from_secs(5),
    };
    let database = SqliteDatabase::open(&options, Arc::new(NoIdentifiers))
        .await
        .unwrap();
    for statement in indexed_statements() {
        for step in plan(&database, &statement).await {
            assert!(!is_whole_scan(&step), "{step}\n{statement}");
        }
    }
    for statement in ["select * from credential", "select * from credential_name"] {
        let steps = plan(&database, statement).await;
        assert!(steps.iter().any(|step| is_whole_scan(step)), "{steps:?}");
    }
}

async fn plan(database: &SqliteDatabase, statement: &str) -> Vec<String> {
    let query = sqlx::query(AssertSqlSafe(format!("explain query plan {statement}")));
    let writer = &database.pools().writer;
    writer
        .fetch_all(query)
        .await
        .unwrap()
        .iter()
        .map(|row| row.get("detail"))
        .collect()
}

/// A scan reads everything, unless it is one of a full-text index with a constraint, which stands behind the colon, of what
/// a recursive query has found so far, of no table at all, or of the encryption keys, of which there are only as many as
/// ever were active.
fn is_whole_scan(step: &str) -> bool {
    let is_constrained = step.contains("VIRTUAL TABLE INDEX") && !step.ends_with("INDEX 0:");
    let is_recursion = ["SCAN l", "SCAN chain_link"].contains(&step);
    let is_short = ["SCAN CONSTANT ROW", "SCAN k"].contains(&step);
    step.starts_with("SCAN") && !is_constrained && !is_recursion && !is_short
}
