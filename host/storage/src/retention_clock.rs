//! Retention's record of the clock.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use keywright_core::ports::{ClockRecord, RepositoryFailure, RetentionClock};

use crate::{database::Pools, row::column, statement::statement};

/// The record of the clock in a database.
#[derive(Clone)]
pub struct SqlRetentionClock {
    pools: Pools,
}

impl SqlRetentionClock {
    pub(crate) fn new(pools: Pools) -> Self {
        Self { pools }
    }
}

#[async_trait]
impl RetentionClock for SqlRetentionClock {
    async fn read(&self) -> Result<Option<ClockRecord>, RepositoryFailure> {
        let query = statement(statements::READ).bind(ID);
        let Some(row) = self.pools.reader.fetch_optional(query).await? else {
            return Ok(None);
        };
        let seen_at = column!(row, "retention_clock", "seen_at")?;
        let trusted_from = column!(row, "retention_clock", "trusted_from")?;
        Ok(Some(ClockRecord {
            seen_at: moment(seen_at)?,
            trusted_from: moment(trusted_from)?,
        }))
    }

    async fn write(&self, record: ClockRecord) -> Result<(), RepositoryFailure> {
        let query = statement(statements::WRITE)
            .bind(ID)
            .bind(record.seen_at.timestamp_millis())
            .bind(record.trusted_from.timestamp_millis());
        self.pools.writer.execute(query).await.map(drop)
    }
}

fn moment(milliseconds: i64) -> Result<DateTime<Utc>, RepositoryFailure> {
    DateTime::from_timestamp_millis(milliseconds)
        .ok_or(RepositoryFailure::Inconsistent("retention_clock"))
}

/// The id of the only row.
const ID: i64 = 1;

pub(crate) mod statements {

    pub(crate) const READ: &str =
        "select c.seen_at, c.trusted_from from retention_clock c where c.id = $1";

    pub(crate) const WRITE: &str = "
        insert into retention_clock (id, seen_at, trusted_from) values ($1, $2, $3)
        on conflict (id) do update set seen_at = excluded.seen_at, trusted_from = excluded.trusted_from";
}
