//! Keys, and the steps of a server at start-up.

use std::future::Future;

use chrono::{DateTime, Utc};
use keywright_core::Secret;
use keywright_crypto::{
    ConfiguredKey, ConfiguredKeys, KeyRecord, KeyRing, KeySource, PASSWORD_ITERATIONS_MIN,
    Recognition,
};
use uuid::Uuid;

/// The outcome of a start-up.
pub(crate) struct Unlocked {
    pub(crate) ring: KeyRing,
    pub(crate) recognition: Recognition,
    /// The record that was created for the active key if it had none.
    pub(crate) added: Option<KeyRecord>,
    /// The indexes of the keys without a record.
    pub(crate) unrecognised: Vec<usize>,
}

/// Recognizes keys by their records, and creates one for the active key if it has none.
pub(crate) fn unlock(configured: Vec<ConfiguredKey>, records: &[KeyRecord]) -> Unlocked {
    let configured = ConfiguredKeys::new(configured).unwrap();
    let mut recognition = Recognition::default();
    now(recognition.compare(&configured, records)).unwrap();
    let added = recognition.key_ring().is_none().then(|| {
        let id = Uuid::from_u128(10 + records.len() as u128);
        let record = now(configured.new_record(id, at(1))).unwrap();
        now(recognition.compare(&configured, std::slice::from_ref(&record))).unwrap();
        record
    });
    Unlocked {
        ring: recognition.key_ring().unwrap(),
        unrecognised: recognition.unrecognised(&configured),
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

/// A raw key of 32 identical bytes.
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
