//! The audit trail: the caller, the resource and the result of each access. The trail never contains a credential's value.
//!
//! An [`AuditedRequest`] covers a request of an authenticated caller, from its authentication to its response. It writes one
//! event per resource that the request accessed, or one event if it accessed no resource. Use cases record each access in
//! the caller's [`Trail`](keywright_core::authorization::Trail) when they check permissions. Each route declares
//! its action; an endpoint with two actions records the action of each request in that trail.
//!
//! The events are written before the response is sent, except for requests that are not admitted, because they access nothing. If
//! the events can't be written, the response is withheld. Until the sink works again, and while too many events are unwritten,
//! requests are refused before they access anything. With [`OnAuditFailure::Continue`], requests proceed instead. A request that
//! is cancelled because its client has disconnected is also audited.
//!
//! Changes that the server itself makes to credentials are also audited: see `retention.rs`.
//!
//! To add a format, add a variant of [`AuditFormat`] and its encoder in `event.rs`. To add a sink, implement [`AuditSink`] in
//! the server.

mod by_actor;
mod event;
mod retention;
mod trail;
mod writer;

use std::{
    borrow::Cow,
    iter,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::{
    extract::Request,
    http::{Method, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use chrono::{DateTime, Utc};
use keywright_core::{
    authorization::{AccessedResource, Account, Authentication, Caller},
    permission::{Actor, Operation, Operations},
};
use serde_json::{Value, json};
use uuid::Uuid;

pub use event::AuditFormat;
pub use trail::{AuditSettings, AuditTrail, OnAuditFailure};
pub use writer::{AppendError, AuditSink};

use crate::{request::OriginalTarget, response::ApiError, route::RequestContext};
use by_actor::UnwrittenError;
use event::{Event, push_line};

/// The second actions of endpoints with two actions. The route declares the first.
pub(crate) mod actions {
    /// A search, at the path for reading.
    pub(crate) const FIND: &str = "FIND";
    /// A regeneration, at the path for generating.
    pub(crate) const REGENERATE: &str = "REGENERATE";
    /// Reading one certificate, at the path for listing all.
    pub(crate) const GET_CERTIFICATE: &str = "GET_CERTIFICATE";
}

/// A request whose events are written to the audit trail, unless its route is not audited.
pub(crate) struct AuditedRequest(Option<Pending>);

struct Pending {
    trail: Arc<AuditTrail>,
    caller: Arc<Caller>,
    facts: RequestFacts,
    /// Whether the request may have accessed something, and its events are not in the trail yet.
    is_open: bool,
}

impl AuditedRequest {
    /// Starts to audit a request, before it accesses anything.
    ///
    /// # Errors
    /// The response if events can't be written. The request must not be handled, and has no event.
    pub(crate) fn begin(
        trail: Option<&Arc<AuditTrail>>,
        context: RequestContext<'_>,
        caller: &Arc<Caller>,
        request: &Request,
    ) -> impl Future<Output = Result<Self, Response>> + Send + use<> {
        let mut pending = trail.and_then(|trail| Pending::new(trail, context, caller, request));
        async move {
            if let Some(pending) = &mut pending {
                pending.trail.ready(pending.actor()).await.map_err(|UnwrittenError| {
                    let error =
                        "the audit trail can't be written at present; the request was not handled";
                    ApiError::unavailable(error, RETRY_AFTER).into_response()
                })?;
                pending.is_open = true;
            }
            Ok(Self(pending))
        }
    }

    /// Writes the events of the request before its response is sent. Returns the response, or a failure if the events could
    /// not be written.
    pub(crate) async fn finish(self, response: Response) -> Response {
        let Some(pending) = self.0 else {
            return response;
        };
        match pending.finish(response.status()).await {
            Ok(()) => response,
            Err(UnwrittenError) => ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the request was handled, but its response is withheld: the audit trail could not be written",
            )
            .into_response(),
        }
    }

    /// Queues the events of a request that accessed nothing. Its response need not wait for them.
    pub(crate) fn finish_later(self, status: StatusCode) {
        if let Some(mut pending) = self.0 {
            pending.is_open = false;
            let (lines, count) = pending.lines(status.as_u16());
            let (trail, actor) = (&pending.trail, pending.actor());
            trail.write_if_room(actor, &lines, count);
        }
    }
}

impl Pending {
    /// Returns `None` if the request is not audited.
    fn new(
        trail: &Arc<AuditTrail>,
        context: RequestContext<'_>,
        caller: &Arc<Caller>,
        request: &Request,
    ) -> Option<Self> {
        let handler = context
            .route
            .and_then(|route| route.handler(request.method()));
        let action = handler.map_or(Some(UNKNOWN), |handler| handler.action)?;
        let target = request.extensions().get::<OriginalTarget>();
        let target = target.map_or(request.uri(), |target| &target.0);
        let facts = RequestFacts {
            time: trail.clock.now(),
            request_id: Some(context.id),
            method: request.method().clone(),
            request: logged_target(target),
            source: context.source,
            peer: context.connection.map(|connection| connection.peer),
            action,
        };
        Some(Self {
            trail: Arc::clone(trail),
            caller: Arc::clone(caller),
            facts,
            is_open: false,
        })
    }

    async fn finish(mut self, status: StatusCode) -> Result<(), UnwrittenError> {
        self.is_open = false;
        let continues = self.trail.settings.on_failure == OnAuditFailure::Continue;
        let (lines, count) = self.lines(status.as_u16());
        let outcome = if continues && self.trail.is_failing() {
            // Waiting for a failing sink would delay each request by the maximum write time.
            self.trail.write_later(self.actor(), &lines, count);
            Err(UnwrittenError)
        } else {
            self.trail.write(self.actor(), lines, count).await
        };
        if outcome.is_err() && continues {
            tracing::error!(
                audit.events = count,
                "continuing a request without its audit events"
            );
            return Ok(());
        }
        outcome
    }

    fn actor(&self) -> &str {
        self.caller.actor().as_str()
    }

    fn lines(&self, status: u16) -> (Vec<u8>, u64) {
        lines(&self.facts, &self.caller, status, &self.trail.settings)
    }
}

impl Drop for Pending {
    /// Writes the events if the client has disconnected or the server is shutting down: the request may have changed
    /// something.
    fn drop(&mut self) {
        if self.is_open {
            let (lines, count) = self.lines(STATUS_ABANDONED);
            self.trail.write_later(self.actor(), &lines, count);
        }
    }
}

/// The properties of a request before it is handled.
struct RequestFacts {
    time: DateTime<Utc>,
    request_id: Option<Uuid>,
    method: Method,
    /// The path and query, truncated to their limit.
    request: String,
    source: Option<IpAddr>,
    peer: Option<SocketAddr>,
    action: &'static str,
}

/// Returns the lines for a completed request, and their number: one per accessed resource, or one for the request itself.
fn lines(
    facts: &RequestFacts,
    caller: &Caller,
    status: u16,
    settings: &AuditSettings,
) -> (Vec<u8>, u64) {
    let Account { action, details } = caller.trail().account();
    let (authentication, subject) = match caller.authentication() {
        Authentication::ClientCertificate { subject } => ("mutual_tls", subject),
        Authentication::Token { subject } => ("uaa", subject),
    };
    let details = details.map(bounded);
    let subject = truncated(subject, TEXT_BYTES_MAX);
    let method = truncated(facts.method.as_str(), METHOD_BYTES_MAX);
    let mut lines = Vec::with_capacity(LINE_BYTES);
    let mut push = |accessed: Option<&AccessedResource>, address_bytes_max: usize| {
        let name = accessed
            .map(|accessed| truncated(&accessed.name, TEXT_BYTES_MAX))
            .filter(|name| !name.is_empty());
        let request = truncated(&facts.request, address_bytes_max);
        let of_resource = details_of(accessed);
        let event = Event {
            time: facts.time.timestamp_millis(),
            request_id: facts.request_id,
            actor: caller.actor().as_str(),
            subject: &subject,
            authentication,
            method: Some(&method),
            request: Some(&request),
            status,
            source: facts.source,
            peer: facts.peer,
            destination: &settings.host,
            action: action.unwrap_or(facts.action),
            operation: accessed.map(|accessed| accessed.operation.as_str()),
            resource_name: name.as_deref(),
            resource_id: accessed.and_then(|accessed| accessed.resource_id),
            version_id: accessed.and_then(|accessed| accessed.version_id),
            request_details: of_resource.as_ref().or(details.as_ref()),
        };
        push_line(&mut lines, &event, settings.format);
    };
    let accessed = caller.trail().accessed();
    if accessed.is_empty() {
        push(None, ADDRESS_BYTES_MAX);
    }
    let address_bytes_max = iter::once(ADDRESS_BYTES_MAX).chain(iter::repeat(REPEATED_BYTES_MAX));
    for (resource, address_bytes_max) in accessed.iter().zip(address_bytes_max) {
        push(Some(resource), address_bytes_max);
    }
    let count = accessed.len().max(1);
    (lines, u64::try_from(count).unwrap_or(u64::MAX))
}

/// Returns the details of one resource: the actor and operations of a permission, or that the response contained the value of
/// a version. Each resource has its own event, so details are never truncated: an actor has at most 255 characters, and there
/// are five operations.
fn details_of(accessed: Option<&AccessedResource>) -> Option<Value> {
    let accessed = accessed?;
    if accessed.is_value_disclosed {
        return Some(json!({"existing_value_disclosed": true}));
    }
    let granted_to = accessed.granted.as_ref()?;
    Some(granted(&granted_to.actor, granted_to.operations))
}

/// Returns the details of a permission; operations are omitted if unknown.
pub(crate) fn granted(actor: &Actor, operations: Option<Operations>) -> Value {
    let actor = actor.as_str();
    let Some(operations) = operations else {
        return json!({"actor": actor});
    };
    let operations: Vec<_> = operations.iter().map(Operation::as_str).collect();
    json!({"actor": actor, "operations": operations})
}

fn bounded(details: Value) -> Value {
    if details.to_string().len() <= DETAILS_BYTES_MAX {
        details
    } else {
        json!({"omitted": format!("longer than {DETAILS_BYTES_MAX} bytes")})
    }
}

/// Returns the path and query, truncated to their limit. Only known query parameters are included: others could be a token or
/// a value sent by mistake, which must not be stored for years.
fn logged_target(uri: &Uri) -> String {
    let mut text = uri.path().to_owned();
    for (index, pair) in uri.query().into_iter().flat_map(pairs).enumerate() {
        text.push(if index == 0 { '?' } else { '&' });
        text.push_str(if is_known(pair) { pair } else { OMITTED });
        if text.len() > REQUEST_BYTES_MAX {
            break;
        }
    }
    match truncated(&text, REQUEST_BYTES_MAX) {
        Cow::Borrowed(_) => text,
        Cow::Owned(truncated) => truncated,
    }
}

fn pairs(query: &str) -> impl Iterator<Item = &str> {
    query.split('&').filter(|pair| !pair.is_empty())
}

fn is_known(pair: &str) -> bool {
    form_urlencoded::parse(pair.as_bytes())
        .next()
        .is_some_and(|(name, _)| PARAMETERS.contains(&name.as_ref()))
}

/// Truncates a text to a limit in bytes. A truncated text ends with an ellipsis, which does not count towards the limit.
fn truncated(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(bytes_max);
    Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default()))
}

