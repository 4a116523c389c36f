//! Limits on requests: on the size of their heads, on the number in progress (in total and per actor), and on the rate of each actor.
//! Also read-only mode, with the actors that may switch it.
//!
//! [`refused_head`] runs before everything else. [`Admission`] runs after authentication, so that unauthenticated requests
//! take no slot, and `/health` responds even if the server is busy. [`ServerMode::refusal`] runs last, before the handler.

use std::{
    collections::{HashMap, HashSet},
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    body::Body,
    extract::Request,
    http::{
        HeaderMap, HeaderValue, Method, StatusCode, Version,
        header::{CONNECTION, HOST, TRANSFER_ENCODING},
        uri::Authority,
    },
    response::{IntoResponse, Response},
};
use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock, Reference},
    middleware::NoOpMiddleware,
    state::keyed::HashMapStateStore,
};
use http_body::Body as _;
use keywright_core::{
    authorization::Caller, permission::Actor, response_memory::ResponseReservation,
};
use metrics::{counter, describe_counter};
use parking_lot::Mutex;

use crate::{
    Connection,
    request::OriginalTarget,
    response::{ApiError, Held, HeldBody},
    routes::interpolation::INTERPOLATE,
};

/// Limits on requests.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// Maximum number of authenticated requests in progress; further ones get status 503.
    pub requests_max: usize,
    /// Maximum number of requests in progress per actor; further ones get status 429.
    pub requests_per_actor_max: usize,
    /// Maximum number of requests per second of an actor, which is also the maximum size of a burst; further ones get
    /// status 429.
    pub requests_per_second_max: Option<NonZeroU32>,
    /// Maximum length of the path and query, in bytes; longer ones get status 414.
    pub uri_bytes_max: usize,
    /// Maximum number of header fields; more get status 431.
    pub header_fields_max: usize,
}

/// The request slots, and the request rate of each actor.
pub(crate) struct Admission {
    slots: RequestSlots,
    rates: Option<ActorRates>,
}

impl Admission {
    pub(crate) fn new(limits: &RequestLimits) -> Self {
        Self {
            slots: RequestSlots::new(limits.requests_max, limits.requests_per_actor_max),
            rates: limits.requests_per_second_max.map(ActorRates::new),
        }
    }

    pub(crate) fn admit(&self, actor: &Actor) -> Result<RequestPermit, ApiError> {
        if let Some(rates) = &self.rates
            && let Err(retry_after) = rates.count(actor.as_str())
        {
            request_refused(ACTOR_RATE);
            return Err(ApiError::too_many_requests(retry_after));
        }
        self.slots.take(actor).map_err(|exceeded| match exceeded {
            LimitExceeded::PerActor => {
                request_refused(ACTOR_REQUESTS);
                ApiError::too_many_requests(FULL_RETRY_AFTER)
            }
            LimitExceeded::Total => {
                request_refused(REQUESTS_IN_TOTAL);
                let error = "too many requests are in progress; try again later";
                ApiError::unavailable(error, FULL_RETRY_AFTER)
            }
        })
    }
}

/// The slot and the memory that a request holds until its response is sent or dropped.
pub(crate) struct Admitted(
    pub(crate) RequestPermit,
    pub(crate) Arc<ResponseReservation>,
);

impl Admitted {
    /// Counts the memory of a complete response, whether or not it was reserved. The response then holds the memory and the
    /// slot. If there is not enough memory for the response to a read, an error response replaces it. The response to a write
    /// is sent anyway, because the write is complete.
    pub(crate) fn held_by(self, response: Response, is_read: bool) -> Response {
        let bytes = response.body().size_hint().lower();
        let Self(_permit, memory) = &self;
        match memory.complete(usize::try_from(bytes).unwrap_or(usize::MAX)) {
            // The request changed nothing, and its response is dropped before the failure is sent.
            Err(refused) if is_read => ApiError::from(refused).into_response(),
            _ => response.map(|body| Body::new(HeldBody::new(body, self))),
        }
    }
}

impl Held for Admitted {}

struct RequestSlots {
    count: usize,
    per_actor_max: usize,
    used: Arc<Mutex<UsedSlots>>,
}

/// The slot of one request, released on drop.
pub(crate) struct RequestPermit {
    actor: Actor,
    used: Arc<Mutex<UsedSlots>>,
}

/// The reason why a request gets no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitExceeded {
    /// All slots are in use.
    Total,
    /// The actor has reached its limit, which is lower while most slots are in use.
    PerActor,
}

/// The number of slots in use, in total and per actor. There are at most as many actors as slots.
#[derive(Default)]
struct UsedSlots {
    total: usize,
    by_actor: HashMap<Actor, usize>,
}

impl RequestSlots {
    fn new(count: usize, per_actor_max: usize) -> Self {
        Self {
            count,
            per_actor_max,
            used: Arc::default(),
        }
    }

