//! Leases: assigning background work to one of several servers on one database.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::ports::RepositoryFailure;

/// Leases in a database: a lease names a piece of work that one server at a time should do, and has at most one holder
/// until it expires.
///
/// Times come from the clocks of the servers. A lease that is renewed `r` before its expiry has one holder as long as no two
/// clocks differ by more than `r`. If they do, or if a holder pauses for longer, two servers may hold it for a while. So a
/// lease saves work, but correctness must not depend on it.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Acquires a lease if no other holder has it at `now`. Returns whether it was acquired.
    ///
    /// # Errors
    /// If the query fails.
    async fn acquire(
        &self,
        lease: &Lease,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<bool, RepositoryFailure>;

    /// Extends a lease. Returns `false` if another holder has acquired it, or it was released.
    ///
    /// # Errors
    /// If the query fails.
    async fn renew(&self, lease: &Lease, until: DateTime<Utc>) -> Result<bool, RepositoryFailure>;

    /// Releases a lease before it expires. No effect if this holder does not have it.
    ///
    /// # Errors
    /// If the query fails.
    async fn release(&self, lease: &Lease) -> Result<(), RepositoryFailure>;
}

/// A lease and its holder, or a server that tries to acquire it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The name of the work, the same for all servers.
    pub name: &'static str,
    /// The unique id of the holder.
    pub holder: Uuid,
}
