//! How many certificates expire when, for those who watch a server from outside: numbers, and no names.

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    Failure,
    ports::{CredentialRepository, EXPIRY_MOMENTS},
};

/// How many certificates have how many days left until they expire, each counted once, by its newest version, as a search
/// by expiry finds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CertificatesByDaysLeft {
    /// Those that have expired.
    pub expired: u64,
    /// Those that have at most so many days left, and more than the ones before; see [`DAYS_LEFT`].
    pub within: [(u32, u64); DAYS_LEFT.len()],
    /// Those that have more than the last of these.
    pub more: u64,
}

/// Where the days that certificates have left are divided, in days, ascending.
pub const DAYS_LEFT: [u32; EXPIRY_MOMENTS - 1] = [7, 30, 90, 365];

impl CertificatesByDaysLeft {
    /// Counts all certificates, also those in credentials of other types, by one query.
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
