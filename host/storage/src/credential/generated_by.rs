//! Credentials that a plugin generated. One query.

use keywright_core::{
    credential::{FindNames, GeneratedCredential, PluginDigest},
    ports::RepositoryFailure,
};

use super::{find::NameSearch, row, statements};
use crate::{
    connections::{Connections, Engine},
    statement::statement,
};

pub(super) async fn generated_by(
    reader: &Connections,
    digest: &PluginDigest,
    names: &FindNames,
) -> Result<Vec<GeneratedCredential>, RepositoryFailure> {
    let Some(names) = NameSearch::by_comparison(names) else {
        return Ok(Vec::new());
    };
    let sql = match (&names, reader.engine()) {
        (NameSearch::All, _) => statements::GENERATED_BY,
        (NameSearch::Between(..) | NameSearch::TrigramsBetween(..), _) => {
            statements::GENERATED_BY_BELOW
        }
        (NameSearch::Containing(_), Engine::Postgres) => {
            statements::POSTGRES_GENERATED_BY_CONTAINING
        }
        (NameSearch::Containing(_), Engine::Sqlite) => statements::SQLITE_GENERATED_BY_CONTAINING,
    };
    let query = statement(sql).bind(digest.as_str());
    let query = match names {
        NameSearch::All => query,
        NameSearch::Containing(text) => query.bind(text),
        NameSearch::Between(from, before) | NameSearch::TrigramsBetween(from, before) => {
            query.bind(from).bind(before)
        }
    };
    let rows = reader.fetch_all(query).await?;
    let mut generated: Vec<GeneratedCredential> = rows
        .iter()
        .map(row::generated_credential)
        .collect::<Result<_, _>>()?;
    // The rows of one credential are adjacent, the newest version first.
    generated.dedup_by(|later, kept| later.found.name == kept.found.name);
    Ok(generated)
}