    fn take(&self, actor: &Actor) -> Result<RequestPermit, LimitExceeded> {
        let mut used = self.used.lock();
        let used_by_actor = used.by_actor.get(actor).copied().unwrap_or_default();
        if used_by_actor >= self.per_actor_max {
            return Err(LimitExceeded::PerActor);
        }
        if used.total >= self.count {
            return Err(LimitExceeded::Total);
        }
        let are_scarce = used.total >= self.count - self.count / RESERVED_DIVISOR;
        if are_scarce && used_by_actor >= (self.count / FEW_DIVISOR).max(1) {
            return Err(LimitExceeded::PerActor);
        }
        used.total = used.total.saturating_add(1);
        used.by_actor
            .insert(actor.clone(), used_by_actor.saturating_add(1));
        Ok(RequestPermit {
            actor: actor.clone(),
            used: Arc::clone(&self.used),
        })
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        let mut used = self.used.lock();
        used.total = used.total.saturating_sub(1);
        match used.by_actor.get_mut(&self.actor) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(used.by_actor.remove(&self.actor)),
        }
    }
}

/// The request rates of actors. Each actor may send a burst of requests, and then the same number of requests per second (the
/// generic cell rate algorithm, ITU-T I.371, which is a token bucket).
///
/// At most [`ACTORS_MAX`] actors are tracked at once. At this limit, actors with full buckets are removed; a bucket refills
/// within a second.
struct ActorRates<C: Clock = DefaultClock> {
    limiter: RateLimiter<String, HashMapStateStore<String>, C, NoOpMiddleware<C::Instant>>,
    clock: C,
    actors_max: usize,
    evicted_at: Mutex<Option<C::Instant>>,
}

impl ActorRates {
    fn new(per_second_max: NonZeroU32) -> Self {
        Self::with_clock(per_second_max, ACTORS_MAX, DefaultClock::default())
    }
}

impl<C: Clock + Clone> ActorRates<C> {
    fn with_clock(per_second_max: NonZeroU32, actors_max: usize, clock: C) -> Self {
        let store = HashMapStateStore::default();
        Self {
            limiter: RateLimiter::new(Quota::per_second(per_second_max), store, clock.clone()),
            clock,
            actors_max,
            evicted_at: Mutex::default(),
        }
    }

    /// Counts a request.
    ///
    /// # Errors
    /// The time to wait, if the request exceeds the rate or too many actors are tracked.
    fn count(&self, actor: &str) -> Result<(), Duration> {
        if self.limiter.len() >= self.actors_max {
            self.evict();
            if self.limiter.len() >= self.actors_max {
                return Err(REFILL_TIME);
            }
        }
        self.limiter
            .check_key(&actor.to_owned())
            .map_err(|not_until| not_until.wait_time_from(self.clock.now()))
    }

    /// Removes actors with full buckets, at most once per second, because it checks all of them.
    fn evict(&self) {
        let now = self.clock.now();
        let mut evicted_at = self.evicted_at.lock();
        let was_evicted_recently =
            evicted_at.is_some_and(|at| Duration::from(now.duration_since(at)) < REFILL_TIME);
        if !was_evicted_recently {
            *evicted_at = Some(now);
            self.limiter.retain_recent();
        }
    }
}

/// Returns the error response if the head of a request is refused. A head is refused if:
///
/// - the path and query are too long
/// - there are too many header fields
/// - the host or the end of the body is ambiguous, or the target names a user (RFC 9110, sections 4.2.4 and 7.2; RFC 9112,
///   sections 3.2 and 6; RFC 9113, section 8.3.1)
pub(crate) fn refused_head(request: &Request, limits: &RequestLimits) -> Option<Response> {
    let uri = request.uri();
    let uri_bytes = uri.path_and_query().map_or(0, |path| path.as_str().len());
    if uri_bytes > limits.uri_bytes_max {
        let max = limits.uri_bytes_max;
        let error = format!("the path and the query of a request must have at most {max} bytes");
        return Some(ApiError::new(StatusCode::URI_TOO_LONG, error).into_response());
    }
    if request.headers().len() > limits.header_fields_max {
        let max = limits.header_fields_max;
        let error = format!("a request must have at most {max} header fields");
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Some(ApiError::new(status, error).into_response());
    }
    let rule = broken_rule(request)?;
    let mut refused = ApiError::new(StatusCode::BAD_REQUEST, rule).into_response();
    if request.version() < Version::HTTP_2 {
        // The next bytes on the connection may be this request's body or another request.
        let close = HeaderValue::from_static("close");
        refused.headers_mut().insert(CONNECTION, close);
    }
    Some(refused)
}

fn broken_rule(request: &Request) -> Option<&'static str> {
    let headers = request.headers();
    if let Some(encoding) = headers.get(TRANSFER_ENCODING) {
        let is_chunked = encoding.as_bytes().eq_ignore_ascii_case(CHUNKED);
        if !is_chunked || headers.get_all(TRANSFER_ENCODING).iter().count() > 1 {
            return Some("the only supported transfer-encoding is chunked");
        }
    }
    broken_rule_of_host(request, headers)
}

