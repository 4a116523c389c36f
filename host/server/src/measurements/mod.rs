//! The metrics of the server, in the Prometheus format.
//!
//! Counters and durations are recorded where events happen, with the macros of the crate `metrics`, which do nothing unless
//! a [`Recorder`] was installed. States are determined when metrics are read: lanes and connections each time, counts in the
//! database at a limited rate.
//!
//! To add a metric, name it, with its unit last, in the crate that records it. Describe it there, and add a row to the table
//! in `host/docs/metrics.md`. No label may contain a value that a caller chooses.

/// Declares metrics: their kinds, constants, names and descriptions. Defines the function that registers the descriptions.
macro_rules! metrics {
    ($($describe:ident $constant:ident = $name:literal, $description:literal;)+) => {
        $(const $constant: &str = $name;)+

        fn register_descriptions() {
            $(metrics::$describe!($constant, $description);)+
        }
    };
}

mod events;

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use keywright_api::{HealthCheck, Router, audit::AuditTrail, management_router};
use keywright_core::{
    UseCaseError,
    credential::{CountedType, CredentialType, Credentials, CredentialsByDaysLeft},
    encryption_key::{EncryptionKeys, KeyUsage},
    ports::{Clock, CredentialRepository},
};
use keywright_crypto::ENCRYPTIONS_PER_KEY_MAX;
use keywright_runtime::Plugins;
use keywright_storage::{Database, PoolOccupancy};
use metrics::{counter, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::{sync::Mutex, time::timeout};

use self::events::gauge_value;
use crate::{config::ManagementConfig, started::StartupError};

pub(crate) use self::events::{
    RetentionOutcome, handshake_failed, reloaded, retention_clock_checked, retention_run,
    retention_versions_deleted, rotation_batch_done, rotation_versions_remain,
};

/// The recorder of metrics for the whole process.
pub(crate) struct Recorder {
    handle: PrometheusHandle,
}

impl Recorder {
    /// Installs a recorder for this process if a management address is configured.
    pub(crate) fn install_for(config: &ManagementConfig) -> Result<Option<Self>, StartupError> {
        config.listen.as_ref().map(|_| Self::install()).transpose()
    }

    fn install() -> Result<Self, StartupError> {
        let refused = |cause| StartupError::while_doing("starting to collect metrics", cause);
        let mut builder = PrometheusBuilder::new();
        for (name, bounds) in [
            (keywright_api::REQUEST_DURATION, DURATION_BOUNDS_SECONDS),
            (keywright_runtime::CALL_DURATION, DURATION_BOUNDS_SECONDS),
            (keywright_runtime::QUEUE_WAIT, DURATION_BOUNDS_SECONDS),
        ] {
            builder = builder
                .set_buckets_for_metric(Matcher::Full(name.to_owned()), bounds)
                .map_err(refused)?;
        }
        let handle = builder.install_recorder().map_err(refused)?;
        keywright_api::describe_metrics();
        keywright_runtime::describe_metrics();
        register_descriptions();
        events::describe_metrics();
        gauge!(BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1);
        Ok(Self { handle })
    }

    /// Returns the service of the management address: health, and the recorded metrics with the states of these components.
    /// Recorded durations are aggregated periodically, even if no client reads them, so that they don't accumulate in memory.
    pub(crate) fn router(
        self,
        health: &Arc<HealthCheck>,
        plugins: Arc<Plugins>,
        database: Database,
        stored: StoredCounts,
        audit: Option<Arc<AuditTrail>>,
    ) -> Router {
        let handle = self.handle.clone();
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(UPKEEP_INTERVAL);
            loop {
                ticks.tick().await;
                handle.run_upkeep();
            }
        });
        let page = Arc::new(MeasurementsPage {
            handle: self.handle,
            plugins,
            database,
            stored,
            audit,
        });
        management_router(Arc::clone(health), move || {
            let page = Arc::clone(&page);
            async move { page.text().await }
        })
    }
}

/// The recorded metrics, and the components whose states are determined when metrics are read.
struct MeasurementsPage {
    handle: PrometheusHandle,
    plugins: Arc<Plugins>,
    database: Database,
    stored: StoredCounts,
    audit: Option<Arc<AuditTrail>>,
}

