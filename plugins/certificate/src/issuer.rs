//! The interface to a signing CA.

/// A signing CA. The fields mirror the WIT resource `keywright:signing/issuer.issuer`.
pub struct Issuer<'a> {
    /// The CA certificate, in DER.
    pub certificate: Vec<u8>,
    /// The subject of the CA certificate, in DER, byte for byte.
    pub subject: Vec<u8>,
    /// The octets of the subject key identifier, if the CA certificate has one.
    pub subject_key_identifier: Option<Vec<u8>>,
    /// The signature algorithm, in DER.
    pub signature_algorithm: Vec<u8>,
    /// Signs a body and returns the certificate (DER).
    pub sign_certificate: Sign<'a>,
}

/// Why a CA did not sign. The cases mirror the WIT variant `keywright:signing/issuer.signing-error`.
pub enum SigningError {
    /// The body breaks this rule, which may be shown to the caller.
    Refused(String),
    /// Any other cause, for the log.
    Other(String),
}

/// The type of [`Issuer::sign_certificate`].
pub type Sign<'a> = Box<dyn Fn(&[u8]) -> Result<Vec<u8>, SigningError> + 'a>;
