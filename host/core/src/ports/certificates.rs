//! Reading certificates, and lending issuers.

use std::{borrow::Cow, sync::Arc};

use chrono::{DateTime, Utc};

use crate::{
    Secret,
    certificate::{CertificateFacts, IssuanceFacts, IssuanceRules},
};

/// X.509: reading certificates, checking them, and lending issuers.
pub trait Certificates: Send + Sync {
    /// Reads the first certificate of a PEM text.
    ///
    /// # Errors
    /// When it is not a certificate.
    fn facts(&self, certificate: &str) -> Result<CertificateFacts, CertificateRefused>;

    /// What it takes to issue a certificate like the first one of a PEM text.
    ///
    /// # Errors
    /// When it is not a certificate.
    fn issuance_facts(&self, certificate: &str) -> Result<IssuanceFacts, CertificateRefused>;

    /// Checks what a caller sets: that every certificate is well formed, that `ca` is an authority and signed the
    /// certificate, that the private key is its own, and that no RSA key is too short. Absent members are not checked.
    ///
    /// # Errors
    /// Which member breaks which rule.
    fn check_members(
        &self,
        members: CertificateMembers<'_>,
    ) -> Result<CheckedMembers, CertificateRefused>;

    /// Returns the length of the RSA key in a PEM text, public or private, in bits; `None` for any other text.
    fn rsa_bits(&self, key: &str) -> Option<u32>;

    /// Checks a stored value as far as it can be held against itself: what [`Certificates::check_members`] checks but for
    /// the length of keys, which an older release did not check.
    ///
    /// # Errors
    /// Which member breaks which rule.
    fn check_stored(
        &self,
        members: CertificateMembers<'_>,
    ) -> Result<Option<CertificateFacts>, CertificateRefused>;

    /// Checks a generated certificate: that it parses, that its private key is its own, and that `ca` is the issuer's
    /// certificate, or the certificate itself when there is no issuer.
    ///
    /// # Errors
    /// Which member breaks which rule.
    fn check_generated(
        &self,
        members: CertificateMembers<'_>,
        issuer: Option<&dyn CertificateIssuer>,
    ) -> Result<CertificateFacts, CertificateRefused>;

    /// An issuer for one call, out of an authority's certificate and private key.
    ///
    /// # Errors
    /// When the certificate is malformed or no authority's, or the key is not its own or can't sign.
    fn issuer(
        &self,
        certificate: &str,
        private_key: &Secret,
        rules: IssuanceRules,
    ) -> Result<Arc<dyn CertificateIssuer>, CertificateRefused>;

    /// Whether two PEM texts hold the same first certificate; false when either holds none.
    fn is_same_certificate(&self, one: &str, other: &str) -> bool;
}

/// The members of a certificate's value, as far as they are there.
#[derive(Clone, Copy, Default)]
pub struct CertificateMembers<'a> {
    /// The signing authority's certificate, PEM.
    pub ca: Option<&'a str>,
    /// The certificate, PEM.
    pub certificate: Option<&'a str>,
    /// Its private key, PEM.
    pub private_key: Option<&'a Secret>,
    /// Whether `ca` came from a stored credential that the caller named as `ca_name`: then it is stored as it is, another
    /// one signed, and a refusal speaks of `ca_name`.
    pub ca_is_stored: bool,
}

/// Members that keep every rule, as they are to be stored: as they were sent, but for PEM that other programs would not
/// find or read, which is written again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedMembers {
    /// The signing authority's certificate, PEM.
    pub ca: Option<String>,
    /// The end of its validity.
    pub ca_expires_at: Option<DateTime<Utc>>,
    /// The certificate, PEM.
    pub certificate: Option<String>,
    /// Its private key, PEM.
    pub private_key: Option<Secret>,
    /// What the certificate says of itself, if there is one.
    pub facts: Option<CertificateFacts>,
    /// The length of the shortest RSA key that was set, in bits, if there is any.
    pub rsa_bits: Option<u32>,
}

/// A rule that a certificate breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{member} {rule}")]
pub struct CertificateRefused {
    /// The member that breaks it.
    pub member: &'static str,
    /// The rule, so that "member rule" reads as a sentence for an operator.
    pub rule: Cow<'static, str>,
}

/// The rule that a certificate breaks that was to be an authority's.
pub const NOT_AN_AUTHORITY: &str =
    "is not a certificate authority according to its basic constraints";

/// A certificate authority that signs for one call. Its private key stays inside.
pub trait CertificateIssuer: Send + Sync {
    /// Its own certificate, DER.
    fn certificate(&self) -> &[u8];

    /// Its subject, DER, byte for byte as in its certificate.
    fn subject(&self) -> &[u8];

    /// The octets of its subject key identifier extension, if it has one.
    fn subject_key_identifier(&self) -> Option<&[u8]>;

    /// The algorithm it signs with: a DER `AlgorithmIdentifier`.
    fn signature_algorithm(&self) -> &[u8];

    /// Checks a DER `TBSCertificate` (RFC 5280) against the rules of this call and makes the certificate of it, DER.
    ///
    /// # Errors
    /// [`SigningRefused`] with the rule that the body breaks.
    fn sign_certificate(&self, tbs_certificate: &[u8]) -> Result<Vec<u8>, SigningRefused>;

    /// Returns the facts of the certificate that it has signed, or `None` if it has signed none. An issuer signs at most
    /// one certificate.
    fn signed(&self) -> Option<CertificateFacts>;
}

/// A certificate body that an issuer does not sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the issuer refused to sign: {0}")]
pub struct SigningRefused(pub &'static str);
