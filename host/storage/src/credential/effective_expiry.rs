//! Which certificates expire with their chains. One query, however long the chains are.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use keywright_core::{
    credential::{ChainLink, CredentialName, EffectiveExpiry, FindNames},
    ports::RepositoryFailure,
};
use sqlx::sqlite::SqliteRow;

use super::{
    find::{AFTER_ROOT, NameSearch, ROOT},
    row, statements,
};
use crate::{connections::Connections, failure::column};

pub(super) async fn effective_expiries(
    reader: &Connections,
    names: &FindNames,
    until: DateTime<Utc>,
) -> Result<Vec<EffectiveExpiry>, RepositoryFailure> {
    let Some(names) = NameSearch::new(names) else {
        return Ok(Vec::new());
    };
    let until = until.timestamp_millis();
    let query = match names {
        NameSearch::All => sqlx::query(statements::EFFECTIVE_EXPIRIES_BELOW)
            .bind(until)
            .bind(ROOT)
            .bind(AFTER_ROOT),
        NameSearch::Between(from, before) => sqlx::query(statements::EFFECTIVE_EXPIRIES_BELOW)
            .bind(until)
            .bind(from)
            .bind(before),
        NameSearch::Phrase(phrase) => sqlx::query(statements::EFFECTIVE_EXPIRIES_CONTAINING)
            .bind(until)
            .bind(phrase),
        NameSearch::TrigramsBetween(from, before) => {
            sqlx::query(statements::EFFECTIVE_EXPIRIES_CONTAINING_SHORT)
                .bind(until)
                .bind(from)
                .bind(before)
        }
    };
    first_of_each(&reader.fetch_all(query).await?)
}

/// Of the links of each certificate, which come in the order of their expiry, the first.
fn first_of_each(rows: &[SqliteRow]) -> Result<Vec<EffectiveExpiry>, RepositoryFailure> {
    let mut seen: HashSet<i64> = HashSet::new();
    let mut expiries = Vec::new();
    for row in rows {
        if seen.insert(column!(row, "credential", "sequence")?) {
            expiries.push(effective_expiry(row)?);
        }
    }
    Ok(expiries)
}

fn effective_expiry(row: &SqliteRow) -> Result<EffectiveExpiry, RepositoryFailure> {
    let link_name: Option<String> = column!(row, "credential_version", "link_name")?;
    Ok(EffectiveExpiry {
        name: CredentialName::from_stored(column!(row, "credential", "name")?),
        version_created_at: row::time(
            column!(row, "credential", "version_created_at")?,
            "credential.current_created_at",
        )?,
        link: ChainLink {
            depth: column!(row, "credential_version", "depth")?,
            name: link_name.map(CredentialName::from_stored),
            version_id: column!(row, "credential_version", "link_id")?,
            expires_at: row::time(
                column!(row, "credential_version", "expires_at")?,
                "credential_version.expires_at",
            )?,
        },
    })
}
