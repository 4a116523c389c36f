//! Sealing values, and recognizing keys, also keys that are encrypted by a key management service.
#![expect(
    clippy::unwrap_used,
    reason = "these are tests; helper functions outside of #[test] count as production code for the lints"
)]

use std::{slice::from_ref, sync::Arc};

use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, Utc};
use keywright_core::{
    Secret,
    credential::LookupName,
    ports::{
        Envelope, KeyDerivation, KeyManagement, KeyManagementError, KeyRecord, KeyStatus,
        SealContext, SealError,
    },
};
use keywright_crypto::{
    ComparisonError, ConfiguredKey, ConfiguredKeys, KeyRing, KeyRingError, KeySource,
    NoMatchingKeyError, PASSWORD_ITERATIONS_MAX, PASSWORD_ITERATIONS_MIN, RawKeyError, Recognition,
    RecordError, WRAPPED_KEY_BYTES_MAX, WrappingKey,
};
use uuid::Uuid;
use zeroize::Zeroizing;

#[test]
fn sealed_value_opens_only_for_its_name_and_version() {
    let ring = ring(vec![raw(1, true)]);
    let name = LookupName::new("/Team/Key");
    let context = SealContext {
        version_id: Uuid::from_u128(7),
        name: &name,
    };
    let envelope = ring.seal(context, &secret("hunter2")).unwrap();
    assert_eq!(ring.open(context, &envelope).unwrap().expose(), "hunter2");

    let opened = |version_id, name: &str| {
        let (version_id, name) = (Uuid::from_u128(version_id), &LookupName::new(name));
        ring.open(SealContext { version_id, name }, &envelope)
    };
    assert!(opened(7, "team/KEY").is_ok());
    for elsewhere in [opened(7, "/team/key2"), opened(8, "/Team/Key")] {
        assert_eq!(elsewhere, Err(SealError::NotAuthentic));
    }
}

/// The ciphertexts are from another implementation of HKDF-SHA-256 and AES-256-GCM, so the stored form never changes.
#[test]
fn values_from_another_implementation_can_be_opened() {
    let bytes = |text| STANDARD.decode(text).unwrap();
    let record = KeyRecord {
        id: Uuid::from_u128(10),
        derivation: KeyDerivation::Raw,
        canary_nonce: vec![1; 12],
        canary_ciphertext: bytes(
            "CcfbCiIXGYE3GTzA8eKsjqqXpN7j8Qee4AAdl/E1T+LKcKh/KlCPjEU3jkL02Nc=",
        ),
        created_at: at(1),
    };
    let ring = unlock(vec![raw(1, true)], from_ref(&record)).ring;
    let context = SealContext {
        version_id: Uuid::from_u128(7),
        name: &LookupName::new("/Team/Key"),
    };
    let envelope = Envelope {
        key_id: record.id,
        nonce: vec![2; 12],
        ciphertext: bytes("Ax5J/GRgPFmT4637Q9AW2eZ0NNpXIhc="),
    };
    assert_eq!(ring.open(context, &envelope).unwrap().expose(), "hunter2");
}

#[test]
fn every_modified_byte_is_detected() {
    let ring = ring(vec![raw(1, true)]);
    let name = LookupName::new("/a");
    let context = context_of(&name);
    let envelope = ring.seal(context, &secret("ä")).unwrap();
    let changed = |change: &dyn Fn(&mut Envelope)| {
        let mut changed = envelope.clone();
        change(&mut changed);
        ring.open(context, &changed)
    };
    for position in 0..envelope.ciphertext.len() {
        let opened = changed(&|envelope| envelope.ciphertext[position] ^= 1);
        assert_eq!(opened, Err(SealError::NotAuthentic));
    }
    for position in 0..envelope.nonce.len() {
        let opened = changed(&|envelope| envelope.nonce[position] ^= 1);
        assert_eq!(opened, Err(SealError::NotAuthentic));
    }
    for truncated in [
        changed(&|envelope| envelope.nonce.clear()),
        changed(&|envelope| envelope.ciphertext.clear()),
        changed(&|envelope| {
            envelope.ciphertext.remove(0);
        }),
    ] {
        assert_eq!(truncated, Err(SealError::NotAuthentic));
    }
}

