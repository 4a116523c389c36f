//! What the plugin needs of a certificate authority.

/// A certificate authority; the functions are those of `keywright:signing/issuer.issuer`.
pub trait Issuer {
    /// Its own certificate, DER.
    fn certificate(&self) -> Vec<u8>;

    /// Its subject, DER, byte for byte as it stands in its certificate.
    fn subject(&self) -> Vec<u8>;

    /// The octets of its subject key identifier, if its certificate has one.
    fn subject_key_identifier(&self) -> Option<Vec<u8>>;

    /// The algorithm with which it signs, DER.
    fn signature_algorithm(&self) -> Vec<u8>;

    /// Signs a body and returns the certificate, DER.
    ///
    /// # Errors
    ///
    /// Why it did not sign, for the log.
    fn sign_certificate(&self, tbs_certificate: &[u8]) -> Result<Vec<u8>, String>;
}
