//! What a plugin made. One query.

use std::ops::ControlFlow;

use keywright_core::{
    credential::{CredentialName, FindNames, GeneratedCredential, PluginDigest},
    ports::{Receive, RepositoryFailure},
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
    let query = statement(sql).bind(digest.as_str());
    let query = match names {
        NameSearch::All => query,
        NameSearch::Containing(text) => query.bind(text),
        NameSearch::Between(from, before) | NameSearch::TrigramsBetween(from, before) => {
            query.bind(from).bind(before)
        }
    };
    let mut previous: Option<CredentialName> = None;
    let mut outcome = Ok(());
    let mut receive_row = |row| match row::generated_credential(&row) {
        // The rows of a credential with several such versions are adjacent, the newest version first.
        Ok(generated) if previous.as_ref() == Some(&generated.found.name) => {
            ControlFlow::Continue(())
        }
        Ok(generated) => {
            previous = Some(generated.found.name.clone());
            receive(generated)
        }
        Err(failure) => {
            outcome = Err(failure);
            ControlFlow::Break(())
        }
    };
    reader.fetch_each(query, &mut receive_row).await?;
    outcome
}
