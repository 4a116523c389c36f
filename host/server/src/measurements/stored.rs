//! What must be counted in the database: numbers of certificates and of versions, and no names.

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

/// Counts what is stored, but not every time that it is asked to.
pub(crate) struct StoredCounts {
    credentials: Arc<dyn CredentialRepository>,
    encryption_keys: EncryptionKeys,
    clock: Arc<dyn Clock>,
    state: Mutex<Counted>,
}

/// When it was counted.
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
    /// Counts these.
    pub(crate) fn new(credentials: &Credentials, encryption_keys: EncryptionKeys) -> Self {
        Self {
            credentials: Arc::clone(&credentials.repository),
            encryption_keys,
            clock: Arc::clone(&credentials.clock),
            state: Mutex::default(),
        }
    }

    /// Counts anew, unless it was tried less than [`STORED_INTERVAL_MIN`] before `now`. Where the database does not answer,
    /// the numbers stay as they were, and grow old.
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
                        "what is stored could not be counted"
                    );
                }
                Err(_) => tracing::warn!("counting what is stored took too long"),
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

/// What was counted at a moment.
struct Counts {
    certificates: CertificatesByDaysLeft,
    key_usage: KeyUsage,
    /// By the active key.
    encryptions: u64,
}

/// Tells the process's recorder what each of these measurements means.
pub(super) fn describe_metrics() {
    describe_gauge!(
        CERTIFICATES,
        "Certificates by the days that their newest versions are still valid; each is counted once, under the least bound."
    );
    describe_gauge!(
        ENCRYPTED_VERSIONS,
        "Versions of credentials by the key that encrypts them: the active one, others that are configured, unknown ones."
    );
    describe_gauge!(
        ENCRYPTIONS,
        "Values that the active encryption key may have encrypted, on all servers."
    );
    describe_gauge!(
        ENCRYPTIONS_MAX,
        "Values that one encryption key may encrypt; writes are refused beyond it."
    );
    describe_gauge!(
        STORED_AGE,
        "How long ago certificates and encrypted versions were counted, in seconds."
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

/// The least time between two attempts to count: each reads an index to its end.
const STORED_INTERVAL_MIN: Duration = Duration::from_mins(1);

/// How long an attempt may take before those who read the measurements go without it.
const STORED_DURATION_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_tried_at_once_and_then_not_before_the_interval_has_passed() {
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
