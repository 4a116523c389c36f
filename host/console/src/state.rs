//! The state that all handlers share, and the request that a handler of a page gets.

use std::sync::Arc;

use axum::{extract::Request, response::Response};
use keywright_core::{authorization::Caller, credential::KnownType};
use maud::{Markup, html};

use crate::{
    login::Login,
    page::{Failure, Page, PageError, see_other},
    ports::ConsolePorts,
    request::is_by_user,
    session::{Session, Sessions},
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
                PageError::new(status, message)
            }
        }
    }

    /// Returns the credential type with this name, if this server has it.
    pub(crate) fn known_type(&self, name: &str) -> Option<KnownType> {
        let types = self.ports.credentials.types.all();
        types.into_iter().find(|known| known.name == name)
    }
}

/// The caller and the session of a request, and the state to handle it.
pub(crate) struct Visit {
    pub(crate) state: Arc<State>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) session: Arc<Session>,
}

impl Visit {
    /// Returns `None` if the request has no session.
    pub(crate) fn of(state: Arc<State>, request: &Request) -> Option<Self> {
        let extensions = request.extensions();
        Some(Self {
            state,
            caller: Arc::clone(extensions.get::<Arc<Caller>>()?),
            session: Arc::clone(extensions.get::<Arc<Session>>()?),
        })
    }

    pub(crate) fn ports(&self) -> &ConsolePorts {
        &self.state.ports
    }

    /// Returns a page of the session: see [`Page::of`].
    pub(crate) fn page<'a>(&'a self, section: &'a str, title: &'a str) -> Page<'a> {
        Page::of(&self.session, section, title)
    }

    /// Returns a redirection to a page that confirms a change.
    pub(crate) fn see_confirmed(&self, address: String, change: String) -> Response {
        let response = see_other(&address);
        *self.session.confirmation.lock() = Some((address, change));
        response
    }

    /// Renders the confirmation that the page at this address has not shown yet, if there is one and the user opened the page.
    pub(crate) fn confirmation(&self, address: &str, request: &Request) -> Markup {
        let mut stored = self.session.confirmation.lock();
        let is_shown = is_by_user(request.method(), request.headers());
        let confirmation = stored.take_if(|(page, _)| is_shown && page == address);
        html! { @if let Some((_, change)) = confirmation { p.done role="status" { (change) } } }
    }
}
