//! The services behind the HTTP API, and the handling of requests, from the head to the response.

use std::{
    convert::identity,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::Request,
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
        header::{
            ALLOW, CACHE_CONTROL, CONTENT_LENGTH, PRAGMA, SERVER, STRICT_TRANSPORT_SECURITY,
            X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
        },
    },
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use keywright_core::{
    authorization::Caller,
    certificate::ClientCertificateFacts,
    credential::Credentials,
    encryption_key::EncryptionKeys,
    interpolation::Interpolation,
    log::{self, duration_ms},
    permission_management::Permissions,
    response_memory::ResponseMemory,
};
use metrics::{Gauge, describe_gauge, gauge};
use uuid::Uuid;

use crate::{
    RefusedRequest, UserInterface,
    admission::{self, Admission, Admitted, RequestLimits, ServerMode, refused_head},
    audit::{AuditTrail, AuditedRequest},
    authentication::{self, TokenVerifier, authenticate},
    development_identity::DevelopmentIdentity,
    interface::{authorize, with_page},
    request::with_normal_path,
    response::{ApiError, or_panicked},
    route::{self, RequestContext, RouteTable, known_method},
    router::{no_such_path, route_table},
    routes::health::HealthCheck,
};

/// The services behind the HTTP API.
pub struct Api {
    /// The use cases of credentials.
    pub credentials: Arc<Credentials>,
    /// The use cases of permissions.
    pub permissions: Permissions,
    /// The use cases of encryption keys.
    pub encryption_keys: EncryptionKeys,
    /// Interpolates documents. Without a resolver, `POST /api/v1/interpolate` returns status 501.
    pub interpolation: Interpolation,
    /// Verifies bearer tokens. `None` rejects all of them.
    pub token_verifier: Option<Arc<TokenVerifier>>,
    /// The audit trail, if enabled.
    pub audit: Option<Arc<AuditTrail>>,
    /// The proxies whose forwarded client addresses are trusted.
    pub trusted_proxies: Vec<IpAddr>,
    /// Checks the server's health.
    pub health: Arc<HealthCheck>,
    /// Information about the server.
    pub information: Information,
    /// The limits of request bodies.
    pub limits: Limits,
    /// The limits on requests.
    pub request_limits: RequestLimits,
    /// The memory that responses share.
    pub response_memory: Arc<ResponseMemory>,
    /// The server's mode, and the actors that may switch it.
    pub server_mode: ServerMode,
    /// The built-in identity provider of a development configuration.
    pub development_identity: Option<DevelopmentIdentity>,
    /// The user interface for browsers, if enabled.
    pub interface: Option<Arc<dyn UserInterface>>,
}

/// Information about the server.
#[derive(Clone, Debug)]
pub struct Information {
    /// The URL of the trusted identity provider, for `GET /info`.
    pub identity_provider_url: String,
    /// The name of the application, for `GET /info`.
    pub application_name: String,
    /// The API level, for `GET /version`: see [`Information::API_LEVEL`].
    pub api_level: String,
}

impl Information {
    /// The supported API level. Clients send metadata if it is at least 2.6.0. If it were below 2.0, they would send requests that
    /// this server rejects.
    pub const API_LEVEL: &str = "2.15.0";
}

/// The limits of request bodies.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum size of a body, in bytes; a larger one gets status 413.
    pub body_bytes_max: usize,
    /// Maximum time for a body to arrive; a slower one gets status 408.
    pub body_deadline: Duration,
}

/// The connection of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The client's address.
    pub peer: SocketAddr,
    /// The server's address.
    pub local: SocketAddr,
    /// The client's certificate, if it presented one. The listener has verified its chain, its validity, and that the client has
    /// its private key; [`authentication`](crate::authentication) determines its purpose and identity.
    pub client_certificate: Option<Arc<ClientCertificateFacts>>,
}

/// The whole service, which responds to the requests of all connections.
pub struct Pipeline {
    api: Arc<Api>,
    routes: RouteTable,
    admission: Admission,
    in_progress: Gauge,
}

