use std::sync::{
    LazyLock,
    atomic::{AtomicUsize, Ordering},
};

use super::*;
use crate::authentication::keys::{TrustedKey, test_key::TestKey};

fn settings(url: &str, pem: Option<&str>) -> HttpsIdentityProviderSettings {
    HttpsIdentityProviderSettings {
        url: url.to_owned(),
        public_url: None,
        trusted_certificates_pem: pem.map(str::to_owned),
        timeout: HttpsIdentityProviderSettings::TIMEOUT,
    }
}

#[test]
fn invalid_trusted_certificates_are_rejected() {
    for pem in [
        "",
        "x",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        assert!(
            HttpsIdentityProvider::new(&settings("https://uaa.example", Some(pem))).is_err(),
            "{pem}"
        );
    }
}

#[test]
fn keys_are_at_the_discovered_or_the_default_url() {
    let provider = HttpsIdentityProvider::new(&HttpsIdentityProviderSettings {
        public_url: Some("https://login.example/uaa".to_owned()),
        ..settings("https://uaa.internal:8443/uaa", None)
    })
    .unwrap();
    for (named, url) in [
        (None, Some("https://uaa.internal:8443/uaa/token_keys")),
        (
            Some("https://login.example/uaa/token_keys"),
            Some("https://uaa.internal:8443/uaa/token_keys"),
        ),
        (
            Some("https://login.example/uaa/a/jwks?x=1"),
            Some("https://uaa.internal:8443/uaa/a/jwks?x=1"),
        ),
        (
            Some("https://login.example/uaab/keys"),
            Some("https://login.example/uaab/keys"),
        ),
        (
            Some("https://keys.example/set"),
            Some("https://keys.example/set"),
        ),
        (Some("http://login.example/uaa/token_keys"), None),
        (Some("http://keys.example/set"), None),
        (Some("file:///etc/passwd"), None),
        (Some("/token_keys"), None),
        (Some(""), None),
    ] {
        let discovery = Discovery {
            issuer: "issuer".to_owned(),
            jwks_uri: named.map(str::to_owned),
        };
        let found = provider.keys_url(&discovery).ok();
        assert_eq!(found.as_ref().map(Url::as_str), url, "{named:?}");
    }
}

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
    async fn keys(&self) -> Result<Option<TrustedKeys>, Box<dyn std::error::Error + Send + Sync>> {
        let fetch = self.fetches.fetch_add(1, Ordering::SeqCst) + 1;
        let _allowed = self.may_respond.acquire().await?;
        if fetch <= self.failures {
            return Err("refused".into());
        }
        let key = TrustedKey {
            id: Some(format!("key-{}", if self.rotates { fetch } else { 1 })),
            key: KEY.verification_key(),
        };
        Ok(Some(TrustedKeys::new("issuer".to_owned(), vec![key])))
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
async fn a_failed_fetch_is_retried_soon_without_requests() {
    let provided = provided(1, UNLIMITED);
    tokio::spawn(Arc::clone(&provided.keys).keep_fresh());
    while provided.keys.cached().is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(provided.fetches(), 2);
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