#[test]
fn sealing_a_value_twice_yields_different_bytes() {
    let ring = ring(vec![raw(1, true)]);
    let name = LookupName::new("/a");
    let context = context_of(&name);
    let one = ring.seal(context, &secret("same")).unwrap();
    let other = ring.seal(context, &secret("same")).unwrap();
    assert_ne!(one.nonce, other.nonce);
    assert_ne!(one.ciphertext, other.ciphertext);
    assert_eq!(
        (one.nonce.len(), one.ciphertext.len()),
        (12, "same".len() + 16)
    );
}

#[test]
fn new_active_key_gets_a_record() {
    for key in [|| raw(1, true), || password("correct horse", true)] {
        let first = unlock(vec![key()], &[]);
        let record = first.added.unwrap();
        assert_eq!(record.id, first.ring.active_key_id());
        if let KeyDerivation::Password(parameters) = &record.derivation {
            assert_eq!(
                (parameters.salt.len(), parameters.iterations),
                (64, PASSWORD_ITERATIONS_MIN)
            );
        }
        let again = unlock(vec![key()], from_ref(&record));
        assert!(again.added.is_none());
        assert_eq!(again.ring.active_key_id(), record.id);
        assert_eq!(
            *again.ring.derive("cache").unwrap(),
            *first.ring.derive("cache").unwrap()
        );
    }
}

#[test]
fn inactive_key_decrypts_and_unused_key_is_ignored() {
    let old = unlock(vec![raw(1, true)], &[]);
    let record = old.added.unwrap();
    let name = LookupName::new("/a");
    let context = context_of(&name);
    let envelope = old.ring.seal(context, &secret("old")).unwrap();

    let configured = vec![raw(1, false), raw(2, true), raw(3, false)];
    let new = unlock(configured, from_ref(&record));
    assert_eq!(new.unrecognized, [2]);
    assert_ne!(new.ring.active_key_id(), record.id);
    assert_eq!(new.ring.key_ids().count(), 2);
    assert_eq!(new.ring.open(context, &envelope).unwrap().expose(), "old");
    let sealed = new.ring.seal(context, &secret("new")).unwrap();
    let new_id = new.added.unwrap().id;
    assert_eq!(sealed.key_id, new_id);
    for (id, status) in [
        (new_id, KeyStatus::Active),
        (record.id, KeyStatus::Inactive),
        (Uuid::from_u128(7), KeyStatus::Unknown),
    ] {
        assert_eq!(new.ring.status(id), status);
    }
}

#[test]
fn key_is_recognized_by_a_later_record() {
    let configured = ConfiguredKeys::new(vec![raw(1, true), raw(2, false)]).unwrap();
    let first = unlock(vec![raw(1, true)], &[]).added.unwrap();
    let mut recognition = Recognition::default();
    now(recognition.compare(&configured, from_ref(&first))).unwrap();
    assert_eq!(recognition.unrecognized(&configured), [1]);

    let later = ConfiguredKeys::new(vec![raw(2, true)]).unwrap();
    let record = now(later.new_record(Uuid::from_u128(60), at(5))).unwrap();
    assert!(!recognition.was_compared(record.id));
    now(recognition.compare(&configured, &[record.clone(), first.clone()])).unwrap();
    assert!(recognition.was_compared(record.id));
    assert!(recognition.unrecognized(&configured).is_empty());
    let ring = recognition.key_ring().unwrap();
    assert_eq!(ring.active_key_id(), first.id);
    assert_eq!(ring.status(record.id), KeyStatus::Inactive);
}

