//! Who is asking, and what it has asked for so far.

use std::sync::Arc;

use crate::{
    Failure, authorization::Trail, permission::Actor, response_memory::ResponseReservation,
};

/// Who makes a request, proven.
#[derive(Debug)]
pub struct Caller {
    actor: Actor,
    authentication: Authentication,
    trail: Trail,
    response: Option<Arc<ResponseReservation>>,
}

/// How a caller has proven who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// By a client certificate; `subject` is the part of its subject that identifies the application.
    ClientCertificate {
        /// `app:<id>`.
        subject: String,
    },
    /// By a bearer token; `subject` is whom the token was issued to, as the identity provider calls it.
    Token {
        /// The token's subject.
        subject: String,
    },
}

impl Caller {
    /// A caller at the beginning of its request.
    #[must_use]
    pub fn new(actor: Actor, authentication: Authentication) -> Self {
        Self {
            actor,
            authentication,
            trail: Trail::default(),
            response: None,
        }
    }

    /// The same caller, whose response takes its memory from this reservation. Without one, its memory is not limited.
    #[must_use]
    pub fn with_response(self, response: Arc<ResponseReservation>) -> Self {
        Self {
            response: Some(response),
            ..self
        }
    }

    /// Reserves so many more bytes of memory for the response, before what they hold is read.
    ///
    /// # Errors
    /// [`Failure::ResponseTooLarge`], or [`Failure::NoResponseMemory`] if other responses take too much at present.
    pub fn reserve(&self, bytes: usize) -> Result<(), Failure> {
        match &self.response {
            Some(response) => Ok(response.reserve(bytes)?),
            None => Ok(()),
        }
    }

    /// Who it is, as permissions name it.
    #[must_use]
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    /// How it has proven that.
    #[must_use]
    pub fn authentication(&self) -> &Authentication {
        &self.authentication
    }

    /// What it has touched so far.
    #[must_use]
    pub fn trail(&self) -> &Trail {
        &self.trail
    }
}
