//! Certificates that another tool made, as callers bring them.

#![expect(
    clippy::expect_used,
    reason = "a test ends when what it needs is not there"
)]

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_RSA_SHA256, SignatureAlgorithm,
};

/// A certificate and its private key.
pub(crate) struct MadeElsewhere {
    parameters: CertificateParams,
    key: KeyPair,
    /// The certificate, PEM.
    pub(crate) certificate: String,
    /// The private key, PEM (PKCS#8).
    pub(crate) private_key: String,
}

/// How long these certificates are valid, in days.
pub(crate) const DURATION_DAYS: u64 = 400;

/// A certificate authority that signed itself.
pub(crate) fn authority(common_name: &str) -> MadeElsewhere {
    self_signed(as_authority(parameters(common_name)), rsa_key())
}

/// A certificate authority that signed itself and is valid for so many days.
pub(crate) fn authority_for_days(common_name: &str, days: u64) -> MadeElsewhere {
    authority_for_hours(common_name, days * 24)
}

/// A certificate authority that signed itself and is valid for so many hours.
pub(crate) fn authority_for_hours(common_name: &str, hours: u64) -> MadeElsewhere {
    authority_changed(common_name, |parameters| {
        parameters.not_after = parameters.not_before + Duration::from_hours(hours);
    })
}

/// A certificate authority that signed itself, with other contents than usual.
pub(crate) fn authority_changed(
    common_name: &str,
    change: impl FnOnce(&mut CertificateParams),
) -> MadeElsewhere {
    let mut parameters = as_authority(parameters(common_name));
    change(&mut parameters);
    self_signed(parameters, rsa_key())
}

/// A certificate authority that signed itself, with a key of this algorithm.
pub(crate) fn authority_with(
    common_name: &str,
    algorithm: &'static SignatureAlgorithm,
) -> MadeElsewhere {
    let key = KeyPair::generate_for(algorithm).expect("a key");
    self_signed(as_authority(parameters(common_name)), key)
}

/// A leaf that signed itself.
pub(crate) fn self_signed_leaf(common_name: &str) -> MadeElsewhere {
    self_signed(parameters(common_name), rsa_key())
}

/// A leaf that signed itself with a key of this algorithm.
pub(crate) fn self_signed_leaf_with(
    common_name: &str,
    algorithm: &'static SignatureAlgorithm,
) -> MadeElsewhere {
    let key = KeyPair::generate_for(algorithm).expect("a key");
    self_signed(parameters(common_name), key)
}

/// A private key that belongs to no certificate, PEM (PKCS#8).
pub(crate) fn another_private_key() -> String {
    rsa_key().serialize_pem()
}

impl MadeElsewhere {
    /// A leaf that this one signed.
    pub(crate) fn sign_leaf(&self, common_name: &str) -> Self {
        self.sign(parameters(common_name), rsa_key())
    }

    /// A leaf that this one signed, with other contents than usual.
    pub(crate) fn sign_leaf_with(
        &self,
        common_name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Self {
        let mut parameters = parameters(common_name);
        change(&mut parameters);
        self.sign(parameters, rsa_key())
    }

    /// A certificate authority that this one signed.
    pub(crate) fn sign_authority(&self, common_name: &str) -> Self {
        self.sign(as_authority(parameters(common_name)), rsa_key())
    }

    /// Another certificate for the same key under this name, signed by itself and valid for a day longer.
    pub(crate) fn renewed_as(&self, common_name: &str) -> Self {
        let mut parameters = self.parameters.clone();
        parameters.not_after += Duration::from_hours(24);
        parameters.distinguished_name = name(common_name);
        let key = KeyPair::from_pem(&self.private_key).expect("the key");
        self_signed(parameters, key)
    }

    fn sign(&self, parameters: CertificateParams, key: KeyPair) -> Self {
        let issuer = Issuer::from_params(&self.parameters, &self.key);
        let certificate = parameters.signed_by(&key, &issuer).expect("a certificate");
        Self {
            certificate: certificate.pem(),
            private_key: key.serialize_pem(),
            parameters,
            key,
        }
    }
}

fn self_signed(parameters: CertificateParams, key: KeyPair) -> MadeElsewhere {
    let certificate = parameters.self_signed(&key).expect("a certificate");
    MadeElsewhere {
        certificate: certificate.pem(),
        private_key: key.serialize_pem(),
        parameters,
        key,
    }
}

fn rsa_key() -> KeyPair {
    KeyPair::generate_for(&PKCS_RSA_SHA256).expect("a key")
}

fn parameters(common_name: &str) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = name(common_name);
    parameters.not_before = rcgen::date_time_ymd(2026, 1, 1);
    parameters.not_after = parameters.not_before + Duration::from_hours(DURATION_DAYS * 24);
    parameters
}

fn as_authority(mut parameters: CertificateParams) -> CertificateParams {
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    parameters
}

fn name(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}