#[test]
fn older_record_of_a_key_encrypts_and_both_decrypt() {
    let one = unlock(vec![raw(1, true)], &[]).added.unwrap();
    let configured = ConfiguredKeys::new(vec![raw(1, true)]).unwrap();
    let other = now(configured.new_record(Uuid::from_u128(50), at(5))).unwrap();
    let unlocked = unlock(vec![raw(1, true)], &[other, one.clone()]);
    assert_eq!(unlocked.ring.active_key_id(), one.id);
    assert_eq!(unlocked.ring.key_ids().count(), 2);
}

#[test]
fn keys_that_decrypt_no_stored_value_are_rejected() {
    let record = unlock(vec![raw(1, true)], &[]).added.unwrap();
    let moved = KeyRecord {
        id: Uuid::from_u128(77),
        ..record.clone()
    };
    for (key, record) in [(2, record), (1, moved)] {
        let configured = ConfiguredKeys::new(vec![raw(key, true)]).unwrap();
        let mut recognition = Recognition::default();
        now(recognition.compare(&configured, from_ref(&record))).unwrap();
        assert!(recognition.key_ring().is_none());
        assert_eq!(recognition.check(&[]), Ok(()));
        let in_use = [Uuid::from_u128(5), record.id];
        let refused = NoMatchingKeyError(in_use.to_vec());
        assert!(
            in_use
                .iter()
                .all(|id| refused.to_string().contains(&id.to_string()))
        );
        assert_eq!(recognition.check(&in_use), Err(refused));
    }
    let unlocked = unlock(vec![raw(1, true)], &[]);
    let known = unlocked.ring.active_key_id();
    let in_use = [Uuid::from_u128(5), known];
    assert_eq!(unlocked.recognition.check(&in_use), Ok(()));
}

#[test]
fn an_empty_list_has_no_active_key() {
    let refused = ConfiguredKeys::new(vec![]).unwrap_err();
    assert_eq!(refused, KeyRingError::NoActiveKey);
}

#[test]
fn the_number_of_iterations_is_limited() {
    let iterated = |iterations| ConfiguredKey {
        source: KeySource::Password {
            password: secret("a"),
            iterations,
        },
        is_active: true,
    };
    for within in [PASSWORD_ITERATIONS_MIN, PASSWORD_ITERATIONS_MAX] {
        assert!(ConfiguredKeys::new(vec![iterated(within)]).is_ok());
    }
    let few = iterated(PASSWORD_ITERATIONS_MIN - 1);
    let many = iterated(PASSWORD_ITERATIONS_MAX + 1);
    for beyond in [few, many] {
        let refused = ConfiguredKeys::new(vec![beyond]).unwrap_err();
        assert_eq!(refused, KeyRingError::IterationsOutOfRange);
    }
}

#[test]
fn record_with_invalid_parameters_is_rejected() {
    let record = unlock(vec![password("a", true)], &[]).added.unwrap();
    let KeyDerivation::Password(parameters) = record.derivation.clone() else {
        unreachable!("the key is a password")
    };
    let many = PASSWORD_ITERATIONS_MAX + 1;
    let few = PASSWORD_ITERATIONS_MIN - 1;
    let invalid = [(63, 210_000), (64, 0), (64, few), (64, many)];
    let derived = invalid.map(|(salt_bytes, iterations)| {
        let mut changed = parameters.clone();
        changed.salt.truncate(salt_bytes);
        changed.iterations = iterations;
        KeyDerivation::Password(changed)
    });
    let wrapped = [0, 16_385].map(|bytes| KeyDerivation::Wrapped(vec![1; bytes]));
    for derivation in derived.into_iter().chain(wrapped) {
        let changed = KeyRecord {
            derivation,
            ..record.clone()
        };
        let configured = ConfiguredKeys::new(vec![password("a", true)]).unwrap();
        let outcome = now(Recognition::default().compare(&configured, &[changed]));
        assert!(matches!(
            outcome.unwrap_err(),
            ComparisonError::RecordMalformed(id) if id == record.id
        ));
    }
}

