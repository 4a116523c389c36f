//! Fetches and caches the keys of an identity provider. Keys are fetched when first needed, and again when they are old or a
//! token has an unknown key id.

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::{Mutex, Semaphore};

use super::{identity_provider::IdentityProvider, trusted_keys::TrustedKeys};
use crate::response::error_chain;

/// The cached keys of one provider.
///
/// The last fetched keys stay in use until newer ones replace them. While the provider is unavailable, tokens remain valid until
/// they expire. Otherwise, an attack on the provider would lock out all callers.
pub(super) struct ProviderKeys {
    provider: Box<dyn IdentityProvider>,
    pace: KeyPace,
    /// The last fetched keys, and when they were fetched.
    current: RwLock<Option<(Arc<TrustedKeys>, Instant)>>,
    /// The number of completed fetches, including failed ones.
    attempts: AtomicU64,
    /// The time of the last attempt. Locked while fetching, so that there is one fetch at a time.
    last_attempt: Mutex<Option<Instant>>,
    /// Permits for callers that wait for a fetch.
    waiting: Arc<Semaphore>,
}

/// Limits how often keys are fetched.
#[derive(Clone, Copy, Debug)]
pub struct KeyPace {
    /// The age at which keys are fetched again, so that a withdrawn key is not trusted for long.
    pub age_max: Duration,
    /// Minimum time between two fetches, even if tokens have unknown key ids.
    pub interval_min: Duration,
}

impl ProviderKeys {
    /// Creates the cache, without fetching keys.
    pub(super) fn new(provider: Box<dyn IdentityProvider>, pace: KeyPace) -> Arc<Self> {
        Arc::new(Self {
            provider,
            pace,
            current: RwLock::new(None),
            attempts: AtomicU64::new(0),
            last_attempt: Mutex::new(None),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
        })
    }

    /// Returns the cached keys. If they are old, new ones are fetched in the background, without delaying the caller.
    pub(super) fn current(self: &Arc<Self>) -> Option<Arc<TrustedKeys>> {
        let attempts_seen = self.attempts.load(Ordering::Acquire);
        let (current, since) = self.cached()?;
        if since.elapsed() > self.pace.age_max && self.may_fetch_now() {
            let keys = Arc::clone(self);
            tokio::spawn(async move { keys.fetch(attempts_seen).await });
        }
        Some(current)
    }

    /// Returns the keys to verify a token with, and whether one of them has signed it. Returns `None` if there are no keys.
    ///
    /// If `have_signed` returns `None` for the cached keys, fetches new keys, unless [`WAITING_MAX`] callers are already waiting.
    pub(super) async fn for_token(
        self: &Arc<Self>,
        have_signed: impl Fn(&TrustedKeys) -> Option<bool>,
    ) -> Option<(Arc<TrustedKeys>, bool)> {
        let attempts_seen = self.attempts.load(Ordering::Acquire);
        let known = self.current();
        if let Some(known) = &known
            && let Some(is_signed) = have_signed(known)
        {
            return Some((Arc::clone(known), is_signed));
        }
        self.renew(attempts_seen).await;
        let (keys, _) = self.cached()?;
        let are_new = known.is_none_or(|known| !Arc::ptr_eq(&known, &keys));
        let is_signed = are_new && have_signed(&keys) == Some(true);
        Some((keys, is_signed))
    }

    /// Fetches the keys for the first time, unless they were already fetched.
    pub(super) async fn prefetch(self: Arc<Self>) {
        self.fetch(0).await;
    }

    /// Fetches keys on a separate task, so that a cancelled caller does not cancel the fetch for others. Does nothing if too many
    /// callers are waiting.
    async fn renew(self: &Arc<Self>, attempts_seen: u64) {
        let Ok(permit) = Arc::clone(&self.waiting).try_acquire_owned() else {
            return;
        };
        let keys = Arc::clone(self);
        let fetch = tokio::spawn(async move {
            keys.fetch(attempts_seen).await;
            drop(permit);
        });
        if let Err(error) = fetch.await {
            tracing::error!(error = %error, "the task that fetches the identity provider's keys failed");
        }
    }

    /// Fetches keys and replaces the cached ones. Does nothing if another fetch has completed since the caller read
    /// `attempts_seen`, or if the last fetch was too recent. So callers that wait at the same time share one fetch, even if it
    /// fails.
    async fn fetch(&self, attempts_seen: u64) {
        let mut last_attempt = self.last_attempt.lock().await;
        let was_fetched_since = self.attempts.load(Ordering::Acquire) != attempts_seen;
        if was_fetched_since || self.is_too_soon(*last_attempt) {
            return;
        }
        let fetched = self.provider.keys().await;
        *last_attempt = Some(Instant::now());
        match fetched {
            Ok(keys) => {
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                // Keep an unchanged set, because it caches verified tokens.
                let keys = match current.take() {
                    Some((known, _)) if known.equal(&keys) => known,
                    _ => Arc::new(keys),
                };
                *current = Some((keys, Instant::now()));
            }
            Err(error) => tracing::warn!(
                error = error_chain(error.as_ref()),
                "could not fetch the identity provider's keys",
            ),
        }
        self.attempts.fetch_add(1, Ordering::Release);
    }