impl Pipeline {
    /// Creates the service.
    pub fn new(api: Api) -> Self {
        let api = Arc::new(api);
        Self {
            routes: route_table(&api),
            admission: Admission::new(&api.request_limits),
            in_progress: gauge!(REQUESTS_IN_PROGRESS),
            api,
        }
    }

    /// Responds to a request that arrived on this connection.
    ///
    /// The path is normalized before any decision depends on it. Metrics count the request, and all its log lines contain
    /// its id.
    pub async fn respond<B>(
        &self,
        connection: Option<&Connection>,
        request: axum::http::Request<B>,
    ) -> Response
    where
        B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
    {
        let started = Instant::now();
        let mut request = with_normal_path(request.map(Body::new));
        let found = self.routes.find(request.uri().path());
        let (route, segments) = found.unzip();
        if let Some(segments) = segments.filter(|segments| !segments.is_empty()) {
            request.extensions_mut().insert(segments);
        }
        let context = RequestContext {
            id: Uuid::new_v4(),
            connection,
            source: connection.map(|connection| {
                source(
                    connection.peer,
                    request.headers(),
                    &self.api.trusted_proxies,
                )
            }),
            route,
        };
        let mut id = Uuid::encode_buffer();
        let id: &str = context.id.hyphenated().encode_lower(&mut id);
        let _in_progress = RequestInProgress::begin(&self.in_progress);
        let method = known_method(request.method());
        let interface = self.api.interface.as_deref();
        let interface = interface.filter(|_| route.is_some_and(|route| route.is_of_user_interface));
        let interface = interface.map(|interface| (interface, RefusedRequest::of(&request)));
        let mut caller = None;
        let mut response = {
            // Pinned here, because every combinator would move this large future.
            let responding = pin!(self.response(context, request, &mut caller));
            let responding = responding.map(|response| response.unwrap_or_else(identity));
            log::await_with_request_id(Some(context.id), or_panicked(responding)).await
        };
        if let Some((interface, request)) = &interface {
            response = with_page(*interface, request, response).await;
        }
        let (status, duration) = (response.status(), started.elapsed());
        route
            .map_or(self.routes.unmatched(), |route| &route.measurements)
            .responded(method, status, duration);
        let path = route.map(|route| route.path.as_str());
        log_response(id, caller.as_deref(), method, path, status, duration);
        set_headers_of_every_response(response.headers_mut(), id);
        if method == Method::HEAD {
            response = without_body(response);
        }
        response
    }

    /// Checks the head. Unless the route requires no authentication, also authenticates the caller and stores it in
    /// `authenticated`. So responses to unauthenticated callers do not disclose which paths exist.
    ///
    /// # Errors
    /// The response to a request that is refused before it accesses anything.
    async fn response(
        &self,
        context: RequestContext<'_>,
        mut request: Request,
        authenticated: &mut Option<Arc<Caller>>,
    ) -> Result<Response, Response> {
        if let Some(refused) = refused_head(&request, &self.api.request_limits) {
            return Err(refused);
        }
        let is_of_user_interface = context
            .route
            .is_some_and(|route| route.is_of_user_interface);
        // The user interface has its own check, which is stricter.
        if !is_of_user_interface && is_change_from_other_site(&request) {
            return Err(ApiError::new(StatusCode::FORBIDDEN, FROM_OTHER_SITE).into_response());
        }
        if let Some(route) = context.route.filter(|route| route.is_open) {
            if route.is_of_user_interface
                && let Some(source) = context.source
            {
                request.extensions_mut().insert(client_network(source));
            }
            return Ok(self.handle(context, None, request).await);
        }
        if is_of_user_interface && let Some(interface) = &self.api.interface {
            request = authorize(interface.as_ref(), request).await?;
        }
        // Only the session identifies the user. Otherwise, a certificate without an identity would lead to the login again and again.
        let connection = context.connection.filter(|_| !is_of_user_interface);
        let (caller, memory) = authenticate(&self.api, connection, request.headers()).await?;
        let caller = Arc::new(caller);
        *authenticated = Some(Arc::clone(&caller));
        request.extensions_mut().insert(Arc::clone(&caller));

        // From here on, the request is audited, whatever its outcome.
        let trail = self.api.audit.as_ref();
        let audited = AuditedRequest::begin(trail, context, &caller, &request).await?;
        let permit = match self.admission.admit(caller.actor()) {
            Ok(permit) => permit,
            Err(refused) => {
                // The request accessed nothing, so its response does not wait for the audit trail. Otherwise, a caller that
                // exceeds its limits would hold a connection for that long.
                let refused = refused.into_response();
                audited.finish_later(refused.status());
                return Err(refused);
            }
        };
        let is_read = request.method().is_safe();
        let handling = pin!(self.handle(context, Some(&caller), request));
        let response = or_panicked(handling).await;
        let response = Admitted(permit, memory).held_by(response, is_read);
        Ok(audited.finish(response).await)
    }