#[test]
fn derived_keys_differ_by_label_and_by_key() {
    let one = ring(vec![raw(1, true)]);
    assert_eq!(
        *one.derive("a").unwrap(),
        *ring(vec![raw(1, true)]).derive("a").unwrap()
    );
    assert_ne!(*one.derive("a").unwrap(), *one.derive("b").unwrap());
    assert_ne!(
        *one.derive("a").unwrap(),
        *ring(vec![raw(2, true)]).derive("a").unwrap()
    );
    assert_ne!(*one.derive("").unwrap(), [1; 32]);
}

#[test]
fn a_raw_key_is_32_bytes_in_base64() {
    let good = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
    assert!(KeySource::raw_from_base64(&secret(&format!(" {good}\n"))).is_ok());
    for text in ["", "AQEB", "not base64!", &good[4..]] {
        assert_eq!(
            KeySource::raw_from_base64(&secret(text)).unwrap_err(),
            RawKeyError,
            "{text}"
        );
    }
}

#[test]
fn debug_shows_no_key() {
    let configured = ConfiguredKeys::new(vec![raw(1, true), password("hunter2", false)]).unwrap();
    let shown = format!("{configured:?} {:?}", ring(vec![raw(1, true)]));
    assert!(
        !shown.contains("hunter2") && !shown.contains("1, 1, 1"),
        "{shown}"
    );
}

// Keys, and the steps of a server at start-up.

/// The outcome of a start-up.
pub(crate) struct Unlocked {
    pub(crate) ring: KeyRing,
    pub(crate) recognition: Recognition,
    /// The new record of the active key, if the key had no record.
    pub(crate) added: Option<KeyRecord>,
    /// The indexes of the keys without a record.
    pub(crate) unrecognized: Vec<usize>,
}

/// Recognizes keys by their records. Creates a record for the active key if it has no record.
pub(crate) fn unlock(configured: Vec<ConfiguredKey>, records: &[KeyRecord]) -> Unlocked {
    let configured = ConfiguredKeys::new(configured).unwrap();
    let mut recognition = Recognition::default();
    now(recognition.compare(&configured, records)).unwrap();
    let added = recognition.key_ring().is_none().then(|| {
        let id = Uuid::from_u128(10 + records.len() as u128);
        let record = now(configured.new_record(id, at(1))).unwrap();
        now(recognition.compare(&configured, from_ref(&record))).unwrap();
        record
    });
    Unlocked {
        ring: recognition.key_ring().unwrap(),
        unrecognized: recognition.unrecognized(&configured),
        recognition,
        added,
    }
}

pub(crate) fn ring(configured: Vec<ConfiguredKey>) -> KeyRing {
    unlock(configured, &[]).ring
}

/// Runs a future that never waits.
pub(crate) fn now<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(work)
}

/// Returns a raw key of 32 identical bytes.
pub(crate) fn raw(byte: u8, is_active: bool) -> ConfiguredKey {
    let text = match byte {
        1 => "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=",
        2 => "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=",
        _ => "AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM=",
    };
    ConfiguredKey {
        source: KeySource::raw_from_base64(&secret(text)).unwrap(),
        is_active,
    }
}

fn context_of(name: &LookupName) -> SealContext<'_> {
    SealContext {
        version_id: Uuid::nil(),
        name,
    }
}

pub(crate) fn password(text: &str, is_active: bool) -> ConfiguredKey {
    let source = KeySource::Password {
        password: secret(text),
        iterations: PASSWORD_ITERATIONS_MIN,
    };
    ConfiguredKey { source, is_active }
}

pub(crate) fn secret(text: &str) -> Secret {
    Secret::new(text.to_owned())
}

pub(crate) fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

