//! Sealing, and recognising keys.
#![expect(
    clippy::unwrap_used,
    reason = "these are tests; helper functions outside of #[test] count as production code for the lints"
)]

use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, Utc};
use keywright_core::{
    Secret,
    credential::LookupName,
    ports::{Envelope, Identifiers, KeyStanding, SealFailure, SealedPlace, Sealer},
};
use keywright_crypto::{
    ConfiguredKey, KeyDerivation, KeyRecord, KeyRing, KeySource, PASSWORD_ITERATIONS_MIN,
    RawKeyMalformed, UnlockFailure, Unlocked,
};
use uuid::Uuid;

#[test]
fn what_was_sealed_opens_at_its_place_alone() {
    let ring = ring(&[raw(1, true)]);
    let name = LookupName::new("/Team/Key");
    let place = SealedPlace {
        version_id: Uuid::from_u128(7),
        name: &name,
    };
    let envelope = ring.seal(place, &secret("hunter2")).unwrap();
    assert_eq!(ring.open(place, &envelope).unwrap().expose(), "hunter2");

    let same_name = LookupName::new("team/KEY");
    assert!(
        ring.open(
            SealedPlace {
                name: &same_name,
                ..place
            },
            &envelope
        )
        .is_ok()
    );
    let other_name = LookupName::new("/team/key2");
    for elsewhere in [
        SealedPlace {
            name: &other_name,
            ..place
        },
        SealedPlace {
            version_id: Uuid::from_u128(8),
            ..place
        },
    ] {
        assert_eq!(
            ring.open(elsewhere, &envelope),
            Err(SealFailure::NotAuthentic)
        );
    }
}

#[test]
fn every_changed_byte_is_noticed() {
    let ring = ring(&[raw(1, true)]);
    let name = LookupName::new("/a");
    let place = SealedPlace {
        version_id: Uuid::nil(),
        name: &name,
    };
    let envelope = ring.seal(place, &secret("ä")).unwrap();
    for position in 0..envelope.ciphertext.len() {
        let mut changed = envelope.clone();
        changed.ciphertext[position] ^= 1;
        assert_eq!(ring.open(place, &changed), Err(SealFailure::NotAuthentic));
    }
    for position in 0..envelope.nonce.len() {
        let mut changed = envelope.clone();
        changed.nonce[position] ^= 1;
        assert_eq!(ring.open(place, &changed), Err(SealFailure::NotAuthentic));
    }
    for truncated in [
        Envelope {
            nonce: Vec::new(),
            ..envelope.clone()
        },
        Envelope {
            ciphertext: Vec::new(),
            ..envelope.clone()
        },
        Envelope {
            ciphertext: envelope.ciphertext[1..].to_vec(),
            ..envelope.clone()
        },
    ] {
        assert_eq!(ring.open(place, &truncated), Err(SealFailure::NotAuthentic));
    }
}

#[test]
fn the_same_value_is_never_sealed_to_the_same_bytes() {
    let ring = ring(&[raw(1, true)]);
    let name = LookupName::new("/a");
    let place = SealedPlace {
        version_id: Uuid::nil(),
        name: &name,
    };
    let one = ring.seal(place, &secret("same")).unwrap();
    let other = ring.seal(place, &secret("same")).unwrap();
    assert_ne!(one.nonce, other.nonce);
    assert_ne!(one.ciphertext, other.ciphertext);
    assert_eq!(
        (one.nonce.len(), one.ciphertext.len()),
        (12, "same".len() + 16)
    );
}

#[test]
fn an_unknown_key_is_named() {
    let name = LookupName::new("/a");
    let place = SealedPlace {
        version_id: Uuid::nil(),
        name: &name,
    };
    let envelope = ring(&[raw(1, true)]).seal(place, &secret("a")).unwrap();
    let stranger = Uuid::from_u128(99);
    let foreign = Envelope {
        key_id: stranger,
        ..envelope
    };
    let outcome = ring(&[raw(1, true)]).open(place, &foreign);
    assert_eq!(outcome, Err(SealFailure::KeyUnknown(stranger)));
}

#[test]
fn a_new_active_key_gets_a_record_by_which_it_is_recognised() {
    for key in [raw(1, true), password("correct horse", true)] {
        let first = unlock(&[key], &[], &[]).unwrap();
        let record = first.to_store.unwrap();
        assert_eq!(record.id, first.ring.active_key_id());
        let same = match &record.derivation {
            KeyDerivation::Raw => raw(1, true),
            KeyDerivation::Password(parameters) => {
                assert_eq!(
                    (parameters.salt.len(), parameters.iterations),
                    (64, PASSWORD_ITERATIONS_MIN)
                );
                password("correct horse", true)
            }
        };
        let again = unlock(&[same], std::slice::from_ref(&record), &[record.id]).unwrap();
        assert!(again.to_store.is_none());
        assert_eq!(again.ring.active_key_id(), record.id);
        assert_eq!(
            *again.ring.derive("cache").unwrap(),
            *first.ring.derive("cache").unwrap()
        );
    }
}

#[test]
fn an_inactive_key_still_decrypts_and_one_that_was_never_active_is_ignored() {
    let old = unlock(&[raw(1, true)], &[], &[]).unwrap();
    let record = old.to_store.unwrap();
    let name = LookupName::new("/a");
    let place = SealedPlace {
        version_id: Uuid::nil(),
        name: &name,
    };
    let envelope = old.ring.seal(place, &secret("old")).unwrap();

    let configured = [raw(1, false), raw(2, true), raw(3, false)];
    let new = unlock(&configured, std::slice::from_ref(&record), &[record.id]).unwrap();
    assert_eq!(new.ignored_count, 1);
    assert_ne!(new.ring.active_key_id(), record.id);
    assert_eq!(new.ring.key_ids().count(), 2);
    assert_eq!(new.ring.open(place, &envelope).unwrap().expose(), "old");
    let sealed = new.ring.seal(place, &secret("new")).unwrap();
    let new_id = new.to_store.unwrap().id;
    assert_eq!(sealed.key_id, new_id);
    for (id, standing) in [
        (new_id, KeyStanding::Active),
        (record.id, KeyStanding::Inactive),
        (Uuid::from_u128(7), KeyStanding::Unknown),
    ] {
        assert_eq!(new.ring.standing(id), standing);
    }
}

