//! Sessions: kept in memory under a random id, and ended by idleness, age, logout or a restart of the server.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use aws_lc_rs::{
    constant_time::verify_slices_are_equal,
    digest::{SHA256, digest},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use keywright_core::{Secret, permission::Actor};
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;

/// The limits of sessions.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// Maximum age of a session.
    pub age_max: Duration,
    /// Maximum time between two requests of a session.
    pub idle_max: Duration,
    /// Maximum number of sessions; further logins are refused.
    pub sessions_max: usize,
    /// Maximum number of sessions of one actor; a further login ends the actor's oldest session.
    pub sessions_per_actor_max: usize,
}

pub(crate) struct Session {
    pub(crate) actor: Actor,
    /// The tokens of the identity provider. Locked while they are refreshed, so that each refresh token is used once.
    pub(crate) tokens: Arc<AsyncMutex<SessionTokens>>,
    csrf_token: String,
    started_at_ms: i64,
    used_at_ms: AtomicI64,
    /// The address of a page, and the change that it confirms once. The address does not contain it, because a link could
    /// forge it.
    pub(crate) confirmation: Mutex<Option<(String, String)>>,
}

pub(crate) struct SessionTokens {
    pub(crate) access_token: Secret,
    pub(crate) refresh_token: Option<Secret>,
    /// The time at which the access token expires, if the provider returned it.
    pub(crate) expires_at: Option<DateTime<Utc>>,
    /// The time of the last refresh and the reason why it failed, if it failed.
    pub(crate) failed_refresh: Option<(Instant, String)>,
}

impl SessionTokens {
    pub(crate) fn are_expired_at(&self, time: DateTime<Utc>) -> bool {
        self.expires_at.is_some_and(|expiry| expiry <= time)
    }
}

impl Session {
    /// Returns the token that each form of the session contains.
    pub(crate) fn csrf_token(&self) -> &str {
        &self.csrf_token
    }

    /// Returns whether a form contains the session's token. Takes the same time for any wrong token of the same length.
    pub(crate) fn has_csrf_token(&self, text: &str) -> bool {
        verify_slices_are_equal(self.csrf_token.as_bytes(), text.as_bytes()).is_ok()
    }

    fn is_over(&self, limits: &SessionLimits, now_ms: i64) -> bool {
        let used_at_ms = self.used_at_ms.load(Ordering::Relaxed);
        is_past(self.started_at_ms, limits.age_max, now_ms)
            || is_past(used_at_ms, limits.idle_max, now_ms)
    }
}

fn is_past(since_ms: i64, limit: Duration, now_ms: i64) -> bool {
    // A time in the future was recorded while the clock was ahead.
    u128::from(now_ms.abs_diff(since_ms)) > limit.as_millis()
}

/// All sessions, by the digest of their ids: the time of a look-up reveals nothing about an id.
pub(crate) struct Sessions {
    limits: SessionLimits,
    by_digest: Mutex<HashMap<[u8; 32], Arc<Session>>>,
}

impl Sessions {
    pub(crate) fn new(limits: SessionLimits) -> Self {
        Self {
            limits,
            by_digest: Mutex::default(),
        }
    }

    /// Starts a session, and returns its id, or `None` if there is the maximum number of sessions. Ends the actor's oldest session
    /// if the actor has the maximum number.
    pub(crate) fn start(
        &self,
        actor: Actor,
        tokens: SessionTokens,
        now: DateTime<Utc>,
    ) -> Option<String> {
        let now_ms = now.timestamp_millis();
        let mut sessions = self.by_digest.lock();
        sessions.retain(|_, session| !session.is_over(&self.limits, now_ms));
        let of_actor = sessions
            .iter()
            .filter(|(_, session)| session.actor == actor);
        let of_actor = of_actor.map(|(digest, session)| (session.started_at_ms, *digest));
        let mut of_actor: Vec<_> = of_actor.collect();
        of_actor.sort_unstable();
        let ended = (of_actor.len() + 1).saturating_sub(self.limits.sessions_per_actor_max);
        for (_, digest) in of_actor.iter().take(ended) {
            sessions.remove(digest);
        }
        if sessions.len() >= self.limits.sessions_max {
            return None;
        }
        let id = random_text();
        let session = Session {
            actor,
            tokens: Arc::new(AsyncMutex::new(tokens)),
            csrf_token: random_text(),
            started_at_ms: now_ms,
            used_at_ms: AtomicI64::new(now_ms),
            confirmation: Mutex::default(),
        };
        sessions.insert(digest_of(&id), Arc::new(session));
        Some(id)
    }