    /// Returns whether a fetch may start: no fetch is in progress, and the minimum interval has passed.
    fn may_fetch_now(&self) -> bool {
        self.last_attempt
            .try_lock()
            .is_ok_and(|last_attempt| !self.is_too_soon(*last_attempt))
    }

    fn is_too_soon(&self, last_attempt: Option<Instant>) -> bool {
        last_attempt.is_some_and(|attempt| attempt.elapsed() < self.pace.interval_min)
    }

    fn cached(&self) -> Option<(Arc<TrustedKeys>, Instant)> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }
}

/// Maximum number of callers that wait for the provider. They are not authenticated yet: without a limit, requests with invented
/// key ids could pile up while a provider hangs.
const WAITING_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use std::sync::{LazyLock, atomic::AtomicUsize};

    use async_trait::async_trait;

    use super::*;
    use crate::authentication::{trusted_keys::TrustedKey, verification_key::test_key::TestKey};

    static KEY: LazyLock<TestKey> = LazyLock::new(TestKey::generate);

    /// Publishes one key. If `rotates`, its id changes with each fetch. The first `failures` fetches fail.
    struct Rotating {
        rotates: bool,
        fetches: Arc<AtomicUsize>,
        failures: usize,
        may_respond: Arc<Semaphore>,
    }

    #[async_trait]
    impl IdentityProvider for Rotating {
        async fn keys(&self) -> Result<TrustedKeys, Box<dyn std::error::Error + Send + Sync>> {
            let fetch = self.fetches.fetch_add(1, Ordering::SeqCst) + 1;
            let _allowed = self.may_respond.acquire().await?;
            if fetch <= self.failures {
                return Err("refused".into());
            }
            let key = TrustedKey {
                id: Some(format!("key-{}", if self.rotates { fetch } else { 1 })),
                key: KEY.verification_key(),
            };
            Ok(TrustedKeys::new("issuer".to_owned(), vec![key]))
        }
    }

    struct Provided {
        keys: Arc<ProviderKeys>,
        fetches: Arc<AtomicUsize>,
        may_respond: Arc<Semaphore>,
    }

    fn provided(failures: usize, pace: KeyPace) -> Provided {
        provided_by(true, failures, pace)
    }

    fn provided_by(rotates: bool, failures: usize, pace: KeyPace) -> Provided {
        let fetches = Arc::new(AtomicUsize::new(0));
        let may_respond = Arc::new(Semaphore::new(1));
        let provider = Rotating {
            rotates,
            fetches: Arc::clone(&fetches),
            failures,
            may_respond: Arc::clone(&may_respond),
        };
        Provided {
            keys: ProviderKeys::new(Box::new(provider), pace),
            fetches,
            may_respond,
        }
    }

    impl Provided {
        fn fetches(&self) -> usize {
            self.fetches.load(Ordering::SeqCst)
        }
    }

    /// Returns `Some(true)` for keys with this id, otherwise `None`.
    fn named(key_id: &str) -> impl Fn(&TrustedKeys) -> Option<bool> {
        move |keys| keys.has_key(key_id).then_some(true)
    }

    #[expect(clippy::unnecessary_wraps, reason = "the signature of `named`")]
    fn any(_: &TrustedKeys) -> Option<bool> {
        Some(true)
    }

    const SELDOM: KeyPace = KeyPace {
        age_max: Duration::from_mins(5),
        interval_min: Duration::from_mins(5),
    };

    const UNLIMITED: KeyPace = KeyPace {
        age_max: Duration::from_mins(5),
        interval_min: Duration::ZERO,
    };

    #[tokio::test]
    async fn keys_are_fetched_when_first_needed_and_cached() {
        let provided = provided(0, UNLIMITED);
        assert!(provided.keys.current().is_none());
        for _ in 0..3 {
            let keys = provided.keys.for_token(named("key-1")).await;
            assert!(keys.is_some());
        }
        assert_eq!(provided.fetches(), 1);
    }

    #[tokio::test]
    async fn prefetched_keys_are_not_fetched_again() {
        let provided = provided(0, UNLIMITED);
        Arc::clone(&provided.keys).prefetch().await;
        Arc::clone(&provided.keys).prefetch().await;
        assert!(provided.keys.for_token(named("key-1")).await.is_some());
        assert_eq!(provided.fetches(), 1);
    }

    #[tokio::test]
    async fn an_unknown_key_is_fetched_once() {
        let provided = provided(0, UNLIMITED);
        provided.keys.for_token(named("key-1")).await.unwrap();
        let (rotated, _) = provided.keys.for_token(named("key-2")).await.unwrap();
        assert!(rotated.has_key("key-2"));
        assert!(!rotated.has_key("key-1"));
        assert_eq!(provided.fetches(), 2);
    }

    #[tokio::test]
    async fn an_unchanged_key_set_is_kept_and_checked_only_once() {
        let provided = provided_by(false, 0, UNLIMITED);
        let (keys, _) = provided.keys.for_token(any).await.unwrap();
        let checks = AtomicUsize::new(0);
        let not_signed = |_: &TrustedKeys| {
            checks.fetch_add(1, Ordering::SeqCst);
            None
        };
        let (again, is_signed) = provided.keys.for_token(not_signed).await.unwrap();
        assert_eq!(provided.fetches(), 2);
        assert!(Arc::ptr_eq(&keys, &again));
        assert!(!is_signed);
        assert_eq!(checks.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn tokens_with_invented_key_ids_cause_no_repeated_fetches() {
        let provided = provided(0, SELDOM);
        for invented in 0..100 {
            let key_id = format!("invented-{invented}");
            let (trusted, _) = provided.keys.for_token(named(&key_id)).await.unwrap();
            assert!(!trusted.has_key(&key_id));
        }
        assert_eq!(provided.fetches(), 1);
    }

    #[tokio::test]
    async fn a_failed_fetch_is_retried() {
        let unlimited = provided(1, UNLIMITED);
        assert!(unlimited.keys.for_token(any).await.is_none());
        assert!(unlimited.keys.for_token(any).await.is_some());
        let seldom = provided(1, SELDOM);
        assert!(seldom.keys.for_token(any).await.is_none());
        assert!(seldom.keys.for_token(any).await.is_none());
        assert_eq!(seldom.fetches(), 1);
    }

    #[tokio::test]
    async fn callers_share_the_result_of_a_failed_fetch() {
        let provided = provided(usize::MAX, UNLIMITED);
        let response = provided.may_respond.acquire().await.unwrap();
        let waiting: Vec<_> = (0..10)
            .map(|_| {
                let keys = Arc::clone(&provided.keys);
                tokio::spawn(async move { keys.for_token(any).await.is_some() })
            })
            .collect();
        while provided.fetches() == 0 || Arc::strong_count(&provided.keys) < 21 {
            tokio::task::yield_now().await;
        }
        drop(response);
        for waiting in waiting {
            assert!(!waiting.await.unwrap());
        }
        assert_eq!(provided.fetches(), 1);
    }

    #[tokio::test]
    async fn callers_beyond_the_waiting_limit_use_the_cached_keys() {
        let provided = provided(0, UNLIMITED);
        assert!(provided.keys.for_token(named("key-1")).await.is_some());
        let response = provided.may_respond.acquire().await.unwrap();
        let waiting: Vec<_> = (0..WAITING_MAX)
            .map(|_| {
                let keys = Arc::clone(&provided.keys);
                tokio::spawn(async move { keys.for_token(named("key-2")).await })
            })
            .collect();
        while provided.keys.waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let (trusted, _) = provided.keys.for_token(named("invented")).await.unwrap();
        assert!(trusted.has_key("key-1"));
        assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
        drop(response);
        for waiting in waiting {
            assert!(waiting.await.unwrap().unwrap().0.has_key("key-2"));
        }
        assert_eq!(provided.fetches(), 2);
        assert_eq!(provided.keys.waiting.available_permits(), WAITING_MAX);
    }

    #[tokio::test]
    async fn a_cancelled_caller_does_not_cancel_the_fetch() {
        let provided = provided(0, UNLIMITED);
        let response = provided.may_respond.acquire().await.unwrap();
        let keys = Arc::clone(&provided.keys);
        let caller = tokio::spawn(async move { keys.for_token(any).await.is_some() });
        while provided.fetches() == 0 {
            tokio::task::yield_now().await;
        }
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        drop(response);
        while provided.keys.current().is_none() {
            tokio::task::yield_now().await;
        }
        assert_eq!(provided.fetches(), 1);
    }

    #[tokio::test]
    async fn old_keys_are_replaced_while_they_are_still_used() {
        let pace = KeyPace {
            age_max: Duration::ZERO,
            interval_min: Duration::ZERO,
        };
        let provided = provided(0, pace);
        provided.keys.for_token(any).await.unwrap();
        let current = provided.keys.current().unwrap();
        assert!(current.has_key("key-1"));
        while provided.fetches() < 2 {
            tokio::task::yield_now().await;
        }
    }
}
