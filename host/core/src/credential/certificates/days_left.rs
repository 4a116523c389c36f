//! Counting certificates by expiry, for monitoring.

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    Failure,
    ports::{CredentialRepository, EXPIRY_MOMENTS},
};

/// The numbers of certificates by days left until they expire. Each certificate counts once, by its newest version, as in a
/// search by expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CertificatesByDaysLeft {
    /// The expired certificates.
    pub expired: u64,
    /// The certificates by maximum days left, each excluding those of the entry before; see [`DAYS_LEFT`].
    pub within: [(u32, u64); DAYS_LEFT.len()],
    /// The certificates with more days left than the last entry.
    pub more: u64,
}

/// The upper bounds of the ranges of days left, ascending.
pub const DAYS_LEFT: [u32; EXPIRY_MOMENTS - 1] = [7, 30, 90, 365];

impl CertificatesByDaysLeft {
    /// Counts all certificates, including those in credentials of other types, with one query.
    ///
    /// # Errors
    /// If the query fails.
    pub async fn count(
        repository: &dyn CredentialRepository,
        now: DateTime<Utc>,
    ) -> Result<Self, Failure> {
        let [week, month, quarter, year] =
            DAYS_LEFT.map(|days| now + TimeDelta::days(i64::from(days)));
        let [expired, within @ .., more] = repository
            .certificates_by_expiry([now, week, month, quarter, year])
            .await?;
        let [week, month, quarter, year] = within;
        let [first, second, third, fourth] = DAYS_LEFT;
        Ok(Self {
            expired,
            within: [
                (first, week),
                (second, month),
                (third, quarter),
                (fourth, year),
            ],
            more,
        })
    }
}
