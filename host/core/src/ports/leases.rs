//! Which of several servers on one database does a piece of work.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::ports::RepositoryFailure;

/// Leases in a database: each piece of work that is best done by one server at a time has a name, which at most one holder has
/// until a moment that is written down.
///
/// The moments are compared as those who ask give them, each by a clock of its own. A lease that is renewed `r` before its end
/// has one holder for as long as no two clocks differ by more than `r`; beyond that, or when a holder is stopped for longer,
/// there may be two for a while. So a lease saves work, and no rule may depend on it.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Takes a lease until a moment, when nobody has it at `now` or this holder has it already. Whether it did.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn acquire(
        &self,
        lease: &Lease,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<bool, RepositoryFailure>;

    /// Keeps a lease until a later moment; false when another one has taken it, or it was released.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn renew(&self, lease: &Lease, until: DateTime<Utc>) -> Result<bool, RepositoryFailure>;

    /// Gives a lease up, so that another one need not wait for its end. Nothing is done when this holder has it not.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn release(&self, lease: &Lease) -> Result<(), RepositoryFailure>;
}

/// A lease, and who wants it or has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What it is about, the same for all servers.
    pub name: &'static str,
    /// Who, of all that there are: an id that nobody else has.
    pub holder: Uuid,
}
