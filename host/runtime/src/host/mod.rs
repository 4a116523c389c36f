//! The host's interfaces for guests: random bytes, signing by issuers, and notes.

pub(crate) mod notes;
pub(crate) mod random;
pub(crate) mod signing;

/// The reason why the host trapped a guest during a host call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HostRefusal {
    /// The guest used an issuer handle that the host did not pass to it.
    #[error("the guest used an issuer that it did not receive")]
    IssuerNotLent,
    /// The guest requested more random bytes than the limit of a call.
    #[error("the guest requested {0} random bytes in one call")]
    RandomBytesExceeded(u64),
    /// The random source failed.
    #[error(transparent)]
    RandomUnavailable(#[from] random::RandomUnavailable),
}