/// Wraps a key by inverting its bits and prepending a byte.
enum Service {
    Prepends(u8),
    /// Prepends a text without encrypting the key.
    DoesNotEncrypt(&'static [u8]),
    DoesNotRespond,
    UnwrapsToZeros,
    WrapsToLength(usize),
}

#[async_trait]
impl KeyManagement for Service {
    async fn wrap_key(&self, key: &[u8]) -> Result<Vec<u8>, KeyManagementError> {
        match self {
            Self::Prepends(mark) => Ok([&[*mark], inverted(key).as_slice()].concat()),
            Self::DoesNotEncrypt(text) => Ok([text, key].concat()),
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
                Ok(Some(Zeroizing::new(inverted(key))))
            }
            (Self::DoesNotEncrypt(text), [..]) => {
                let key = wrapped_key.strip_prefix(*text);
                Ok(key.map(|key| Zeroizing::new(key.to_vec())))
            }
            (Self::DoesNotRespond, _) => Err(unavailable()),
            (Self::UnwrapsToZeros, _) => Ok(Some(Zeroizing::new(vec![0; 32]))),
            _ => Ok(None),
        }
    }
}

fn inverted(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
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
    let context = context_of(&name);
    let sealed = first.ring.seal(context, &secret("hunter2")).unwrap();

    let configured = vec![
        raw(1, true),
        wrapped(Service::Prepends(2), "two", false),
        wrapped(Service::Prepends(1), "one", false),
    ];
    let again = unlock(configured, from_ref(&record));
    assert_eq!(again.unrecognized, [1]);
    assert_eq!(again.ring.status(record.id), KeyStatus::Inactive);
    assert_eq!(
        again.ring.open(context, &sealed).unwrap().expose(),
        "hunter2"
    );
}

#[test]
fn active_key_is_recognized_if_another_service_unwraps_it() {
    let key = |source, active| wrapped(Service::Prepends(1), source, source == active);
    let keys = |active| vec![key("one", active), key("two", active)];
    let record = unlock(keys("one"), &[]).added.unwrap();
    let again = unlock(keys("two"), from_ref(&record));
    assert_eq!(again.ring.active_key_id(), record.id);
}

#[test]
fn second_wrapped_key_for_the_active_key_is_rejected() {
    let key = wrapped(Service::Prepends(1), "one", true);
    let configured = ConfiguredKeys::new(vec![key]).unwrap();
    let records = [1, 2].map(|id| now(configured.new_record(Uuid::from_u128(id), at(1))).unwrap());
    assert_ne!(records[0].derivation, records[1].derivation);
    let outcome = now(Recognition::default().compare(&configured, &records));
    assert!(matches!(
        outcome.unwrap_err(),
        ComparisonError::ActiveKeyAmbiguous(one, other) if [one, other] == [records[0].id, records[1].id]
    ));
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
    now(recognition.compare(&configured, from_ref(&of_two))).unwrap();
    assert!(recognition.was_compared(of_two.id));
    assert_eq!(recognition.key_ring().unwrap().active_key_id(), of_two.id);
    let outcome = now(recognition.compare(&configured, from_ref(&of_one)));
    assert!(matches!(outcome, Err(ComparisonError::KeyManagement(_))));
    assert!(!recognition.was_compared(of_one.id));
}

#[test]
fn key_that_the_service_does_not_wrap_and_unwrap_gets_no_record() {
    let too_long = "returned a wrapped key of more than";
    let wraps_to = Service::WrapsToLength;
    for (service, words) in [
        (Service::UnwrapsToZeros, "can't decrypt a key"),
        (wraps_to(WRAPPED_KEY_BYTES_MAX), "can't decrypt a key"),
        (wraps_to(WRAPPED_KEY_BYTES_MAX + 1), too_long),
        (Service::DoesNotEncrypt(b""), "without encrypting it"),
        (Service::DoesNotEncrypt(b"v1:"), "without encrypting it"),
    ] {
        let refused = refusal(service).to_string();
        assert!(refused.starts_with("the service "), "{refused}");
        assert!(refused.contains(words), "{refused}");
    }
    let refused = refusal(Service::DoesNotRespond);
    let is_of_service = matches!(refused, RecordError::KeyManagement(_));
    assert!(is_of_service, "{refused:?}");
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
