//! What the whole server does or does not do at present, and who may say so.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};

use keywright_core::authorization::Caller;

use crate::{Connection, response::ApiFailure};

/// The server's mode, and who may switch it.
#[derive(Debug, Default)]
pub struct ServerMode {
    actors: HashSet<String>,
    read_only: ReadOnlyMode,
}

impl ServerMode {
    /// A server that takes writes, until one of these actors says otherwise. Without any, no caller can switch the mode.
    pub fn new(actors: impl IntoIterator<Item = String>) -> Self {
        Self {
            actors: actors.into_iter().collect(),
            read_only: ReadOnlyMode::default(),
        }
    }

    /// Read-only mode.
    #[must_use]
    pub fn read_only(&self) -> &ReadOnlyMode {
        &self.read_only
    }

    /// Why a request for a route is refused, if it is: who may not manage the server is refused at `/management`, and in
    /// read-only mode everything but GET is, except what [`goes_on`].
    pub(crate) fn refusal(
        &self,
        method: &Method,
        route: &str,
        caller: Option<&Caller>,
        connection: Option<&Connection>,
    ) -> Option<ApiFailure> {
        if route == MANAGEMENT
            && let Some(refusal) = self.management_refusal(method, caller, connection)
        {
            return Some(ApiFailure::new(StatusCode::FORBIDDEN, refusal));
        }
        let is_refused = self.read_only.is_on() && !goes_on(method, route);
        is_refused.then(ApiFailure::read_only)
    }

    /// Responds for a method that a path does not have: as if the path were not there, and with no body.
    ///
    /// OPTIONS is the exception: other servers of this API have it at each path, and refuse it in read-only mode.
    pub(crate) fn no_such_method(&self, method: &Method) -> Response {
        if *method == Method::OPTIONS && self.read_only.is_on() {
            return ApiFailure::read_only().into_response();
        }
        StatusCode::NOT_FOUND.into_response()
    }

    /// Why a request must not use `/management`. One of the actors may. A caller on the server's own machine may read the
    /// mode.
    fn management_refusal(
        &self,
        method: &Method,
        caller: Option<&Caller>,
        connection: Option<&Connection>,
    ) -> Option<&'static str> {
        if caller.is_some_and(|caller| self.actors.contains(caller.actor().as_str())) {
            return None;
        }
        if !method.is_safe() {
            return Some(
                "the caller may not switch the mode: only the actors in management.actors of the server's configuration may",
            );
        }
        (!connection.is_some_and(is_own)).then_some(
            "only the actors that the server's configuration names may manage it from another machine",
        )
    }
}

/// Whether the server refuses whatever could write. It is a matter of this process alone, and off when it starts. Clones are
/// one mode.
#[derive(Clone, Debug, Default)]
pub struct ReadOnlyMode(Arc<AtomicBool>);

impl ReadOnlyMode {
    /// Whether it is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Switches it on or off. Writes in progress, which were not refused, are finished.
    pub(crate) fn switch(&self, is_on: bool) {
        self.0.store(is_on, Ordering::SeqCst);
    }
}

/// The path at which the server is managed.
pub(crate) const MANAGEMENT: &str = "/management";

/// The path of interpolation, which reads alone, whatever its method says.
pub(crate) const INTERPOLATE: &str = "/api/v1/interpolate";

/// Whether a request is answered in read-only mode too.
fn goes_on(method: &Method, route: &str) -> bool {
    method == Method::GET || (method == Method::POST && [MANAGEMENT, INTERPOLATE].contains(&route))
}

/// Whether a connection comes from the address that it came to, so from the same machine.
fn is_own(connection: &Connection) -> bool {
    connection.peer.ip().to_canonical() == connection.local.ip().to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_own_when_both_ends_have_one_address() {
        for (peer, local, is_its_own) in [
            ("127.0.0.1:50000", "127.0.0.1:8844", true),
            ("10.0.0.1:50000", "10.0.0.1:8844", true),
            ("[::1]:50000", "[::1]:8844", true),
            ("[::ffff:10.0.0.1]:50000", "10.0.0.1:8844", true),
            ("127.0.0.2:50000", "127.0.0.1:8844", false),
            ("127.0.0.1:8844", "10.0.0.1:8844", false),
            ("10.0.0.2:50000", "10.0.0.1:8844", false),
            ("[::1]:50000", "127.0.0.1:8844", false),
        ] {
            let connection = Connection {
                peer: peer.parse().unwrap(),
                local: local.parse().unwrap(),
                client_certificate: None,
            };
            assert_eq!(is_own(&connection), is_its_own, "{peer} {local}");
        }
    }
}
