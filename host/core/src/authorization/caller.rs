//! The caller of a request.

use std::sync::Arc;

use super::trail::Trail;
use crate::{Failure, permission::Actor, response_memory::ResponseReservation};

/// The authenticated caller of a request.
#[derive(Debug)]
pub struct Caller {
    actor: Actor,
    authentication: Authentication,
    trail: Trail,
    response: Option<Arc<ResponseReservation>>,
}

/// The means by which a caller was authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// A client certificate.
    ClientCertificate {
        /// The part of the certificate's subject that identifies the application: `app:<id>`.
        subject: String,
    },
    /// A bearer token.
    Token {
        /// The token's subject, as issued by the identity provider.
        subject: String,
    },
}

impl Caller {
    /// Creates the caller of a new request.
    #[must_use]
    pub fn new(actor: Actor, authentication: Authentication) -> Self {
        Self {
            actor,
            authentication,
            trail: Trail::default(),
            response: None,
        }
    }

    /// Sets the memory reservation of the response. Without one, its memory is not limited.
    #[must_use]
    pub fn with_response(self, response: Arc<ResponseReservation>) -> Self {
        Self {
            response: Some(response),
            ..self
        }
    }

    /// Reserves more bytes of memory for the response, before the data is read.
    ///
    /// # Errors
    /// [`Failure::ResponseTooLarge`]; or [`Failure::NoResponseMemory`] or [`Failure::NoResponseMemoryOfActor`] if other
    /// responses currently use too much memory.
    pub fn reserve(&self, bytes: usize) -> Result<(), Failure> {
        match &self.response {
            Some(response) => Ok(response.reserve(bytes)?),
            None => Ok(()),
        }
    }

    /// Returns the caller as an actor of permissions.
    #[must_use]
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Returns the means of authentication.
    #[must_use]
    pub fn authentication(&self) -> &Authentication {
        &self.authentication
    }

    /// Returns the audit trail of the request.
    #[must_use]
    pub fn trail(&self) -> &Trail {
        &self.trail
    }
}
