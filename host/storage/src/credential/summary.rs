//! Counting credentials by type, and listing CAs with a transitional version.

use keywright_core::{
    credential::{CredentialName, CredentialType},
    permission::PermissionPath,
    ports::{Receive, RepositoryError},
};

use super::row;
use crate::{
    connections::Connections,
    row::{Row, column, count},
    statement::statement,
};

pub(super) async fn count_by_type(
    reader: &Connections,
    path: &PermissionPath,
    count_max: u64,
) -> Result<Vec<(CredentialType, u64)>, RepositoryError> {
    let count_max = i64::try_from(count_max).unwrap_or(i64::MAX);
    let query = if path.covers_everything() {
        statement(statements::COUNT_ALL).bind(count_max)
    } else {
        // The condition on the prefix compares the casing. The range of folded names lets the database use the index.
        let (prefix, end) = match path.enclosing() {
            Some(path) => (format!("{path}/"), format!("{path}{AFTER_SLASH}")),
            None => (path.to_string(), format!("{path}{BEFORE_NAME_CHARACTERS}")),
        };
        statement(statements::COUNT_BELOW)
            .bind(count_max)
            .bind(prefix.to_ascii_lowercase())
            .bind(end.to_ascii_lowercase())
            .bind(prefix)
    };
    let rows = reader.fetch_all(query).await?;
    let counted = rows.iter().map(|row| {
        let credentials = column!(row, "credential", "credentials")?;
        Ok((row::credential_type(row)?, count(credentials)))
    });
    counted.collect()
}

pub(super) async fn transitional_authorities(
    reader: &Connections,
    receive: Receive<'_, CredentialName>,
) -> Result<(), RepositoryError> {
    let query = statement(statements::TRANSITIONAL_AUTHORITIES);
    let decode = |row: &Row| row::name(row).map(Some);
    reader.decode_each(query, decode, receive).await
}

/// The character after the slash.
const AFTER_SLASH: char = '0';

/// A character that is smaller than all characters of names.
const BEFORE_NAME_CHARACTERS: char = '!';

pub(crate) mod statements {
    //! The SQL of summaries.

    macro_rules! count {
        ($condition:literal) => {
            concat!(
                "select chosen.credential_type, count(*) as credentials from (
                     select c.credential_type from credential c where ",
                $condition,
                " and c.current_sequence is not null limit cast($1 as bigint)
                 ) chosen group by chosen.credential_type order by chosen.credential_type"
            )
        };
    }

    /// Reads the table in its own order: much faster than by name.
    pub(crate) const COUNT_ALL: &str = count!("c.sequence > 0");

    pub(crate) const COUNT_BELOW: &str = count!(
        "c.name_folded >= $2 and c.name_folded < $3
         and substr(c.name, 1, length(cast($4 as text))) = cast($4 as text)"
    );

    /// The condition on the sequence makes the index of transitional versions usable.
    pub(crate) const TRANSITIONAL_AUTHORITIES: &str = "
        select c.name from credential_version v join credential c on c.sequence = v.credential_sequence
        where v.is_transitional and v.credential_sequence > 0 and v.is_certificate_authority
        order by v.credential_sequence";
}
