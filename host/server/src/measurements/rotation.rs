//! What the rotation of encryption keys does.

use metrics::{counter, describe_counter, describe_gauge, gauge};

use super::gauge_value;

/// A batch is done: so many more versions were rotated, and of so many more it was found that they can't be.
pub(crate) fn batch_done(rotated: u64, failed: u64) {
    counter!(VERSIONS, "outcome" => "rotated").increment(rotated);
    counter!(VERSIONS, "outcome" => "failed").increment(failed);
}

/// So many versions are left to this server.
pub(crate) fn versions_remain(count: u64) {
    gauge!(VERSIONS_REMAINING).set(gauge_value(count));
}

/// Tells the process's recorder what each of these measurements means, and that nothing was rotated so far.
pub(super) fn describe_metrics() {
    describe_counter!(
        VERSIONS,
        "Versions of credentials that this server was to encrypt with the active key, by what came of it."
    );
    describe_gauge!(
        VERSIONS_REMAINING,
        "Versions of credentials that this server has still to encrypt with the active key, while it is at it."
    );
    for outcome in ["rotated", "failed"] {
        counter!(VERSIONS, "outcome" => outcome).increment(0);
    }
    gauge!(VERSIONS_REMAINING).set(0);
}

const VERSIONS: &str = "keywright_key_rotation_versions_total";
const VERSIONS_REMAINING: &str = "keywright_key_rotation_versions_remaining";
