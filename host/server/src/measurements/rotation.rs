//! Metrics of key rotation.

use metrics::{counter, describe_counter, describe_gauge, gauge};

use super::gauge_value;

/// Counts the versions of a batch that were rotated, or newly found to fail.
pub(crate) fn batch_done(rotated: u64, failed: u64) {
    counter!(VERSIONS, "outcome" => "rotated").increment(rotated);
    counter!(VERSIONS, "outcome" => "failed").increment(failed);
}

/// Sets the number of versions left to this server.
pub(crate) fn versions_remain(count: u64) {
    gauge!(VERSIONS_REMAINING).set(gauge_value(count));
}

/// Registers the descriptions of these metrics, with initial values.
pub(super) fn describe_metrics() {
    describe_counter!(
        VERSIONS,
        "Credential versions that this server was to re-encrypt with the active key, by outcome."
    );
    describe_gauge!(
        VERSIONS_REMAINING,
        "Credential versions that this server has left to re-encrypt with the active key, while rotating."
    );
    for outcome in ["rotated", "failed"] {
        counter!(VERSIONS, "outcome" => outcome).increment(0);
    }
    gauge!(VERSIONS_REMAINING).set(0);
}

const VERSIONS: &str = "keywright_key_rotation_versions_total";
const VERSIONS_REMAINING: &str = "keywright_key_rotation_versions_remaining";