    /// Calls the route's handler, if there is one and the server's mode permits the request.
    async fn handle(
        &self,
        context: RequestContext<'_>,
        caller: Option<&Caller>,
        request: Request,
    ) -> Response {
        let Some(route) = context.route else {
            return no_such_path().into_response();
        };
        let (mode, method) = (&self.api.server_mode, request.method());
        let Some(handler) = route.handler(method) else {
            let mut response = if route.follows_mode {
                mode.no_such_method(method)
            } else {
                StatusCode::NOT_FOUND.into_response()
            };
            response.headers_mut().insert(ALLOW, route.allowed.clone());
            return response;
        };
        if route.follows_mode
            && let Some(refused) = mode.refusal(method, &route.path, caller, context.connection)
        {
            return refused.into_response();
        }
        (handler.handle)(request).await
    }
}

/// Returns the source address of a request: the peer, or the address that a trusted proxy forwards.
///
/// Each proxy appends its peer's address to the header. So the header is read from the end, up to the first address that is not
/// a trusted proxy. Earlier addresses may come from the caller, and are ignored.
fn source(peer: SocketAddr, headers: &HeaderMap, trusted_proxies: &[IpAddr]) -> IpAddr {
    let mut source = peer.ip().to_canonical();
    // Split as bytes, because a caller's part of a value need not be ASCII.
    let values = headers.get_all(FORWARDED_FOR).iter().rev();
    let mut claims = values.flat_map(|value| value.as_bytes().rsplit(|byte| *byte == b','));
    while trusted_proxies.contains(&source) {
        let Some(claimed) = claims.next().and_then(address) else {
            break;
        };
        source = claimed;
    }
    source
}

/// Parses an address, with or without a port, because some proxies append one.
fn address(bytes: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(bytes).ok()?.trim();
    let ip = text
        .parse::<IpAddr>()
        .or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    ip.ok().map(|ip| ip.to_canonical())
}

/// The header in which proxies forward the addresses of clients.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// Returns the network of a client, to which limits apply: its IPv4 address in canonical form, or its /64 network of IPv6, which
/// usually belongs to one client.
pub fn client_network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK_MASK).into(),
    }
}

const NETWORK_MASK: u128 = !0 << 64;

/// Returns whether a browser sent a request that may change something for a page of another site. Browsers present client
/// certificates with such requests. They also send `Sec-Fetch-Site`, which pages can't set and other clients don't send.
fn is_change_from_other_site(request: &Request) -> bool {
    let mut sites = request.headers().get_all(SEC_FETCH_SITE).iter();
    !matches!(*request.method(), Method::GET | Method::HEAD)
        && sites.any(|site| site != "same-origin" && site != "none")
}

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

const FROM_OTHER_SITE: &str =
    "a page of another site sent the request; from other sites, only GET and HEAD are allowed";

/// Omits the body of a response to HEAD, but not its length. hyper sets the length of other responses.
fn without_body(mut response: Response) -> Response {
    if let Some(bytes) = response.body().size_hint().exact() {
        let headers = response.headers_mut();
        headers.entry(CONTENT_LENGTH).or_insert(bytes.into());
    }
    response.map(|_| Body::empty())
}

/// Sets the header fields of every response: the request's id, the product, and fields that restrict caches and browsers.
fn set_headers_of_every_response(headers: &mut HeaderMap, id: &str) {
    for (name, value) in EVERY_RESPONSE {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, id);
    }
}

