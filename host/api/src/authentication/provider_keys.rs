//! The keys that an identity provider publishes: fetched when first needed, kept, and fetched again when they are old or
//! a token names one that is not among them.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::trusted_keys::TrustedKeys;
use crate::response::error_chain;

/// What publishes keys.
#[async_trait]
pub(super) trait IdentityProvider: Send + Sync {
    /// The keys that it signs with now, and the issuer that its tokens name.
    ///
    /// # Errors
    /// When it can't be reached, or what it answers is of no use.
    async fn keys(&self) -> Result<TrustedKeys, Box<dyn std::error::Error + Send + Sync>>;
}

/// The keys of one provider.
pub(super) struct ProviderKeys {
    provider: Box<dyn IdentityProvider>,
    pace: Pace,
    current: RwLock<Option<Arc<TrustedKeys>>>,
    /// Held while fetching, so that only one does; when it was last tried.
    last_attempt: Mutex<Option<Instant>>,
}

/// How often keys are fetched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// When they are fetched again without need, so that one that was withdrawn is not trusted for long.
    age_max: Duration,
    /// How long to wait between two fetches, whatever tokens ask for.
    interval_min: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            age_max: Duration::from_mins(5),
            interval_min: Duration::from_secs(5),
        }
    }
}

impl ProviderKeys {
    /// Asks the provider for nothing yet.
    pub(super) fn new(provider: Box<dyn IdentityProvider>, pace: Pace) -> Arc<Self> {
        Arc::new(Self {
            provider,
            pace,
            current: RwLock::new(None),
            last_attempt: Mutex::new(None),
        })
    }

    /// The keys that there are. When they are old, new ones are fetched meanwhile: nobody waits for a provider that was
    /// good a moment ago.
    pub(super) fn current(self: &Arc<Self>) -> Option<Arc<TrustedKeys>> {
        let current = self.held()?;
        if current.since().elapsed() > self.pace.age_max && self.may_fetch_now() {
            let (keys, seen) = (Arc::clone(self), Arc::clone(&current));
            tokio::spawn(async move { keys.fetch(Some(&seen)).await });
        }
        Some(current)
    }

    /// The keys to check a token with this key id by; `None` when none could be had so far.
    pub(super) async fn for_token(
        self: &Arc<Self>,
        key_id: Option<&str>,
    ) -> Option<Arc<TrustedKeys>> {
        let current = self.current();
        match current {
            Some(current) if current.may_verify(key_id) => Some(current),
            seen => {
                self.fetch(seen.as_ref()).await;
                self.held()
            }
        }
    }

    /// Replaces the keys, unless others have done so since `seen` was seen, or it was tried just before.
    async fn fetch(&self, seen: Option<&Arc<TrustedKeys>>) {
        let mut last_attempt = self.last_attempt.lock().await;
        let is_replaced = match (self.held(), seen) {
            (Some(held), Some(seen)) => !Arc::ptr_eq(&held, seen),
            (held, _) => held.is_some(),
        };
        if is_replaced || self.is_too_soon(*last_attempt) {
            return;
        }
        *last_attempt = Some(Instant::now());
        match self.provider.keys().await {
            Ok(keys) => {
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                *current = Some(Arc::new(keys));
            }
            Err(error) => tracing::warn!(
                error = error_chain(error.as_ref()),
                "the identity provider's keys could not be fetched",
            ),
        }
    }

    /// Whether nobody is fetching, and nobody did just before.
    fn may_fetch_now(&self) -> bool {
        self.last_attempt
            .try_lock()
            .is_ok_and(|last_attempt| !self.is_too_soon(*last_attempt))
    }

    fn is_too_soon(&self, last_attempt: Option<Instant>) -> bool {
        last_attempt.is_some_and(|attempt| attempt.elapsed() < self.pace.interval_min)
    }

    fn held(&self) -> Option<Arc<TrustedKeys>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use jsonwebtoken::DecodingKey;

    use super::*;
    use crate::authentication::trusted_keys::TrustedKey;

    /// Publishes one key, which it renames with each fetch, and counts the fetches; the first ones fail.
    struct Rotating {
        fetches: Arc<AtomicUsize>,
        failures: usize,
    }

    #[async_trait]
    impl IdentityProvider for Rotating {
        async fn keys(&self) -> Result<TrustedKeys, Box<dyn std::error::Error + Send + Sync>> {
            let fetch = self.fetches.fetch_add(1, Ordering::SeqCst) + 1;
            if fetch <= self.failures {
                return Err("refused".into());
            }
            let key = TrustedKey {
                id: Some(format!("key-{fetch}")),
                key: DecodingKey::from_rsa_components("AQAB", "AQAB").unwrap(),
            };
            Ok(TrustedKeys::new("issuer".to_owned(), vec![key]))
        }
    }

    fn provider_keys(failures: usize, pace: Pace) -> (Arc<ProviderKeys>, Arc<AtomicUsize>) {
        let fetches = Arc::new(AtomicUsize::new(0));
        let provider = Rotating {
            fetches: Arc::clone(&fetches),
            failures,
        };
        (ProviderKeys::new(Box::new(provider), pace), fetches)
    }

    const UNHURRIED: Pace = Pace {
        age_max: Duration::from_mins(5),
        interval_min: Duration::ZERO,
    };

    #[tokio::test]
    async fn keys_are_fetched_when_first_needed_and_then_kept() {
        let (keys, fetches) = provider_keys(0, UNHURRIED);
        assert!(keys.current().is_none());
        for _ in 0..3 {
            assert!(keys.for_token(Some("key-1")).await.is_some());
        }
        assert_eq!(fetches.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn an_unknown_key_is_fetched_once() {
        let (keys, fetches) = provider_keys(0, UNHURRIED);
        keys.for_token(Some("key-1")).await.unwrap();
        let rotated = keys.for_token(Some("key-2")).await.unwrap();
        assert!(rotated.may_verify(Some("key-2")));
        assert_eq!(fetches.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn tokens_with_invented_keys_do_not_make_the_server_ask_again_and_again() {
        let (keys, fetches) = provider_keys(0, Pace::default());
        for invented in 0..100 {
            let key_id = format!("invented-{invented}");
            let trusted = keys.for_token(Some(&key_id)).await.unwrap();
            assert!(!trusted.may_verify(Some(&key_id)));
        }
        assert_eq!(fetches.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_provider_that_was_away_is_asked_again() {
        let (keys, _) = provider_keys(1, UNHURRIED);
        assert!(keys.for_token(None).await.is_none());
        assert!(keys.for_token(None).await.is_some());
        let (keys, fetches) = provider_keys(1, Pace::default());
        assert!(keys.for_token(None).await.is_none());
        assert!(keys.for_token(None).await.is_none());
        assert_eq!(fetches.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn old_keys_are_replaced_while_they_are_still_used() {
        let pace = Pace {
            age_max: Duration::ZERO,
            interval_min: Duration::ZERO,
        };
        let (keys, fetches) = provider_keys(0, pace);
        keys.for_token(None).await.unwrap();
        assert!(keys.current().unwrap().may_verify(Some("key-1")));
        while fetches.load(Ordering::SeqCst) < 2 {
            tokio::task::yield_now().await;
        }
    }
}
