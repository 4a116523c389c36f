//! Reading, checking and issuing certificates.

use std::{borrow::Cow, sync::Arc};

use chrono::{DateTime, Utc};

use crate::{
    Secret,
    certificate::{CertificateDetails, CertificateFacts, IssuanceFacts, IssuanceRules},
};

/// X.509: reading and checking certificates, and creating issuers.
pub trait Certificates: Send + Sync {
    /// Reads the facts of the first certificate of a PEM text.
    fn facts(&self, certificate: &str) -> Result<CertificateFacts, CertificateError>;

    /// Returns the properties of the first certificate of a PEM text that an issuer of a similar certificate must allow.
    fn issuance_facts(&self, certificate: &str) -> Result<IssuanceFacts, CertificateError>;

    /// Checks the value of a certificate to set. A rule applies only if the fields that it concerns are present:
    ///
    /// - Every certificate must be well formed.
    /// - `ca` must be a CA certificate and must have signed `certificate`.
    /// - `private_key` must belong to `certificate`.
    /// - RSA keys must not be too short.
    fn check_fields(
        &self,
        fields: CertificateFields<'_>,
    ) -> Result<CheckedFields, CertificateError>;

    /// Returns the length of the RSA key in a PEM text, public or private, in bits; `None` for any other text.
    fn rsa_bits(&self, key: &str) -> Option<u32>;

    /// Checks a stored value like [`Certificates::check_fields`], except the length of keys, which older releases did not
    /// check.
    fn check_stored(
        &self,
        fields: CertificateFields<'_>,
    ) -> Result<Option<CertificateFacts>, CertificateError>;

    /// Checks a generated certificate. It must be well formed, and the private key must belong to it. `ca` must be the
    /// issuer's certificate, or the certificate itself if there is no issuer. If there is one, it must
    /// have signed the certificate in this call.
    fn check_generated(
        &self,
        fields: CertificateFields<'_>,
        issuer: Option<&dyn CertificateIssuer>,
    ) -> Result<CertificateFacts, CertificateError>;

    /// Creates an issuer for one call from the certificate and the private key of a CA.
    ///
    /// # Errors
    /// If the certificate is malformed or not a CA certificate, or the key does not belong to it or can't sign.
    fn issuer(
        &self,
        certificate: &str,
        private_key: &Secret,
        rules: IssuanceRules,
    ) -> Result<Arc<dyn CertificateIssuer>, CertificateError>;

    /// Returns the contents of the first certificate of a PEM text, or `None` if the text contains no well-formed certificate.
    fn details(&self, pem: &str) -> Option<CertificateDetails>;

    /// Returns each certificate of a PEM text as a separate PEM text, without any other text or key.
    fn certificates_in(&self, pem: &str) -> Vec<String>;

    /// Returns the PEM text of a CA as other credentials may contain it: without private keys, which callers may have set in the
    /// same text. A text without a key is returned unchanged.
    fn without_keys(&self, pem: String) -> String {
        if pem.contains(PRIVATE_KEY) {
            self.certificates_in(&pem).concat()
        } else {
            pem
        }
    }

    /// Returns the first certificate of a PEM text, in DER; `None` if it contains no certificate.
    fn first_certificate(&self, pem: &str) -> Option<Vec<u8>>;

    /// Returns whether two PEM texts contain the same first certificate; `false` if either contains no certificate.
    fn is_same_certificate(&self, one: &str, other: &str) -> bool {
        let one = self.first_certificate(one);
        one.is_some() && one == self.first_certificate(other)
    }
}

/// A part of the label of each private key (RFC 7468).
const PRIVATE_KEY: &str = "PRIVATE KEY";

/// The fields of a certificate's value.
#[derive(Clone, Copy, Default)]
pub struct CertificateFields<'a> {
    /// The issuing CA certificate, in PEM.
    pub ca: Option<&'a str>,
    /// The certificate, in PEM.
    pub certificate: Option<&'a str>,
    /// Its private key, in PEM.
    pub private_key: Option<&'a Secret>,
    /// Whether `ca` is from the stored credential that the caller named as `ca_name`. If so, `ca` is stored unchanged,
    /// the certificate does not count as self-signed, and errors name the field `ca_name`.
    pub ca_is_stored: bool,
}

/// The checked fields to store. PEM text is rewritten if other programs might not read it; otherwise fields are unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedFields {
    /// The issuing CA certificate, in PEM.
    pub ca: Option<String>,
    /// The end of the CA certificate's validity.
    pub ca_expires_at: Option<DateTime<Utc>>,
    /// The certificate, in PEM.
    pub certificate: Option<String>,
    /// Its private key, in PEM.
    pub private_key: Option<Secret>,
    /// The facts of the certificate.
    pub facts: Option<CertificateFacts>,
    /// The length of the shortest RSA key in the value, in bits.
    pub rsa_bits: Option<u32>,
}

/// A violated rule for certificates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {rule}")]
pub struct CertificateError {
    /// The field that violates the rule.
    pub field: &'static str,
    /// The rule, as the predicate of a sentence whose subject is the field.
    pub rule: Cow<'static, str>,
}

/// The rule that a leaf certificate violates if a CA certificate is required.
pub const NOT_AN_AUTHORITY: &str = "is not a CA certificate";

/// A CA that signs for one call. Does not expose its private key.
pub trait CertificateIssuer: Send + Sync {
    /// Returns its certificate, in DER.
    fn certificate(&self) -> &[u8];

    /// Returns its subject in DER, byte for byte as in its certificate.
    fn subject(&self) -> &[u8];

    /// Returns the octets of its subject key identifier extension, or `None`.
    fn subject_key_identifier(&self) -> Option<&[u8]>;

    /// Returns its signature algorithm, a DER `AlgorithmIdentifier`.
    fn signature_algorithm(&self) -> &[u8];

    /// Checks a DER `TBSCertificate` (RFC 5280) against the rules of this call, signs it and returns the certificate, in DER. Refuses
    /// all bodies after the first.
    fn sign_certificate(&self, tbs_certificate: &[u8]) -> Result<Vec<u8>, SigningError>;

    /// Returns the signed certificate in DER, and its facts, or `None` before it is signed. An issuer signs at most one certificate.
    fn signed(&self) -> Option<(&[u8], &CertificateFacts)>;
}

/// The reason why an issuer refused to sign a certificate body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the issuer refused to sign: {0}")]
pub struct SigningError(pub &'static str);
