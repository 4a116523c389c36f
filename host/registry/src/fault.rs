//! What can go wrong with a registry.

use crate::{Digest, SignatureRefused, told::Told};

/// Why something could not be pulled or pushed, in words for an operator.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The registry wants to know who is asking, and does not take who that is.
    #[error(
        "the registry refuses {what} to {} (status 401{told}); see to the user and the password that are configured for it",
        if *.has_credentials { "the configured user" } else { "everybody" }
    )]
    Unauthorized {
        /// What was asked for.
        what: &'static str,
        /// Whether there are credentials for it.
        has_credentials: bool,
        /// What it says.
        told: Told,
    },
    /// The registry asks for a login in a way that is not known here.
    #[error("the registry asks for a login in a way that this program does not know: {0}")]
    ChallengeUnknown(&'static str),
    /// The digest of what came is another.
    #[error("{what} has the digest {found} and not {expected}; the registry is damaged or lies")]
    DigestDiffers {
        /// What came.
        what: &'static str,
        /// The digest that it must have.
        expected: Digest,
        /// The one that it has.
        found: Digest,
    },
    /// The size in a descriptor is not that of what it describes.
    #[error(
        "{what} has {found} bytes and its descriptor says {expected}; push the component again by a tool that writes true sizes"
    )]
    SizeDiffers {
        /// What came.
        what: &'static str,
        /// The size in the descriptor, in bytes.
        expected: u64,
        /// How many bytes came.
        found: usize,
    },
    /// It took too long.
    #[error("it took longer than {seconds} s")]
    TooSlow {
        /// How long it may take.
        seconds: u64,
    },
    /// Something is larger than it may be.
    #[error("{what} is larger than {bytes_max} bytes")]
    TooLarge {
        /// What.
        what: &'static str,
        /// The most that it may have.
        bytes_max: u64,
    },
    /// A manifest is none of a component.
    #[error("the manifest {0}")]
    ManifestMalformed(&'static str),
    /// It is not there.
    #[error(
        "{what} is not in the registry (status 404{told}); see to the repository and the digest"
    )]
    NotFound {
        /// What.
        what: &'static str,
        /// What the registry says.
        told: Told,
    },
    /// The registry answers otherwise than it should.
    #[error("the registry answered the request for {what} with the status {status}{told}")]
    Answered {
        /// What was asked for.
        what: &'static str,
        /// The status.
        status: u16,
        /// What it says.
        told: Told,
    },
    /// The registry says where an upload goes to, and it is no such place.
    #[error("the registry gives no usable address for the upload")]
    UploadAddress,
    /// The signature is not as it must be.
    #[error(transparent)]
    Signature(#[from] SignatureRefused),
    /// The registry can't be reached, or ends in the middle of an answer.
    #[error("the registry does not answer")]
    Unreachable(#[source] reqwest::Error),
}

impl Fault {
    /// Whether it is the signature that is not as it must be.
    #[must_use]
    pub fn is_of_signature(&self) -> bool {
        matches!(self, Self::Signature(_))
    }
}

impl From<reqwest::Error> for Fault {
    /// Addresses are left out: those of redirections and uploads can hold credentials.
    fn from(error: reqwest::Error) -> Self {
        Self::Unreachable(error.without_url())
    }
}