/// The response header that carries the request's id.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The header fields of every response, except the request's id.
const EVERY_RESPONSE: [(HeaderName, &str); 6] = [
    (CACHE_CONTROL, "no-store"),
    (PRAGMA, "no-cache"),
    (SERVER, concat!("keywright/", env!("CARGO_PKG_VERSION"))),
    // A year. Without `includeSubDomains`, because other servers may serve the subdomains.
    (STRICT_TRANSPORT_SECURITY, "max-age=31536000"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
];

/// Counts as a request in progress until dropped.
struct RequestInProgress<'a>(&'a Gauge);

impl<'a> RequestInProgress<'a> {
    fn begin(gauge: &'a Gauge) -> Self {
        gauge.increment(1);
        Self(gauge)
    }
}

impl Drop for RequestInProgress<'_> {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

/// Logs the response to a request. The line contains the route instead of the path and query, because those contain names of
/// credentials. Unknown methods have the label `other`, because methods can have any length.
fn log_response(
    id: &str,
    caller: Option<&Caller>,
    method: &'static str,
    route: Option<&str>,
    status: StatusCode,
    duration: Duration,
) {
    tracing::info!(
        target: ACCESS_LOG,
        {
            request_id = id,
            actor = caller.map(|caller| caller.actor().as_str()),
            http.method = method,
            http.route = route.unwrap_or("unknown"),
            http.status = status.as_u16(),
            duration_ms = duration_ms(duration),
        },
        "responded"
    );
}

/// The target of the access log, which has one line per request.
pub const ACCESS_LOG: &str = "keywright_api::access";

/// Registers the descriptions of the metrics of requests.
pub fn describe_metrics() {
    describe_gauge!(REQUESTS_IN_PROGRESS, "Requests in progress.");
    route::describe_metrics();
    admission::describe_metrics();
    authentication::describe_metrics();
}

const REQUESTS_IN_PROGRESS: &str = "keywright_http_requests_in_progress";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_entries_of_trusted_proxies_are_used() {
        for (peer, headers, expected) in [
            ("10.0.0.1", &[][..], "10.0.0.1"),
            ("10.0.0.1", &["1.2.3.4"], "1.2.3.4"),
            ("10.0.0.9", &["1.2.3.4"], "10.0.0.9"),
            ("10.0.0.1", &["6.6.6.6, 1.2.3.4"], "1.2.3.4"),
            ("10.0.0.1", &["6.6.6.6, 1.2.3.4, 10.0.0.2"], "1.2.3.4"),
            ("10.0.0.1", &["6.6.6.6", "1.2.3.4 ,10.0.0.2"], "1.2.3.4"),
            ("10.0.0.1", &["10.0.0.2"], "10.0.0.2"),
            ("10.0.0.1", &["1.2.3.4:5678"], "1.2.3.4"),
            ("10.0.0.1", &["[2001:db8::1]:5678"], "2001:db8::1"),
            ("10.0.0.1", &["2001:db8::1"], "2001:db8::1"),
            ("10.0.0.1", &["1.2.3.4, nonsense"], "10.0.0.1"),
            ("10.0.0.1", &["1.2.3.4, "], "10.0.0.1"),
            ("10.0.0.1", &["\u{e9}, 1.2.3.4"], "1.2.3.4"),
            ("10.0.0.1", &["1.2.3.4, \u{e9}"], "10.0.0.1"),
            ("::ffff:10.0.0.1", &["1.2.3.4"], "1.2.3.4"),
            ("::ffff:9.9.9.9", &["1.2.3.4"], "9.9.9.9"),
        ] {
            let trusted = ["10.0.0.1", "10.0.0.2"].map(|ip| ip.parse().unwrap());
            let mut map = HeaderMap::new();
            for header in headers {
                let header = HeaderValue::from_bytes(header.as_bytes());
                map.append(FORWARDED_FOR, header.unwrap());
            }
            let peer = SocketAddr::new(peer.parse().unwrap(), 1);
            assert_eq!(
                source(peer, &map, &trusted).to_string(),
                expected,
                "{peer} {headers:?}"
            );
        }
    }
}
