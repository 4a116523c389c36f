//! Errors of pulls and pushes.

use crate::{Digest, SignatureRefused, error_message::ErrorMessage};

/// Why a pull or push failed, worded for operators.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The registry requires a login, and rejected the configured credentials or none are configured.
    #[error(
        "the registry denies {} access to {resource} (status 401{message}); check the user and password configured for it",
        if *.has_credentials { "the configured user" } else { "anonymous users" }
    )]
    Unauthorized {
        /// The requested resource.
        resource: &'static str,
        /// Whether credentials are configured for the registry.
        has_credentials: bool,
        /// The registry's error message.
        message: ErrorMessage,
    },
    /// The registry requires a kind of authentication that this crate does not support.
    #[error("the registry requires an unsupported kind of authentication: {0}")]
    ChallengeUnknown(&'static str),
    /// The received bytes have another digest than expected.
    #[error(
        "{resource} has the digest {found}, expected {expected}; the registry's data is corrupt or was tampered with"
    )]
    DigestDiffers {
        /// The received resource.
        resource: &'static str,
        /// The expected digest.
        expected: Digest,
        /// The actual digest.
        found: Digest,
    },
    /// The received bytes have another size than their descriptor states.
    #[error(
        "{resource} has {found} bytes, but its descriptor states {expected}; push the component again with a tool that writes correct sizes"
    )]
    SizeDiffers {
        /// The received resource.
        resource: &'static str,
        /// The size in the descriptor, in bytes.
        expected: u64,
        /// The actual size, in bytes.
        found: usize,
    },
    /// The deadline passed.
    #[error("it took longer than {seconds} s")]
    TooSlow {
        /// The deadline, in seconds.
        seconds: u64,
    },
    /// A response exceeds its size limit.
    #[error("{resource} is larger than {bytes_max} bytes")]
    TooLarge {
        /// The received resource.
        resource: &'static str,
        /// The size limit, in bytes.
        bytes_max: u64,
    },
    /// A manifest is malformed, or does not describe a component.
    #[error("the manifest {0}")]
    ManifestMalformed(&'static str),
    /// The registry does not have the resource.
    #[error(
        "{resource} is not in the registry (status 404{message}); check the repository and the digest"
    )]
    NotFound {
        /// The requested resource.
        resource: &'static str,
        /// The registry's error message.
        message: ErrorMessage,
    },
    /// The registry responded with an unexpected status.
    #[error("the registry responded to the request for {resource} with status {status}{message}")]
    Answered {
        /// The requested resource.
        resource: &'static str,
        /// The status.
        status: u16,
        /// The registry's error message.
        message: ErrorMessage,
    },
    /// The registry's address for an upload is missing, malformed, or less protected than the registry itself.
    #[error("the registry returned no usable address for the upload")]
    UploadAddress,
    /// The signature is missing or could not be verified.
    #[error(transparent)]
    Signature(#[from] SignatureRefused),
    /// The registry is unreachable, or closed the connection in the middle of a response.
    #[error("the registry does not answer")]
    Unreachable(#[source] reqwest::Error),
}

impl Fault {
    /// Returns whether the signature is missing or could not be verified.
    #[must_use]
    pub fn is_of_signature(&self) -> bool {
        matches!(self, Self::Signature(_))
    }
}

impl From<reqwest::Error> for Fault {
    /// Omits addresses, because those of redirects and uploads can contain credentials.
    fn from(error: reqwest::Error) -> Self {
        Self::Unreachable(error.without_url())
    }
}
