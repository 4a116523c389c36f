//! The state of a connection that is returned to the pool.

use crate::failure::{is_read_only, is_unavailable};

/// The state in which the last user left a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// No statement or transaction is pending.
    Settled,
    /// The user went away: a query may still be running, or a rollback may have failed.
    Unsettled,
    /// A write was refused: the former primary is now a standby. A new connection may lead to the primary.
    Spent,
}

impl Condition {
    /// Records the result of another use. A spent connection stays spent.
    pub(super) fn become_at_best(&mut self, next: Self) {
        if *self != Self::Spent {
            *self = next;
        }
    }

    /// Returns the condition after a use that failed with this error.
    pub(super) fn after(error: &sqlx::Error) -> Self {
        if is_read_only(error) {
            Self::Spent
        } else if is_unavailable(error) {
            Self::Unsettled
        } else {
            Self::Settled
        }
    }
}
