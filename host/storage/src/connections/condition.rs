//! What is known of a connection that comes back.

use crate::failure::{is_read_only, is_unavailable};

/// How the last user has left a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// It saw the end of what it began.
    Settled,
    /// It went away: there may be a query that is still running, or a transaction whose rollback did not succeed. SQLite
    /// itself rolls one back when the disk is full, and sqlx then believes that it still stands.
    Unsettled,
    /// It was not allowed to write: what once led to the primary leads to a standby now. Another connection may not.
    Spent,
}

impl Condition {
    /// What follows from a further use. One that is spent stays so.
    pub(super) fn become_at_best(&mut self, next: Self) {
        if *self != Self::Spent {
            *self = next;
        }
    }

    /// After an error that a use ended with.
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
