//! Envelope encryption, X.509 parsing and checks, and the issuer that signs certificates.
//!
//! [`KeyRing`] encrypts what is stored, bound to the place where it stands. It is what [`Recognition`] makes of the keys of the
//! configuration and the records of those that were ever active.
//! [`X509Certificates`] implements `Certificates`: it reads certificates, holds what callers set and guests make against the
//! rules, and lends issuers. An issuer signs a certificate body only when it keeps every rule in `certificate/issuer_rules.rs`.
//!
//! To add a rule for what an issuer signs: write it as one more row of the table there, with its words, and give it a row in
//! the test that breaks each rule once. To add an algorithm of keys: add a variant to `SigningKey`, with its way to parse, to
//! sign and to be named in DER.
//!
//! Nothing here does I/O but ask the operating system for randomness. The server stores what has to be stored, and brings the
//! `KeyManagement` that unwraps keys.

mod certificate;
mod key_ring;

pub use certificate::{
    TBS_CERTIFICATE_BYTES_MAX, X509Certificates, client_authority_facts, client_certificate_facts,
    may_issue_for_clients,
};
pub use key_ring::{
    ComparisonFailed, ConfiguredKey, ConfiguredKeys, DerivationFailed, ENCRYPTIONS_PER_KEY_MAX,
    ENCRYPTIONS_PER_KEY_WARNED, KeyDerivation, KeyRecord, KeyRing, KeySource, KeysRefused,
    NoStoredValueOpens, PASSWORD_ITERATIONS_MAX, PASSWORD_ITERATIONS_MIN, PasswordDerivation,
    RawKey, RawKeyMalformed, Recognition, RecordNotMade, WRAPPED_KEY_BYTES_MAX, WrappingKey,
};
