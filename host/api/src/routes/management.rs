//! Read-only mode, the actors that may switch it, and `/management`, which reads and switches it. [`ServerMode::refusal`]
//! authorizes the caller of `/management` beforehand.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    extract::State,
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};
use keywright_core::authorization::Caller;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::interpolation::INTERPOLATE;
use crate::{
    Api, Connection,
    description::LenientBoolean,
    request::StrictJson,
    response::{ApiError, rendered},
    route::{Access::Identity, Call, Route, route},
};

pub(crate) fn get_route() -> Route {
    route!(GET MANAGEMENT, Identity, "GET_MANAGEMENT", get,
        "getServerMode", Operations, "Returns whether the server is in read-only mode",
        403 => "The caller is on another machine, and not in `management.actors`.")
    .response::<ManagementResponse>(200, "The mode.")
    .response_example("writing", json!({"read_only_mode": false}))
}

pub(crate) fn set_route() -> Route {
    route!(POST MANAGEMENT, Identity, "SET_MANAGEMENT", set,
        "setServerMode", Operations, "Switches read-only mode on or off",
        403 => "The caller is not in `management.actors`.",
        422 => "The body has an unknown field.")
        .text("The mode applies only to this server process, and is off when the process starts. Writes in progress are completed.")
        .body::<ManagementRequest>()
        .request_example("read-only", json!({"read_only_mode": true}))
        .response::<ManagementResponse>(200, "The new mode.")
        .response_example("read-only", json!({"read_only_mode": true}))
}

async fn get(State(api): State<Arc<Api>>) -> Result<Response, ApiError> {
    rendered(&ManagementResponse {
        read_only_mode: api.server_mode.read_only().is_on(),
    })
}

/// The requested mode.
#[derive(Deserialize, JsonSchema)]
#[serde(rename = "SetServerModeRequest", deny_unknown_fields)]
struct ManagementRequest {
    /// Whether to reject requests that could write.
    #[schemars(with = "LenientBoolean")]
    read_only_mode: bool,
}

async fn set(
    Call { api, caller }: Call,
    StrictJson(request): StrictJson<ManagementRequest>,
) -> Result<Response, ApiError> {
    let read_only_mode = request.read_only_mode;
    let details = json!({"read_only_mode": read_only_mode});
    caller.trail().set_details(details);
    api.server_mode.read_only().switch(read_only_mode);
    tracing::warn!(
        actor = caller.actor().as_str(),
        read_only_mode,
        "switched read-only mode"
    );
    rendered(&ManagementResponse { read_only_mode })
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ServerMode")]
struct ManagementResponse {
    /// Whether requests that could write get status 503.
    read_only_mode: bool,
}

/// The server's mode, and the actors that may switch it.
#[derive(Debug, Default)]
pub struct ServerMode {
    actors: HashSet<String>,
    read_only: ReadOnlyMode,
}

impl ServerMode {
    /// Creates a mode that accepts writes. Only `actors` may switch it.
    pub fn new(actors: impl IntoIterator<Item = String>) -> Self {
        Self {
            actors: actors.into_iter().collect(),
            read_only: ReadOnlyMode::default(),
        }
    }

    /// Returns the state of read-only mode. Clone it to pause background work in this mode.
    pub fn read_only(&self) -> &ReadOnlyMode {
        &self.read_only
    }

    /// Returns the reason to refuse a request, if any. At `/management`, callers that may not manage the server are refused.
    /// In read-only mode, all requests are refused unless [`is_available_read_only`] accepts them.
    pub(crate) fn refusal(
        &self,
        method: &Method,
        route: &str,
        caller: Option<&Caller>,
        connection: Option<&Connection>,
    ) -> Option<ApiError> {
        if route == MANAGEMENT
            && let Some(refusal) = self.management_refusal(method, caller, connection)
        {
            return Some(ApiError::new(StatusCode::FORBIDDEN, refusal));
        }
        let is_refused = self.read_only.is_on() && !is_available_read_only(method, route);
        is_refused.then(ApiError::read_only)
    }

    /// Returns the response for a method that a path does not support: status 404 without a body.
    ///
    /// OPTIONS in read-only mode is an exception: it gets status 503 at each path, as in CredHub.
    pub(crate) fn no_such_method(&self, method: &Method) -> Response {
        if *method == Method::OPTIONS && self.read_only.is_on() {
            return ApiError::read_only().into_response();
        }
        StatusCode::NOT_FOUND.into_response()
    }

    /// Returns the reason to refuse a request to `/management`, if any. The configured actors may read and switch the mode.
    /// Other callers may only read it, from the server's own machine.
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
                "the caller may not switch read-only mode: its actor is not in management.actors of the server's configuration",
            );
        }
        (!connection.is_some_and(is_local)).then_some(
            "the caller may not query read-only mode from another machine: its actor is not in management.actors of the server's configuration",
        )
    }
}

/// Whether the server refuses requests that could write. The mode applies to this process only, and is off at start-up.
/// Clones share the mode.
#[derive(Clone, Debug, Default)]
pub struct ReadOnlyMode(Arc<AtomicBool>);

impl ReadOnlyMode {
    /// Returns whether the mode is on.
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Switches the mode on or off. Writes in progress are completed.
    pub(crate) fn switch(&self, is_on: bool) {
        self.0.store(is_on, Ordering::SeqCst);
    }
}

pub(crate) const MANAGEMENT: &str = "/management";

/// Returns whether a request is also handled in read-only mode. Interpolation only reads, although its method is POST.
fn is_available_read_only(method: &Method, route: &str) -> bool {
    method == Method::GET || (method == Method::POST && [MANAGEMENT, INTERPOLATE].contains(&route))
}

/// Returns whether both ends of a connection have the same address, so the client is on the same machine.
fn is_local(connection: &Connection) -> bool {
    connection.peer.ip().to_canonical() == connection.local.ip().to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_local_if_both_ends_have_the_same_address() {
        for (peer, local, is_expected_local) in [
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
            assert_eq!(is_local(&connection), is_expected_local, "{peer} {local}");
        }
    }
}
