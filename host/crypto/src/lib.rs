//! Envelope encryption, X.509 parsing and checks, and the signing of certificates.
//!
//! [`KeyRing`] encrypts stored values and binds them to their record. [`Recognition`] creates it from the configured keys and the
//! records of all keys that were ever active.
//! [`X509Certificates`] implements `Certificates`: it parses certificates, checks the values that callers set and guests generate,
//! and creates issuers. An issuer signs a certificate body only if it follows every rule in `certificate/issuer.rs`.
//!
//! To add a rule for issuers, add it to the list there, and a row to the test that breaks each rule once. To add a key
//! algorithm, add a variant to `SigningKey` with its parsing, signing and DER identifiers.
//!
//! The crate does no I/O except reading randomness from the operating system. The server stores the records, and provides the
//! `KeyManagement` that unwraps keys.

mod certificate;
mod key_ring;

pub use certificate::{
    X509Certificates, client_authority_facts, client_certificate_facts, may_issue_for_clients,
};
pub use key_ring::{
    ComparisonError, ConfiguredKey, ConfiguredKeys, DerivationError, ENCRYPTIONS_PER_KEY_MAX,
    ENCRYPTIONS_PER_KEY_WARNED, KeyRing, KeyRingError, KeySource, NoMatchingKeyError,
    PASSWORD_ITERATIONS_MAX, PASSWORD_ITERATIONS_MIN, RawKey, RawKeyError, Recognition,
    RecordError, WRAPPED_KEY_BYTES_MAX, WrappingKey,
};