/// The known query parameters. None of them contains a credential's value.
const PARAMETERS: [&str; 14] = [
    "actor",
    "all_types",
    "credential_name",
    "current",
    "derived_from",
    "effective",
    "expires-within-days",
    "generated_by",
    "name",
    "name-like",
    "operation",
    "path",
    "provenance",
    "versions",
];

/// The placeholder for an unknown parameter.
const OMITTED: &str = "not-shown";

/// Maximum length of a path, and of a path with its query, in bytes: a name of 255 characters fits in any encoding.
const REQUEST_BYTES_MAX: usize = 2_048;

/// Maximum length of a path and query, including the ellipsis, in bytes.
const ADDRESS_BYTES_MAX: usize = REQUEST_BYTES_MAX + "…".len();

/// Maximum length of a path, and of a path with its query, in all events of a request except the first, in bytes: a request may
/// access thousands of resources.
const REPEATED_BYTES_MAX: usize = 256;

/// Maximum length of a method, in bytes.
const METHOD_BYTES_MAX: usize = 32;

/// Maximum length of a name or subject, in bytes.
const TEXT_BYTES_MAX: usize = 1_024;

/// Maximum size of details, in bytes of JSON.
const DETAILS_BYTES_MAX: usize = 4_096;

/// The typical maximum size of a line, in bytes.
const LINE_BYTES: usize = 768;

