//! Metrics counted in the database: numbers of certificates and versions, without names.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use keywright_core::{
    Failure,
    credential::{CertificatesByDaysLeft, Credentials},
    encryption_key::{EncryptionKeys, KeyUsage},
    ports::{Clock, CredentialRepository},
};
use keywright_crypto::ENCRYPTIONS_PER_KEY_MAX;
use metrics::{describe_gauge, gauge};
use tokio::{sync::Mutex, time::timeout};

use super::gauge_value;

/// Counts stored data, at a limited rate.
pub(crate) struct StoredCounts {
    credentials: Arc<dyn CredentialRepository>,
    encryption_keys: EncryptionKeys,
    clock: Arc<dyn Clock>,
    state: Mutex<Counted>,
}

/// The times of counting.
#[derive(Default)]
struct Counted {
    /// The last attempt.
    tried: Option<Instant>,
    /// The last success.
    succeeded: Option<Instant>,
}

impl Counted {
    fn is_due(&self, now: Instant) -> bool {
        self.tried
            .is_none_or(|tried| now.saturating_duration_since(tried) >= STORED_INTERVAL_MIN)
    }
}

impl StoredCounts {
    pub(crate) fn new(credentials: &Credentials, encryption_keys: EncryptionKeys) -> Self {
        Self {
            credentials: Arc::clone(&credentials.store.repository),
            encryption_keys,
            clock: Arc::clone(&credentials.store.clock),
            state: Mutex::default(),
        }
    }

    /// Updates the counts, unless the last attempt was less than [`STORED_INTERVAL_MIN`] before `now`. If the database
    /// does not respond, the numbers stay as they are, and their age grows.
    pub(crate) async fn refresh(&self, now: Instant) {
        let mut state = self.state.lock().await;
        if state.is_due(now) {
            state.tried = Some(now);
            match timeout(STORED_DURATION_MAX, self.count()).await {
                Ok(Ok(counts)) => {
                    record_certificates(&counts.certificates);
                    record_key_usage(counts.key_usage);
                    gauge!(ENCRYPTIONS).set(gauge_value(counts.encryptions));
                    gauge!(ENCRYPTIONS_MAX).set(gauge_value(ENCRYPTIONS_PER_KEY_MAX));
                    state.succeeded = Some(now);
                }
                Ok(Err(cause)) => {
                    tracing::warn!(
                        error = &cause as &dyn std::error::Error,
                        "could not count stored data"
                    );
                }
                Err(_) => tracing::warn!("counting stored data timed out"),
            }
        }
        if let Some(succeeded) = state.succeeded {
            gauge!(STORED_AGE).set(now.saturating_duration_since(succeeded));
        }
    }

    async fn count(&self) -> Result<Counts, Failure> {
        let now = self.clock.now();
        Ok(Counts {
            certificates: CertificatesByDaysLeft::count(self.credentials.as_ref(), now).await?,
            key_usage: self.encryption_keys.usage().await?,
            encryptions: self.encryption_keys.active_encryptions().await?,
        })
    }
}

/// The counts at one time.
struct Counts {
    certificates: CertificatesByDaysLeft,
    key_usage: KeyUsage,
    /// By the active key.
    encryptions: u64,
}

/// Registers the descriptions of these metrics.
pub(super) fn describe_metrics() {
    describe_gauge!(
        CERTIFICATES,
        "Certificates by the remaining days of their newest version; each is counted once, under the smallest bound."
    );
    describe_gauge!(
        ENCRYPTED_VERSIONS,
        "Credential versions by the key that encrypts them: active, other configured (inactive) or unknown."
    );
    describe_gauge!(
        ENCRYPTIONS,
        "Values that the active encryption key may have encrypted, on all servers."
    );
    describe_gauge!(
        ENCRYPTIONS_MAX,
        "Maximum number of values per encryption key; writes fail beyond it."
    );
    describe_gauge!(
        STORED_AGE,
        "Seconds since certificates and encrypted versions were last counted."
    );
}

fn record_certificates(certificates: &CertificatesByDaysLeft) {
    let record = |days_left: String, number: u64| {
        gauge!(CERTIFICATES, "days_left" => days_left).set(gauge_value(number));
    };
    record("expired".to_owned(), certificates.expired);
    for (days, number) in certificates.within {
        record(days.to_string(), number);
    }
    record("more".to_owned(), certificates.more);
}

fn record_key_usage(usage: KeyUsage) {
    for (key, number) in [
        ("active", usage.active_key),
        ("inactive", usage.inactive_keys),
        ("unknown", usage.unknown_keys),
    ] {
        gauge!(ENCRYPTED_VERSIONS, "key" => key).set(gauge_value(number));
    }
}

const CERTIFICATES: &str = "keywright_certificates";
const ENCRYPTED_VERSIONS: &str = "keywright_encrypted_versions";
const ENCRYPTIONS: &str = "keywright_encryption_key_encryptions";
const ENCRYPTIONS_MAX: &str = "keywright_encryption_key_encryptions_max";
const STORED_AGE: &str = "keywright_stored_counts_age_seconds";

/// Minimum time between two attempts to count: each scans an index.
const STORED_INTERVAL_MIN: Duration = Duration::from_mins(1);

/// Maximum duration of an attempt, after which metrics are served without it.
const STORED_DURATION_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_is_due_at_first_and_after_the_interval() {
        let tried = Instant::now();
        assert!(Counted::default().is_due(tried));
        let counted = Counted {
            tried: Some(tried),
            succeeded: None,
        };
        let almost = STORED_INTERVAL_MIN.mul_f64(0.999);
        for (passed, is_due) in [
            (Duration::ZERO, false),
            (almost, false),
            (STORED_INTERVAL_MIN, true),
        ] {
            assert_eq!(counted.is_due(tried + passed), is_due, "{passed:?}");
        }
    }
}