impl MeasurementsPage {
    /// Returns all current metrics in the Prometheus text format.
    async fn text(&self) -> String {
        for lane in self.plugins.occupancy() {
            lane.record();
        }
        self.plugins.record_conformance();
        let database = self.database.occupancy();
        record_pool("reader", &database.readers);
        record_pool("writer", &database.writer);
        counter!(TRANSACTIONS_RETRIED).absolute(self.database.transactions_retried());
        record_check("database_file", self.database.is_in_place());
        record_check("database_writes", self.database.is_writable());
        if let Some(audit) = &self.audit {
            record_check("audit_trail", audit.is_written());
            counter!(AUDIT_EVENTS_LOST).absolute(audit.events_lost());
        }
        self.stored.refresh(Instant::now()).await;
        self.handle.render()
    }
}

/// Counts stored data, at a limited rate.
pub(crate) struct StoredCounts {
    credentials: Arc<dyn CredentialRepository>,
    encryption_keys: EncryptionKeys,
    clock: Arc<dyn Clock>,
    counting: Mutex<Counting>,
}

/// The times of counting, and the credentials that were counted.
#[derive(Default)]
struct Counting {
    /// The last attempt.
    tried: Option<Instant>,
    succeeded: Option<Instant>,
    /// The credentials that expire, at the last success. Keeps types whose credentials were deleted, so that their gauges become 0.
    expiring: BTreeMap<CountedType, CredentialsByDaysLeft>,
}

impl Counting {
    fn is_due(&self, now: Instant) -> bool {
        self.tried
            .is_none_or(|tried| now.saturating_duration_since(tried) >= STORED_INTERVAL_MIN)
    }

    /// Replaces all numbers. The type certificate always has numbers.
    fn update_expiring(&mut self, counted: Vec<(CountedType, CredentialsByDaysLeft)>) {
        self.expiring
            .entry((CredentialType::certificate(), true))
            .or_default();
        for numbers in self.expiring.values_mut() {
            *numbers = CredentialsByDaysLeft::default();
        }
        self.expiring.extend(counted);
    }
}

impl StoredCounts {
    pub(crate) fn new(credentials: &Credentials, encryption_keys: EncryptionKeys) -> Self {
        Self {
            credentials: Arc::clone(&credentials.store.repository),
            encryption_keys,
            clock: Arc::clone(&credentials.store.clock),
            counting: Mutex::default(),
        }
    }

    /// Updates the counts, unless the last attempt was less than [`STORED_INTERVAL_MIN`] before `now`. If the database
    /// does not respond, the numbers stay as they are, and their age grows.
    pub(crate) async fn refresh(&self, now: Instant) {
        let mut counting = self.counting.lock().await;
        if counting.is_due(now) {
            counting.tried = Some(now);
            match timeout(STORED_DURATION_MAX, self.count(&mut counting)).await {
                Ok(Ok(())) => counting.succeeded = Some(now),
                Ok(Err(cause)) => {
                    tracing::warn!(
                        error = &cause as &dyn std::error::Error,
                        "could not count stored data"
                    );
                }
                Err(_) => tracing::warn!("counting stored data timed out"),
            }
        }
        if let Some(succeeded) = counting.succeeded {
            gauge!(STORED_AGE).set(now.saturating_duration_since(succeeded));
        }
    }

    /// Records all counts, or none if one of them fails.
    async fn count(&self, counting: &mut Counting) -> Result<(), UseCaseError> {
        let now = self.clock.now();
        let expiring = CredentialsByDaysLeft::count(self.credentials.as_ref(), now).await?;
        let key_usage = self.encryption_keys.usage().await?;
        let encryptions = self.encryption_keys.active_encryptions().await?;
        counting.update_expiring(expiring);
        for (of, numbers) in &counting.expiring {
            record_expiring(of, numbers);
        }
        record_key_usage(key_usage);
        gauge!(ENCRYPTIONS).set(gauge_value(encryptions));
        gauge!(ENCRYPTIONS_MAX).set(gauge_value(ENCRYPTIONS_PER_KEY_MAX));
        Ok(())
    }
}