fn broken_rule_of_host(request: &Request, headers: &HeaderMap) -> Option<&'static str> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Some("a request must not have more than one host field");
    }
    let target = request.extensions().get::<OriginalTarget>();
    let target = target.map_or(request.uri(), |target| &target.0);
    if target.authority().is_some_and(has_user) {
        return Some("the target of a request must not contain a user");
    }
    let Some(host) = host else {
        let is_required = match request.version() {
            Version::HTTP_09 | Version::HTTP_10 => false,
            Version::HTTP_11 => true,
            _ => target.authority().is_none(),
        };
        return is_required.then_some("a request must have a host field");
    };
    let Some(host) = authority(host) else {
        return Some("the host field must be a host with an optional port");
    };
    let is_other = request.version() >= Version::HTTP_2
        && target
            .authority()
            .is_some_and(|authority| !authority.as_str().eq_ignore_ascii_case(host.as_str()));
    is_other.then_some("the host field and :authority must be the same")
}

fn authority(host: &HeaderValue) -> Option<Authority> {
    let authority = Authority::try_from(host.as_bytes()).ok()?;
    (!has_user(&authority) && !authority.host().is_empty()).then_some(authority)
}

fn has_user(authority: &Authority) -> bool {
    authority.as_str().contains('@')
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

/// Registers the description of the metric of requests that exceed a limit.
pub(crate) fn describe_metrics() {
    describe_counter!(
        REQUESTS_REFUSED,
        "Authenticated requests that exceeded a limit, by reason."
    );
    for reason in [ACTOR_REQUESTS, ACTOR_RATE, REQUESTS_IN_TOTAL] {
        counter!(REQUESTS_REFUSED, "reason" => reason).increment(0);
    }
}

/// Counts an authenticated request that is refused before it is handled.
fn request_refused(reason: &'static str) {
    counter!(REQUESTS_REFUSED, "reason" => reason).increment(1);
}

/// The actor has reached its limit of requests in progress.
const ACTOR_REQUESTS: &str = "actor_requests";
/// The actor exceeds its request rate.
const ACTOR_RATE: &str = "actor_rate";
/// The server has reached its limit of requests in progress.
const REQUESTS_IN_TOTAL: &str = "requests";

const REQUESTS_REFUSED: &str = "keywright_http_requests_refused_total";

/// One in this many slots is reserved for actors with few requests in progress, so that busy actors can't occupy all slots.
const RESERVED_DIVISOR: usize = 8;

/// An actor has few requests in progress if it has none, or fewer than the number of slots divided by this number.
const FEW_DIVISOR: usize = 64;

/// The retry delay if no slot is free. Requests are short, so a slot is free soon.
const FULL_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Maximum number of tracked actors. Because buckets refill within a second, this limits the number of actors per second.
const ACTORS_MAX: usize = 10_000;

/// The time for an empty bucket to refill.
const REFILL_TIME: Duration = Duration::from_secs(1);

const CHUNKED: &[u8] = b"chunked";

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    fn take(slots: &RequestSlots, actor: &str) -> Result<RequestPermit, LimitExceeded> {
        slots.take(&Actor::of_lookup(actor))
    }

    #[test]
    fn actors_without_requests_are_not_stored() {
        let slots = RequestSlots::new(2, 1);
        for number in 0..100 {
            drop(take(&slots, &number.to_string()).unwrap());
        }
        assert!(slots.used.lock().by_actor.is_empty());
    }

    fn rates(
        per_second_max: u32,
        actors_max: usize,
    ) -> (ActorRates<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        let per_second_max = NonZeroU32::new(per_second_max).unwrap();
        (
            ActorRates::with_clock(per_second_max, actors_max, clock.clone()),
            clock,
        )
    }

    #[test]
    fn the_rate_of_an_actor_is_limited() {
        let (rates, clock) = rates(4, 10);
        for _ in 0..4 {
            assert_eq!(rates.count("one"), Ok(()));
        }
        assert_eq!(rates.count("one"), Err(Duration::from_millis(250)));
        assert_eq!(rates.count("other"), Ok(()));
        clock.advance(Duration::from_millis(249));
        assert_eq!(rates.count("one"), Err(Duration::from_millis(1)));
        clock.advance(Duration::from_millis(1));
        assert_eq!(rates.count("one"), Ok(()));
        assert_eq!(rates.count("one"), Err(Duration::from_millis(250)));
    }

    #[test]
    fn the_number_of_tracked_actors_is_limited() {
        let (rates, clock) = rates(4, 10);
        for number in 0..10 {
            assert_eq!(rates.count(&number.to_string()), Ok(()));
        }
        assert_eq!(rates.count("one more"), Err(REFILL_TIME));
        for round in 0..100 {
            clock.advance(REFILL_TIME);
            for number in 0..10 {
                assert_eq!(rates.count(&format!("{round} {number}")), Ok(()));
            }
            assert_eq!(rates.limiter.len(), 10);
        }
    }

    #[test]
    fn removing_actors_does_not_raise_their_limits() {
        let (rates, clock) = rates(1, 2);
        assert_eq!(rates.count("one"), Ok(()));
        clock.advance(Duration::from_millis(500));
        assert_eq!(rates.count("two"), Ok(()));
        assert_eq!(rates.count("three"), Err(REFILL_TIME));
        rates.evict();
        assert!(rates.count("one").is_err());
    }

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
