//! The SQL of the credentials of a batch.

use keywright_core::ports::NewVersion;
use uuid::Uuid;

use crate::{
    credential::statements::rows,
    statement::{Statement, StatementOfMany, placeholders},
};

/// Locks the rows of the credentials with these folded names, in the order of the names, and returns them. Other transactions may
/// still reference the rows. If another transaction has locked a row, only its name is returned.
pub(super) fn lock_credentials(names: &[String]) -> Statement {
    LOCK_CREDENTIALS.bind([], names.iter().map(String::as_str))
}

/// Inserts the credentials of new versions with these ids, except credentials whose names exist by now. Unused rows have no id.
pub(super) fn insert_credentials(credentials: &[(Uuid, &NewVersion)]) -> Statement {
    let (query, count) = INSERT_CREDENTIALS.with_placeholders(credentials.len());
    (0..count).fold(query, |query, row| {
        let (id, version) = credentials.get(row).copied().unzip();
        query
            .bind(id)
            .bind(version.map(|version| version.name.as_str()))
            .bind(version.map(|version| version.name.lookup().folded().to_owned()))
            .bind(version.map(|version| version.credential_type.as_str()))
            .bind(version.map(|version| version.created_at.timestamp_millis()))
    })
}

/// Returns the texts, for the test of their plans.
#[cfg(test)]
pub(crate) fn texts(count: usize) -> [String; 2] {
    [&LOCK_CREDENTIALS, &INSERT_CREDENTIALS].map(|statement| statement.text(count))
}

static LOCK_CREDENTIALS: StatementOfMany = StatementOfMany::new(lock_credentials_sql);
static INSERT_CREDENTIALS: StatementOfMany = StatementOfMany::new(insert_credentials_sql);

fn lock_credentials_sql(count: usize) -> String {
    let names = placeholders(1, count);
    format!(
        "with locked as (
             select c.sequence, c.id, c.name, c.name_folded, c.credential_type from credential c
             where c.name_folded in ({names}) order by c.name_folded for no key update skip locked
         )
         select c.name_folded, l.sequence, l.id, l.name, l.credential_type
         from credential c left join locked l on l.name_folded = c.name_folded
         where c.name_folded in ({names})"
    )
}

fn insert_credentials_sql(count: usize) -> String {
    format!(
        "insert into credential (id, name, name_folded, credential_type, created_at)
         select new.id, new.name, new.name_folded, new.credential_type, new.created_at
         from (values {}) as new (id, name, name_folded, credential_type, created_at)
         where new.id is not null
         on conflict (name_folded) do nothing returning sequence, id",
        rows(count, &["uuid", "text", "text", "text", "bigint"])
    )
}
