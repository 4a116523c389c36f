//! Keys that are encrypted by a key management service.

use std::sync::Arc;

use async_trait::async_trait;
use keywright_core::{
    credential::LookupName,
    ports::{KeyManagement, KeyManagementError, KeyStatus, SealContext},
};
use keywright_crypto::{
    ComparisonError, ConfiguredKey, ConfiguredKeys, KeyDerivation, KeyRecord, KeyRingError,
    KeySource, Recognition, RecordError, WRAPPED_KEY_BYTES_MAX, WrappingKey,
};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::{at, now, raw, secret, unlock};

/// Wraps a key by prepending a byte, and removes it to unwrap.
enum Service {
    Prepends(u8),
    DoesNotRespond,
    UnwrapsToZeros,
    WrapsToLength(usize),
}

#[async_trait]
impl KeyManagement for Service {
    async fn wrap_key(&self, key: &[u8]) -> Result<Vec<u8>, KeyManagementError> {
        match self {
            Self::Prepends(mark) => Ok([&[*mark], key].concat()),
            Self::DoesNotRespond => Err(unavailable()),
            Self::UnwrapsToZeros => Ok(vec![0; 40]),
            Self::WrapsToLength(bytes) => Ok(vec![0; *bytes]),
        }
    }

    async fn unwrap_key(
        &self,
        wrapped_key: &[u8],
    ) -> Result<Option<Zeroizing<Vec<u8>>>, KeyManagementError> {
        match (self, wrapped_key) {
            (Self::Prepends(mark), [first, key @ ..]) if first == mark => {
                Ok(Some(Zeroizing::new(key.to_vec())))
            }
            (Self::DoesNotRespond, _) => Err(unavailable()),
            (Self::UnwrapsToZeros, _) => Ok(Some(Zeroizing::new(vec![0; 32]))),
            _ => Ok(None),
        }
    }
}

#[test]
fn wrapped_key_is_recognized_by_its_service() {
    let first = unlock(vec![wrapped(Service::Prepends(1), "one", true)], &[]);
    let record = first.added.unwrap();
    let KeyDerivation::Wrapped(wrapped_key) = &record.derivation else {
        unreachable!("the key is wrapped")
    };
    assert_eq!((wrapped_key[0], wrapped_key.len()), (1, 33));
    let name = LookupName::new("/a");
    let context = SealContext {
        version_id: Uuid::nil(),
        name: &name,
    };
    let sealed = first.ring.seal(context, &secret("hunter2")).unwrap();

    let configured = vec![
        raw(1, true),
        wrapped(Service::Prepends(2), "two", false),
        wrapped(Service::Prepends(1), "one", false),
    ];
    let again = unlock(configured, std::slice::from_ref(&record));
    assert_eq!(again.unrecognized, [1]);
    assert_eq!(again.ring.status(record.id), KeyStatus::Inactive);
    assert_eq!(
        again.ring.open(context, &sealed).unwrap().expose(),
        "hunter2"
    );
}

#[test]
fn wrapped_keys_do_not_repeat() {
    let made = |_| unlock(vec![wrapped(Service::Prepends(1), "one", true)], &[]).added;
    let [one, two] = [0, 1].map(made).map(Option::unwrap);
    assert_ne!(one.derivation, two.derivation);
}

#[test]
fn failing_service_does_not_affect_other_records() {
    let of_service = unlock(vec![wrapped(Service::Prepends(1), "one", true)], &[]);
    let of_service = of_service.added.unwrap();
    let configured = ConfiguredKeys::new(vec![raw(1, true)]).unwrap();
    let of_raw = now(configured.new_record(Uuid::from_u128(70), at(9))).unwrap();

    let unavailable = wrapped(Service::DoesNotRespond, "one", false);
    let configured = ConfiguredKeys::new(vec![raw(1, true), unavailable]).unwrap();
    let mut recognition = Recognition::default();
    let outcome = now(recognition.compare(&configured, &[of_service.clone(), of_raw.clone()]));
    assert!(matches!(outcome, Err(ComparisonError::KeyManagement(_))));
    assert!(recognition.was_compared(of_raw.id) && !recognition.was_compared(of_service.id));
    assert_eq!(recognition.key_ring().unwrap().active_key_id(), of_raw.id);
}

#[test]
fn failing_service_does_not_affect_later_keys() {
    let of_one = unlock(vec![wrapped(Service::Prepends(1), "one", true)], &[]);
    let of_one = KeyRecord {
        id: Uuid::from_u128(71),
        ..of_one.added.unwrap()
    };
    let of_two = unlock(vec![wrapped(Service::Prepends(2), "two", true)], &[]);
    let of_two = of_two.added.unwrap();
    let configured = ConfiguredKeys::new(vec![
        wrapped(Service::DoesNotRespond, "one", false),
        wrapped(Service::Prepends(2), "two", true),
    ])
    .unwrap();
    let mut recognition = Recognition::default();
    now(recognition.compare(&configured, std::slice::from_ref(&of_two))).unwrap();
    assert!(recognition.was_compared(of_two.id));
    assert_eq!(recognition.key_ring().unwrap().active_key_id(), of_two.id);
    let outcome = now(recognition.compare(&configured, std::slice::from_ref(&of_one)));
    assert!(matches!(outcome, Err(ComparisonError::KeyManagement(_))));
    assert!(!recognition.was_compared(of_one.id));
}

#[test]
fn key_that_the_service_cannot_unwrap_gets_no_record() {
    for service in [
        Service::UnwrapsToZeros,
        Service::WrapsToLength(WRAPPED_KEY_BYTES_MAX),
    ] {
        let refused = refusal(service);
        assert!(
            matches!(refused, RecordError::NotUnwrapped(_)),
            "{refused:?}"
        );
        assert!(refused.to_string().contains("the service"), "{refused}");
    }
    let refused = refusal(Service::WrapsToLength(WRAPPED_KEY_BYTES_MAX + 1));
    assert!(
        matches!(refused, RecordError::WrappedKeyTooLong(_)),
        "{refused:?}"
    );
    let refused = refusal(Service::DoesNotRespond);
    assert!(
        matches!(refused, RecordError::KeyManagement(_)),
        "{refused:?}"
    );
}

#[test]
fn keys_of_the_same_service_are_duplicates() {
    let keys = vec![
        wrapped(Service::Prepends(1), "one", true),
        wrapped(Service::Prepends(1), "one", false),
    ];
    let refused = ConfiguredKeys::new(keys).unwrap_err();
    assert_eq!(refused, KeyRingError::SameKeyTwice(0, 1));
}

fn refusal(service: Service) -> RecordError {
    let key = wrapped(service, "the service", true);
    let configured = ConfiguredKeys::new(vec![key]).unwrap();
    now(configured.new_record(Uuid::nil(), at(1))).unwrap_err()
}

fn wrapped(service: Service, source: &str, is_active: bool) -> ConfiguredKey {
    let wrapping = WrappingKey {
        source: source.to_owned(),
        service: Arc::new(service),
    };
    ConfiguredKey {
        source: KeySource::Wrapped(wrapping),
        is_active,
    }
}

fn unavailable() -> KeyManagementError {
    let reason: Box<dyn std::error::Error + Send + Sync> = "it is unavailable".into();
    reason.into()
}
