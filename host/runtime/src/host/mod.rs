//! What the host gives to guests: randomness, issuers that sign, and somebody who reads their notes.

pub(crate) mod notes;
pub(crate) mod random;
pub(crate) mod signing;

/// Why the host ended a guest's call to it, and the guest with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HostRefusal {
    /// The guest used an issuer that it was not lent.
    #[error("the guest used an issuer that it was not lent")]
    IssuerNotLent,
    /// The guest asked for more random bytes than one call gives.
    #[error("the guest asked for {0} random bytes at once")]
    RandomBytesExceeded(u64),
    /// There is no randomness to be had.
    #[error(transparent)]
    RandomUnavailable(#[from] random::RandomUnavailable),
}
