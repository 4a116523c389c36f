//! Credentials that a plugin generated. One query.

use keywright_core::{
    credential::{FindNames, GeneratedCredential, PluginDigest},
    ports::{Receive, RepositoryFailure},
};

use super::{find::NameSearch, row, statements};
use crate::{
    connections::{Connections, Engine},
    row::Row,
    statement::statement,
};

pub(super) async fn generated_by(
    reader: &Connections,
    digest: &PluginDigest,
    names: &FindNames,
    receive: Receive<'_, GeneratedCredential>,
) -> Result<(), RepositoryFailure> {
    let Some(names) = NameSearch::by_comparison(names) else {
        return Ok(());
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
    let query = names.bind_to(statement(sql).bind(digest.as_str()));
    // The rows of one credential are adjacent, the newest version first.
    let mut last = None;
    let first_of_each = |row: &Row| {
        let generated = row::generated_credential(row)?;
        let name = Some(generated.found.name.clone());
        let is_first = last != name;
        last = name;
        Ok(is_first.then_some(generated))
    };
    reader.decode_each(query, first_of_each, receive).await
}