/// The status of a request whose client disconnected before the response. HTTP does not define it, but it is widely used.
const STATUS_ABANDONED: u16 = 499;

/// The action for an unknown path or method.
const UNKNOWN: &str = "UNKNOWN";

/// The retry delay of a request refused because the trail can't be written.
const RETRY_AFTER: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::routes;

    fn facts() -> RequestFacts {
        RequestFacts {
            time: DateTime::UNIX_EPOCH,
            request_id: None,
            method: Method::GET,
            request: "/api/v1/data".to_owned(),
            source: None,
            peer: None,
            action: "GET",
        }
    }

    #[test]
    fn texts_beyond_the_limit_are_truncated_between_characters() {
        for (text, bytes_max, expected) in [
            ("abcd", 4, "abcd"),
            ("abcde", 4, "abcd…"),
            ("aää", 5, "aää"),
            ("aäää", 4, "aä…"),
        ] {
            assert_eq!(truncated(text, bytes_max), expected);
        }
    }

    #[test]
    fn details_beyond_their_limit_are_omitted() {
        let text = |length: usize| json!("x".repeat(length));
        let fitting = text(DETAILS_BYTES_MAX - 2);
        assert_eq!(bounded(fitting.clone()), fitting);
        assert!(bounded(text(DETAILS_BYTES_MAX - 1)).is_object());
    }

    #[test]
    fn a_request_without_resources_has_one_line_with_details() {
        let subject = "s".repeat(TEXT_BYTES_MAX + 1);
        let caller = Caller::new(
            Actor::client("app").unwrap(),
            Authentication::Token { subject },
        );
        caller.trail().set_action("FIND");
        caller.trail().set_details(json!({"path": "/a"}));
        let settings = AuditSettings {
            format: AuditFormat::Json,
            on_failure: OnAuditFailure::Refuse,
            host: "here".to_owned(),
            write_time_max: AuditSettings::WRITE_TIME_MAX,
            unwritten_bytes_max: AuditSettings::UNWRITTEN_BYTES_MAX,
        };
        let (text, count) = lines(&facts(), &caller, 200, &settings);
        let event: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(count, 1);
        assert_eq!(event["action"], "FIND");
        assert_eq!(event["request_details"], json!({"path": "/a"}));
        assert_eq!(event["resource_name"], Value::Null);
        assert_eq!(
            event["subject"].as_str().unwrap().len(),
            TEXT_BYTES_MAX + "…".len()
        );
    }

    #[test]
    fn every_documented_query_parameter_is_audited() {
        for parameter in routes()
            .iter()
            .flat_map(|route| &route.description.parameters)
        {
            assert!(PARAMETERS.contains(&parameter.name), "{}", parameter.name);
        }
    }
}
