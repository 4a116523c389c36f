//! Certificates that expire with their chains. One query, however long the chains are.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use keywright_core::{
    credential::{CHAIN_DEPTH_MAX, ChainLink, CredentialName, EffectiveExpiry, FindNames},
    ports::{Receive, RepositoryFailure},
};

use super::{find::NameSearch, row, statements};
use crate::{
    connections::{Connections, Engine},
    row::{Row, column, small},
    statement::statement,
};

pub(super) async fn effective_expiries(
    reader: &Connections,
    names: &FindNames,
    until: DateTime<Utc>,
    receive: Receive<'_, EffectiveExpiry>,
) -> Result<(), RepositoryFailure> {
    let Some(names) = NameSearch::new(names, reader.engine()) else {
        return Ok(());
    };
    let sql = match &names {
        NameSearch::All => statements::EFFECTIVE_EXPIRIES,
        NameSearch::Between(..) => statements::EFFECTIVE_EXPIRIES_BELOW,
        NameSearch::Containing(_) => match reader.engine() {
            Engine::Postgres => statements::POSTGRES_EFFECTIVE_EXPIRIES_CONTAINING,
            Engine::Sqlite => statements::SQLITE_EFFECTIVE_EXPIRIES_CONTAINING,
        },
        NameSearch::TrigramsBetween(..) => statements::SQLITE_EFFECTIVE_EXPIRIES_CONTAINING_SHORT,
    };
    let query = statement(sql)
        .bind(until.timestamp_millis())
        .bind(i64::from(CHAIN_DEPTH_MAX));
    // The links of a certificate are in the order of their expiry.
    let mut seen: HashSet<i64> = HashSet::new();
    let first_of_each = |row: &Row| {
        let is_first = seen.insert(column!(row, "credential", "sequence")?);
        is_first.then(|| effective_expiry(row)).transpose()
    };
    let query = names.bind_to(query);
    reader.decode_each(query, first_of_each, receive).await
}

fn effective_expiry(row: &Row) -> Result<EffectiveExpiry, RepositoryFailure> {
    let link_name: Option<String> = column!(row, "credential_version", "link_name")?;
    Ok(EffectiveExpiry {
        name: CredentialName::from_stored(column!(row, "credential", "name")?),
        version_created_at: row::time(
            column!(row, "credential", "version_created_at")?,
            "credential.current_created_at",
        )?,
        link: ChainLink {
            depth: small(
                column!(row, "credential_version", "depth")?,
                "credential_version.depth",
            )?,
            name: link_name.map(CredentialName::from_stored),
            version_id: column!(row, "credential_version", "link_id")?,
            expires_at: row::time(
                column!(row, "credential_version", "expires_at")?,
                "credential_version.expires_at",
            )?,
        },
    })
}