#[test]
fn of_two_records_of_one_key_the_older_encrypts_and_both_decrypt() {
    let one = unlock(&[raw(1, true)], &[], &[]).unwrap().to_store.unwrap();
    let later = at(5);
    let other = KeyRing::unlock(
        &[raw(1, true)],
        &[],
        &[],
        &Counting(AtomicU64::new(50)),
        later,
    )
    .unwrap()
    .to_store
    .unwrap();
    let unlocked = unlock(&[raw(1, true)], &[other, one.clone()], &[]).unwrap();
    assert_eq!(unlocked.ring.active_key_id(), one.id);
    assert_eq!(unlocked.ring.key_ids().count(), 2);
}

#[test]
fn keys_that_open_nothing_of_what_is_stored_are_refused() {
    let record = unlock(&[raw(1, true)], &[], &[]).unwrap().to_store.unwrap();
    let records = std::slice::from_ref(&record);
    let outcome = unlock(&[raw(2, true)], records, &[record.id]);
    assert_eq!(outcome.unwrap_err(), UnlockFailure::NoStoredValueOpens);
    assert!(unlock(&[raw(2, true)], records, &[]).is_ok());
    let moved = KeyRecord {
        id: Uuid::from_u128(77),
        ..record
    };
    let outcome = unlock(&[raw(1, true)], std::slice::from_ref(&moved), &[moved.id]);
    assert_eq!(outcome.unwrap_err(), UnlockFailure::NoStoredValueOpens);
}

#[test]
fn each_mistake_in_the_configuration_is_told() {
    let few = ConfiguredKey {
        source: KeySource::Password {
            password: secret("a"),
            iterations: PASSWORD_ITERATIONS_MIN - 1,
        },
        is_active: true,
    };
    for (configured, failure) in [
        (vec![], UnlockFailure::NoActiveKey),
        (vec![raw(1, false)], UnlockFailure::NoActiveKey),
        (
            vec![raw(1, true), raw(2, true)],
            UnlockFailure::SeveralActiveKeys,
        ),
        (vec![password("", true)], UnlockFailure::PasswordEmpty),
        (vec![few], UnlockFailure::IterationsOutOfRange),
    ] {
        assert_eq!(unlock(&configured, &[], &[]).unwrap_err(), failure);
    }
}

#[test]
fn a_record_with_impossible_parameters_is_refused() {
    let record = unlock(&[password("a", true)], &[], &[])
        .unwrap()
        .to_store
        .unwrap();
    let KeyDerivation::Password(parameters) = record.derivation.clone() else {
        unreachable!("the key is a password")
    };
    for (salt_bytes, iterations) in [(63, 210_000), (64, 0), (64, u32::MAX)] {
        let mut changed = parameters.clone();
        changed.salt.truncate(salt_bytes);
        changed.iterations = iterations;
        let changed = KeyRecord {
            derivation: KeyDerivation::Password(changed),
            ..record.clone()
        };
        let outcome = unlock(&[password("a", true)], &[changed], &[]);
        assert_eq!(
            outcome.unwrap_err(),
            UnlockFailure::RecordMalformed(record.id)
        );
    }
}

#[test]
fn derived_keys_differ_by_label_and_by_key() {
    let one = ring(&[raw(1, true)]);
    assert_eq!(
        *one.derive("a").unwrap(),
        *ring(&[raw(1, true)]).derive("a").unwrap()
    );
    assert_ne!(*one.derive("a").unwrap(), *one.derive("b").unwrap());
    assert_ne!(
        *one.derive("a").unwrap(),
        *ring(&[raw(2, true)]).derive("a").unwrap()
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
            RawKeyMalformed,
            "{text}"
        );
    }
}

#[test]
fn debug_shows_no_key() {
    let configured = [raw(1, true), password("hunter2", false)];
    let shown = format!(
        "{configured:?} {:?}",
        unlock(&configured, &[], &[]).unwrap()
    );
    assert!(
        !shown.contains("hunter2") && !shown.contains("1, 1, 1"),
        "{shown}"
    );
}

/// Ids that count up.
struct Counting(AtomicU64);

impl Identifiers for Counting {
    fn fresh(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::Relaxed)))
    }
}

fn unlock(
    configured: &[ConfiguredKey],
    records: &[KeyRecord],
    in_use: &[Uuid],
) -> Result<Unlocked, UnlockFailure> {
    let first_id = 10 + records.len() as u64;
    let identifiers = Counting(AtomicU64::new(first_id));
    KeyRing::unlock(configured, records, in_use, &identifiers, at(1))
}

fn ring(configured: &[ConfiguredKey]) -> KeyRing {
    unlock(configured, &[], &[]).unwrap().ring
}

/// A raw key of 32 times the same byte.
fn raw(byte: u8, is_active: bool) -> ConfiguredKey {
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

fn password(text: &str, is_active: bool) -> ConfiguredKey {
    let source = KeySource::Password {
        password: secret(text),
        iterations: PASSWORD_ITERATIONS_MIN,
    };
    ConfiguredKey { source, is_active }
}

fn secret(text: &str) -> Secret {
    Secret::new(text.to_owned())
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}
