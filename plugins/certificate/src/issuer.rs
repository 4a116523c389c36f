//! The interface to a signing CA.

/// A signing CA. The functions mirror the WIT resource `keywright:signing/issuer.issuer`.
pub trait Issuer {
    /// Returns the CA certificate, DER.
    fn certificate(&self) -> Vec<u8>;

    /// Returns the subject of the CA certificate, DER, byte for byte.
    fn subject(&self) -> Vec<u8>;

    /// Returns the octets of the subject key identifier, if the CA certificate has one.
    fn subject_key_identifier(&self) -> Option<Vec<u8>>;

    /// Returns the signature algorithm, DER.
    fn signature_algorithm(&self) -> Vec<u8>;

    /// Signs a body and returns the certificate, DER.
    ///
    /// # Errors
    ///
    /// The reason why the CA did not sign, for the log.
    fn sign_certificate(&self, tbs_certificate: &[u8]) -> Result<Vec<u8>, String>;
}
