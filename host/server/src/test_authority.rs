//! A CA for tests of plugins whose values a CA signs: for `keywright plugin …`, and for the entropy test of a server.
//!
//! It exists only in memory. Its private key is derived from a public constant, so that a test has the same result in each run.
//! Never trust it.

use std::sync::Arc;

use aws_lc_rs::digest;
use keywright_core::{Secret, certificate::IssuanceRules, ports::Certificates};
use keywright_crypto::X509Certificates;
use keywright_runtime::TestIssuers;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};

/// Creates the CA, and returns its issuers.
pub(crate) fn test_issuers() -> TestIssuers {
    let authority = authority().ok();
    Arc::new(move |parameters, now| {
        let (certificate, key) = authority.as_ref()?;
        let rules = IssuanceRules::of(parameters, now);
        X509Certificates.issuer(certificate, key, rules).ok()
    })
}

/// Returns its certificate and its private key, in PEM. An error is a bug, because the input is constant.
fn authority() -> Result<(String, Secret), rcgen::Error> {
    let seed = digest::digest(&digest::SHA256, SEED_LABEL);
    let key = KeyPair::try_from([PKCS8_ED25519, seed.as_ref()].concat())?;
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, NAME);
    authority.serial_number = Some(1.into());
    // Valid at the time of any call.
    authority.not_before = date_time_ymd(1970, 1, 1);
    authority.not_after = date_time_ymd(9999, 12, 31);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = authority.self_signed(&key)?.pem();
    Ok((certificate, Secret::new(key.serialize_pem())))
}

const NAME: &str = "Keywright test CA, do not trust";

/// The label from which the private key is derived.
const SEED_LABEL: &[u8] = b"keywright test CA, version 1";

/// The beginning of an Ed25519 private key (RFC 8410, section 7), in DER. Its 32 bytes follow.
const PKCS8_ED25519: &[u8] = &[
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

#[cfg(test)]
mod tests {
    use chrono::Utc;
    use keywright_core::credential::Parameters;
    use serde_json::Map;

    use super::*;

    /// Test vectors of plugins contain its certificate.
    #[test]
    fn the_test_ca_never_changes() {
        let issuers = test_issuers();
        let issuer = issuers(&Parameters::new(Map::new()), Utc::now()).unwrap();
        let digest = digest::digest(&digest::SHA256, issuer.certificate());
        assert_eq!(
            format!("{digest:?}"),
            "SHA256:5dedffebcca868ee748e552e9d37ba19ea3dcb2838918e059a35abe7ccc8884a"
        );
    }
}
