use std::sync::Arc;

use keywright_core::credential::KnownType;

use crate::{
    login::Login,
    page::{Failure, PageError},
    ports::ConsolePorts,
    session::Sessions,
};

/// The state that all handlers share.
pub(crate) struct State {
    pub(crate) ports: ConsolePorts,
    pub(crate) origin: String,
    pub(crate) login: Arc<Login>,
    pub(crate) sessions: Sessions,
}

impl State {
    /// Returns the page of a failure. Failures of use cases have the status and the message of the API.
    pub(crate) fn error(&self, failure: impl Into<Failure>) -> PageError {
        match failure.into() {
            Failure::Page(error) => error,
            Failure::UseCase(failure) => {
                let (status, message) = (self.ports.status_and_message)(failure);
                PageError::new(status, &message)
            }
        }
    }

    /// Returns the credential type with this name, if this server has it.
    pub(crate) fn known_type(&self, name: &str) -> Option<KnownType> {
        let types = self.ports.credentials.types.all();
        types.into_iter().find(|known| known.name == name)
    }
}
