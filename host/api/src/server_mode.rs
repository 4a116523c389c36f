//! What the whole server does or does not do at present, and who may say so.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    extract::{MatchedPath, Request, State},
    http::{Method, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};

use keywright_core::authorization::Caller;

use crate::{Api, Connection, response::ApiFailure};

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

    /// Why a request must not use `/management`. One of the actors may. A caller on the server's own machine may read the
    /// mode.
    fn refusal(&self, request: &Request) -> Option<&'static str> {
        let extensions = request.extensions();
        let is_named = extensions
            .get::<Arc<Caller>>()
            .is_some_and(|caller| self.actors.contains(caller.actor().as_str()));
        if is_named {
            return None;
        }
        if !request.method().is_safe() {
            return Some(
                "the caller may not switch the mode: only the actors in management.actors of the server's configuration may",
            );
        }
        let is_own = extensions.get::<Connection>().is_some_and(is_own);
        (!is_own).then_some(
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

    /// Switches it on or off. Writes under way, which have passed [`admit`] already, are finished.
    pub(crate) fn switch(&self, is_on: bool) {
        self.0.store(is_on, Ordering::SeqCst);
    }
}

/// What is decided between routing and the reading of a request: who may not manage the server is refused at
/// `/management`, and in read-only mode everything but GET is, except what [`goes_on`].
pub(crate) async fn admit(
    State(api): State<Arc<Api>>,
    route: MatchedPath,
    request: Request,
    next: Next,
) -> Response {
    if route.as_str() == MANAGEMENT
        && let Some(refusal) = api.server_mode.refusal(&request)
    {
        return ApiFailure::new(StatusCode::FORBIDDEN, refusal).into_response();
    }
    if api.server_mode.read_only.is_on() && !goes_on(request.method(), route.as_str()) {
        return ApiFailure::read_only().into_response();
    }
    next.run(request).await
}

/// Answers for a method that a path does not have: as if the path were not there, and with no body.
///
/// OPTIONS is the exception: other servers of this API have it at each path, and refuse it in read-only mode.
pub(crate) async fn no_such_method(State(api): State<Arc<Api>>, method: Method) -> Response {
    if method == Method::OPTIONS && api.server_mode.read_only.is_on() {
        return ApiFailure::read_only().into_response();
    }
    StatusCode::NOT_FOUND.into_response()
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
