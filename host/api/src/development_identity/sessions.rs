//! Revoked logins.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use uuid::Uuid;

/// The revoked logins, each until its expiry.
#[derive(Default)]
pub(super) struct RevokedSessions(Mutex<HashMap<Uuid, i64>>);

impl RevokedSessions {
    /// Revokes a login that expires at this time; both times in seconds since 1970.
    pub(super) fn revoke(&self, session: Uuid, ends_at_seconds: i64, now_seconds: i64) {
        let mut revoked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        revoked.retain(|_, ends_at_seconds| *ends_at_seconds >= now_seconds);
        revoked.insert(session, ends_at_seconds);
    }

    /// Returns whether a login was revoked.
    pub(super) fn contains(&self, session: Uuid) -> bool {
        let revoked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        revoked.contains_key(&session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revoked_login_is_stored_until_its_expiry() {
        let revoked = RevokedSessions::default();
        let (early, late) = (Uuid::from_u128(1), Uuid::from_u128(2));
        revoked.revoke(early, 100, 10);
        assert!(revoked.contains(early) && !revoked.contains(late));
        revoked.revoke(late, 200, 101);
        assert!(!revoked.contains(early) && revoked.contains(late));
    }
}