fn record_expiring(
    (credential_type, have_certificates): &CountedType,
    numbers: &CredentialsByDaysLeft,
) {
    let gauge_name = if *have_certificates {
        CERTIFICATES
    } else {
        EXPIRING_CREDENTIALS
    };
    let record = |days_left: String, number: u64| {
        let credential_type = credential_type.as_str().to_owned();
        gauge!(gauge_name, "type" => credential_type, "days_left" => days_left)
            .set(gauge_value(number));
    };
    record("expired".to_owned(), numbers.expired);
    for (days, number) in numbers.within {
        record(days.to_string(), number);
    }
    record("more".to_owned(), numbers.more);
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

fn record_pool(pool: &'static str, occupancy: &PoolOccupancy) {
    let in_use = ("in_use", occupancy.in_use);
    for (state, number) in [in_use, ("idle", occupancy.idle)] {
        gauge!(CONNECTIONS, "pool" => pool, "state" => state).set(gauge_value(number));
    }
    gauge!(CONNECTIONS_MAX, "pool" => pool).set(gauge_value(occupancy.connections_max));
    gauge!(CONNECTION_WAITERS, "pool" => pool).set(gauge_value(occupancy.waiting));
}

fn record_check(check: &'static str, is_well: bool) {
    gauge!(HEALTH_CHECK, "check" => check).set(if is_well { 1.0 } else { 0.0 });
}

metrics! {
    describe_counter AUDIT_EVENTS_LOST = "keywright_audit_events_lost_total",
        "Audit events lost because too many unwritten events were waiting.";
    describe_gauge BUILD_INFO = "keywright_build_info",
        "Always 1; the label is the running version.";
    describe_gauge CONNECTIONS = "keywright_database_connections",
        "Open connections to the database, by pool and state.";
    describe_gauge CONNECTIONS_MAX = "keywright_database_connections_max",
        "Connections to the database that may be open, by pool.";
    describe_gauge CONNECTION_WAITERS = "keywright_database_connection_waiters",
        "Requests that wait for a connection to the database, by pool.";
    describe_gauge HEALTH_CHECK = "keywright_health_check",
        "Parts that /health checks: 0 if the part is known to fail, otherwise 1.";
    describe_counter TRANSACTIONS_RETRIED = "keywright_database_transactions_retried_total",
        "Transactions retried because of a conflict with another transaction.";
    describe_gauge CERTIFICATES = "keywright_certificates",
        "Certificates by type and by the remaining days of their latest version; each is counted once, under the smallest bound.";
    describe_gauge EXPIRING_CREDENTIALS = "keywright_expiring_credentials",
        "Credentials without certificates that expire or should be rotated, by type and remaining days; each is counted once, under the smallest bound.";
    describe_gauge ENCRYPTED_VERSIONS = "keywright_encrypted_versions",
        "Credential versions by the key that encrypts them: active, other configured (inactive) or unknown.";
    describe_gauge ENCRYPTIONS = "keywright_encryption_key_encryptions",
        "Values that the active encryption key may have encrypted, on all servers.";
    describe_gauge ENCRYPTIONS_MAX = "keywright_encryption_key_encryptions_max",
        "Maximum number of values per encryption key; writes fail beyond it.";
    describe_gauge STORED_AGE = "keywright_stored_counts_age_seconds",
        "Seconds since stored credentials were last counted.";
}

/// The upper bounds of the histogram buckets for durations, in seconds: from a fast read to the generation of a large key.
const DURATION_BOUNDS_SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Interval at which recorded durations are aggregated.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

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
        assert!(Counting::default().is_due(tried));
        let counting = Counting {
            tried: Some(tried),
            ..Counting::default()
        };
        let almost = STORED_INTERVAL_MIN.mul_f64(0.999);
        for (passed, is_due) in [
            (Duration::ZERO, false),
            (almost, false),
            (STORED_INTERVAL_MIN, true),
        ] {
            assert_eq!(counting.is_due(tried + passed), is_due, "{passed:?}");
        }
    }

    #[test]
    fn types_without_certificates_left_count_zero() {
        let expired = |expired| CredentialsByDaysLeft {
            expired,
            ..CredentialsByDaysLeft::default()
        };
        let svid = (CredentialType::parse("svid").unwrap(), false);
        let mut counting = Counting::default();
        for (counted, expected) in [
            (vec![], vec![("certificate", 0)]),
            (
                vec![(svid, expired(2))],
                vec![("certificate", 0), ("svid", 2)],
            ),
            (
                vec![((CredentialType::certificate(), true), expired(1))],
                vec![("certificate", 1), ("svid", 0)],
            ),
        ] {
            counting.update_expiring(counted);
            let numbers = counting.expiring.iter();
            let numbers = numbers.map(|((of, _), numbers)| (of.as_str(), numbers.expired));
            assert_eq!(numbers.collect::<Vec<_>>(), expected);
        }
    }
}
