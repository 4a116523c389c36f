//! Leases, which assign work to one of several servers.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use keywright_core::ports::{Lease, Leases, RepositoryError};

use crate::{
    Database,
    statement::{Statement, statement},
};

/// Each operation is one statement, so that only one of several servers acquires a lease.
#[async_trait]
impl Leases for Database {
    async fn acquire(
        &self,
        lease: &Lease,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<bool, RepositoryError> {
        self.changes_row(
            statement(statements::ACQUIRE)
                .bind(lease.name)
                .bind(lease.holder)
                .bind(until.timestamp_millis())
                .bind(now.timestamp_millis())
                .bind((now + lease.time_max).timestamp_millis()),
        )
        .await
    }

    async fn renew(&self, lease: &Lease, until: DateTime<Utc>) -> Result<bool, RepositoryError> {
        self.changes_row(
            statement(statements::RENEW)
                .bind(lease.name)
                .bind(lease.holder)
                .bind(until.timestamp_millis()),
        )
        .await
    }

    async fn release(&self, lease: &Lease) -> Result<(), RepositoryError> {
        self.changes_row(
            statement(statements::RELEASE)
                .bind(lease.name)
                .bind(lease.holder),
        )
        .await
        .map(drop)
    }
}

impl Database {
    async fn changes_row(&self, statement: Statement) -> Result<bool, RepositoryError> {
        let changed = self.writer.execute(statement).await?;
        Ok(changed > 0)
    }
}

pub(crate) mod statements {

    pub(crate) const ACQUIRE: &str = "
        insert into lease (name, holder, expires_at) values ($1, $2, $3)
        on conflict (name) do update set holder = excluded.holder, expires_at = excluded.expires_at
        where lease.holder = excluded.holder or lease.expires_at <= $4 or lease.expires_at > $5";

    pub(crate) const RENEW: &str =
        "update lease set expires_at = $3 where name = $1 and holder = $2";

    pub(crate) const RELEASE: &str = "delete from lease where name = $1 and holder = $2";
}