    /// Returns the session with this id, unless it is over. Records its use if the request is by the user, not by a script.
    pub(crate) fn find(
        &self,
        id: &str,
        now: DateTime<Utc>,
        is_by_user: bool,
    ) -> Option<Arc<Session>> {
        let (digest, now_ms) = (digest_of(id), now.timestamp_millis());
        let mut sessions = self.by_digest.lock();
        let session = Arc::clone(sessions.get(&digest)?);
        if session.is_over(&self.limits, now_ms) {
            sessions.remove(&digest);
            return None;
        }
        if is_by_user {
            session.used_at_ms.store(now_ms, Ordering::Relaxed);
        }
        Some(session)
    }

    /// Ends the session with this id, if there is one.
    pub(crate) fn end(&self, id: &str) {
        self.by_digest.lock().remove(&digest_of(id));
    }
}

fn digest_of(id: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, id.as_bytes()).as_ref());
    bytes
}

/// Returns 256 random bits as text.
pub(crate) fn random_text() -> String {
    let mut bytes = [0; 32];
    #[expect(
        clippy::expect_used,
        reason = "the kernel's generator does not fail once it is seeded, and no session may have a predictable id"
    )]
    getrandom::fill(&mut bytes).expect("random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The name of the cookie that contains a session's id.
pub(crate) const COOKIE: &str = "__Host-keywright-session";

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    const LIMITS: SessionLimits = SessionLimits {
        age_max: Duration::from_secs(100),
        idle_max: Duration::from_secs(10),
        sessions_max: 3,
        sessions_per_actor_max: 2,
    };

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn start(sessions: &Sessions, actor: &str, seconds: i64) -> Option<String> {
        let tokens = SessionTokens {
            access_token: Secret::new("token".to_owned()),
            refresh_token: None,
            expires_at: None,
            failed_refresh: None,
        };
        let actor = Actor::parse(&format!("uaa-user:{actor}")).unwrap();
        sessions.start(actor, tokens, at(seconds))
    }

    #[test]
    fn one_session_past_the_total_limit_is_refused_until_one_ends() {
        let sessions = Sessions::new(LIMITS);
        for actor in ["a", "b", "c"] {
            start(&sessions, actor, 0).unwrap();
        }
        assert_eq!(start(&sessions, "d", 1), None);
        assert!(start(&sessions, "d", 11).is_some());
    }

    #[test]
    fn a_session_ends_after_its_idle_time_and_its_maximum_age() {
        let sessions = Sessions::new(LIMITS);
        let idle = start(&sessions, "a", 0).unwrap();
        assert!(sessions.find(&idle, at(10), true).is_some());
        assert!(sessions.find(&idle, at(21), true).is_none());
        assert!(sessions.find(&idle, at(11), true).is_none());
        let refreshed = start(&sessions, "a", 0).unwrap();
        assert!(sessions.find(&refreshed, at(10), false).is_some());
        assert!(sessions.find(&refreshed, at(11), true).is_none());
        let used = start(&sessions, "a", 0).unwrap();
        for tens in 1..=10 {
            assert!(
                sessions.find(&used, at(10 * tens), true).is_some(),
                "{tens}"
            );
        }
        assert!(sessions.find(&used, at(101), true).is_none());
    }
}
