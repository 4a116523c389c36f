//! Certificates that other tools generated, for the lists of the console.

use keywright_harness::TestCertificate;
use rcgen::{SanType, date_time_ymd};

/// Generates a self-signed CA that has expired.
pub(crate) fn expired_authority() -> TestCertificate {
    TestCertificate::root_with("expired", |parameters| {
        parameters.not_before = date_time_ymd(2001, 1, 1);
        parameters.not_after = date_time_ymd(2002, 1, 1);
    })
}

/// Returns a number of identical alternative names.
pub(crate) fn alternative_names(text: &str, count: usize) -> Vec<SanType> {
    vec![SanType::DnsName(text.to_owned().try_into().unwrap()); count]
}
