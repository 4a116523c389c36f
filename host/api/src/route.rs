//! Defines routes and the access that each requires, finds the route of a request, and counts its responses.
//!
//! Callers can't add values of labels, which are mounted routes, known methods and statuses.

use std::{convert::Infallible, net::IpAddr, pin::Pin, sync::Arc, time::Duration};

use axum::{
    extract::{FromRequestParts, Request},
    handler::Handler,
    http::{HeaderValue, Method, StatusCode, request::Parts},
    response::Response,
};
use keywright_core::{authorization::Caller, permission::Operation};
use metrics::{Counter, Histogram, counter, describe_counter, describe_histogram, histogram};
use parking_lot::RwLock;
use uuid::Uuid;

use crate::{
    Api, Connection, authentication::TokenError, description::Description, response::ApiError,
};

/// One method on one path, with its handler, required access and description.
pub struct Route {
    method: Method,
    path: &'static str,
    access: Access,
    action: Option<&'static str>,
    bind: Box<dyn FnOnce(Arc<Api>) -> BoundHandler>,
    pub(crate) description: Description,
}

/// The access that a route requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No authentication.
    Open,
    /// Authentication, but no permission. The route itself may require more.
    Identity,
    /// Authentication, and permission for this operation on the requested resource. A route that lists resources omits
    /// resources without this permission. A request may need further permissions.
    Permission(Operation),
}

/// The action of routes that are not audited: they access no stored credentials, and are called frequently.
pub(crate) const NOT_AUDITED: Option<&str> = None;

/// Creates a route: method, path, required access, action in the audit trail and handler; the id, the tag and the summary of its
/// description; and the conditions of its error responses.
macro_rules! route {
    (
        $method:ident $path:expr, $access:expr, $action:expr, $handler:ident,
        $id:literal, $tag:ident, $summary:literal $(, $status:literal => $when:expr)*
    ) => {
        $crate::route::Route::new(
            axum::http::Method::$method,
            $path,
            $access,
            $action,
            $handler,
            $crate::description::Description::new(
                $id,
                $crate::description::Tag::$tag,
                $summary,
                &[$(($status, $when)),*],
            ),
        )
    };
}
pub(crate) use route;

pub(crate) struct MethodHandler {
    pub(crate) method: Method,
    /// The action of its requests in the audit trail, or `None` if they are not audited.
    pub(crate) action: Option<&'static str>,
    pub(crate) handle: BoundHandler,
}

/// A handler with its state.
pub type BoundHandler = Box<dyn Fn(Request) -> ResponseFuture + Send + Sync>;

type ResponseFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

pub(crate) fn bound<H, T, S>(handler: H, state: S) -> BoundHandler
where
    H: Handler<T, S, Future = ResponseFuture> + Sync,
    S: Clone + Send + Sync + 'static,
{
    Box::new(move |request| handler.clone().call(request, state.clone()))
}

impl Route {
    /// Creates a route. A route for GET also responds to HEAD.
    pub(crate) fn new<H, T>(
        method: Method,
        path: &'static str,
        access: Access,
        action: impl Into<Option<&'static str>>,
        handler: H,
        description: Description,
    ) -> Self
    where
        H: Handler<T, Arc<Api>, Future = ResponseFuture> + Sync,
    {
        Self {
            method,
            path,
            access,
            action: action.into(),
            bind: Box::new(|api| bound(handler, api)),
            description,
        }
    }

    /// Returns the HTTP method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the path, with its variable segments in braces.
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// Returns the access that the route requires.
    pub fn access(&self) -> Access {
        self.access
    }
}

/// The paths of the service, each with its methods.
pub(crate) struct RouteTable {
    paths: Vec<RoutePath>,
    /// The metrics of requests for all other paths.
    unmatched: RouteMeasurements,
}

pub(crate) struct RoutePath {
    /// The path, with its variable segments in braces.
    pub(crate) path: String,
    /// Whether no method on the path requires authentication.
    pub(crate) is_open: bool,
    pub(crate) is_of_user_interface: bool,
    /// Whether read-only mode and the rules of `/management` apply to it.
    pub(crate) follows_mode: bool,
    /// The value of `Allow` in responses to unsupported methods.
    pub(crate) allowed: HeaderValue,
    pub(crate) measurements: RouteMeasurements,
    handlers: Vec<MethodHandler>,
}

#[derive(Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    pub(crate) id: Uuid,
    pub(crate) connection: Option<&'a Connection>,
    /// The client's address: the peer, or the address that a trusted proxy forwards.
    pub(crate) source: Option<IpAddr>,
    pub(crate) route: Option<&'a RoutePath>,
}

/// A path with one of its methods, for [`RouteTable::new`].
pub(crate) struct Mounted {
    pub(crate) path: String,
    pub(crate) is_open: bool,
    pub(crate) is_of_user_interface: bool,
    pub(crate) follows_mode: bool,
    pub(crate) handler: MethodHandler,
}

impl Route {
    pub(crate) fn mounted(self, api: Arc<Api>) -> Mounted {
        Mounted {
            path: self.path.to_owned(),
            is_open: self.access == Access::Open,
            is_of_user_interface: false,
            follows_mode: true,
            handler: MethodHandler {
                method: self.method,
                action: self.action,
                handle: (self.bind)(api),
            },
        }
    }
}

impl RouteTable {
    /// Creates a table of routes. If several routes have the same path, the first determines whether it is open.
    pub(crate) fn new(routes: impl IntoIterator<Item = Mounted>) -> Self {
        let mut paths: Vec<RoutePath> = Vec::new();
        for route in routes {
            let known = paths.iter_mut().find(|known| known.path == route.path);
            match known {
                Some(known) => known.handlers.push(route.handler),
                None => paths.push(RoutePath {
                    measurements: RouteMeasurements::new(Some(&route.path)),
                    path: route.path,
                    is_open: route.is_open,
                    is_of_user_interface: route.is_of_user_interface,
                    follows_mode: route.follows_mode,
                    allowed: HeaderValue::from_static(""),
                    handlers: vec![route.handler],
                }),
            }
        }
        for path in &mut paths {
            path.allowed = allowed(&path.handlers);
        }
        Self {
            paths,
            unmatched: RouteMeasurements::new(None),
        }
    }

    /// Returns the path of the service that matches a request's path, and its variable segments. Returns `None` if no path
    /// matches.
    pub(crate) fn find(&self, path: &str) -> Option<(&RoutePath, PathSegments)> {
        let fixed = self.paths.iter().find(|known| known.path == path);
        if let Some(known) = fixed.filter(|known| !known.path.contains('{')) {
            return Some((known, PathSegments::default()));
        }
        let mut paths = self.paths.iter();
        paths.find_map(|known| Some((known, segments(&known.path, path)?)))
    }

    pub(crate) fn unmatched(&self) -> &RouteMeasurements {
        &self.unmatched
    }
}

impl RoutePath {
    /// Returns the handler of a method. The handler of GET also responds to HEAD.
    pub(crate) fn handler(&self, method: &Method) -> Option<&MethodHandler> {
        let method = if method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        let mut handlers = self.handlers.iter();
        handlers.find(|handler| handler.method == method)
    }
}

fn allowed(handlers: &[MethodHandler]) -> HeaderValue {
    let methods = handlers.iter().map(|handler| match handler.method {
        Method::GET => "GET,HEAD",
        ref method => method.as_str(),
    });
    let methods = methods.collect::<Vec<_>>().join(",");
    HeaderValue::try_from(methods).unwrap_or(HeaderValue::from_static(""))
}

/// Returns the variable segments of a path, or `None` if it does not match the pattern. Segments that [`REST`] matches are omitted.
fn segments(pattern: &str, path: &str) -> Option<PathSegments> {
    let mut found = Vec::new();
    let mut segments = path.split('/');
    for expected in pattern.split('/') {
        let segment = segments.next()?;
        if expected == REST {
            return Some(PathSegments(found));
        }
        if expected.starts_with('{') && !segment.is_empty() {
            found.push(segment.to_owned());
        } else if segment != expected {
            return None;
        }
    }
    segments.next().is_none().then_some(PathSegments(found))
}

/// The last segment of a pattern that matches one or more segments.
const REST: &str = "{*}";

/// The metrics of one path. A series is created by its first request; later requests don't look up labels again.
pub(crate) struct RouteMeasurements {
    route: String,
    known: RwLock<Vec<(&'static str, StatusCode, Counter, Histogram)>>,
}

impl RouteMeasurements {
    /// Creates the metrics of a mounted path, or of all unknown paths if `route` is `None`.
    pub(crate) fn new(route: Option<&str>) -> Self {
        Self {
            route: route.unwrap_or(UNMATCHED).to_owned(),
            known: RwLock::default(),
        }
    }

    /// Counts a response. A request is not counted if its client disconnects before the response.
    pub(crate) fn responded(&self, method: &'static str, status: StatusCode, duration: Duration) {
        let known = self.known.read();
        let mut all = known.iter();
        if let Some((.., responses, durations)) =
            all.find(|known| (known.0, known.1) == (method, status))
        {
            responses.increment(1);
            durations.record(duration);
            return;
        }
        drop(known);
        let route = || self.route.clone();
        let label = status.as_str().to_owned();
        let responses =
            counter!(REQUESTS, "route" => route(), "method" => method, "status" => label);
        let durations = histogram!(REQUEST_DURATION, "route" => route(), "method" => method);
        responses.increment(1);
        durations.record(duration);
        // If two threads add the same series, both entries are the same metrics.
        self.known
            .write()
            .push((method, status, responses, durations));
    }
}

/// The route label of requests for unknown paths.
const UNMATCHED: &str = "unmatched";

/// Returns the name of a known method, or one label for all others: callers can invent any number of methods.
pub(crate) fn known_method(method: &Method) -> &'static str {
    let mut known = METHODS.into_iter();
    known
        .find(|known| *known == method.as_str())
        .unwrap_or(OTHER)
}

const METHODS: [&str; 8] = [
    "GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS", OTHER,
];

const OTHER: &str = "other";

/// Registers the descriptions of the metrics of responses.
pub(crate) fn describe_metrics() {
    describe_counter!(
        REQUESTS,
        "Requests with a response, by route, method and status."
    );
    describe_histogram!(
        REQUEST_DURATION,
        "Time until the response started, by route and method, in seconds."
    );
}

/// The metric of the time until the response to a request starts.
pub const REQUEST_DURATION: &str = "keywright_http_request_duration_seconds";

const REQUESTS: &str = "keywright_http_requests_total";

/// The variable segments of a request's path, stored in its extensions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathSegments(Vec<String>);

impl PathSegments {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn first(&self) -> Option<&str> {
        self.0.first().map(String::as_str)
    }

    fn ids<const COUNT: usize>(&self) -> Option<[Uuid; COUNT]> {
        let ids = self.0.iter().map(|segment| segment.parse());
        let ids: Vec<Uuid> = ids.collect::<Result<_, _>>().ok()?;
        ids.try_into().ok()
    }
}

/// The ids in a request's path, in order. If the variable segments are not exactly `COUNT` UUIDs, each is the nil UUID, which is
/// unknown.
pub(crate) struct PathIds<const COUNT: usize>(pub(crate) [Uuid; COUNT]);

impl<S: Sync, const COUNT: usize> FromRequestParts<S> for PathIds<COUNT> {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let segments = parts.extensions.get::<PathSegments>();
        let ids = segments.and_then(PathSegments::ids);
        Ok(Self(ids.unwrap_or([Uuid::nil(); COUNT])))
    }
}

/// The services, and the authenticated caller of a request.
pub(crate) struct Call {
    pub(crate) api: Arc<Api>,
    pub(crate) caller: Arc<Caller>,
}

impl FromRequestParts<Arc<Api>> for Call {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, ApiError> {
        let caller = parts.extensions.get::<Arc<Caller>>();
        let caller = caller.ok_or_else(|| ApiError::from(TokenError::Absent))?;
        Ok(Self {
            api: Arc::clone(api),
            caller: Arc::clone(caller),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(paths: &[&str]) -> RouteTable {
        RouteTable::new(paths.iter().map(|path| Mounted {
            path: (*path).to_owned(),
            is_open: false,
            is_of_user_interface: false,
            follows_mode: true,
            handler: MethodHandler {
                method: Method::GET,
                action: None,
                handle: bound(async || StatusCode::OK, ()),
            },
        }))
    }

    #[test]
    fn a_path_is_found_with_its_variable_segments() {
        let table = table(&[
            "/",
            "/a",
            "/a/{id}",
            "/a/b",
            "/a/{id}/c/{other}",
            "/d",
            "/d/{*}",
        ]);
        for (path, found) in [
            ("/", Some(("/", &[][..]))),
            ("/a", Some(("/a", &[]))),
            ("/a/b", Some(("/a/b", &[]))),
            ("/a/x", Some(("/a/{id}", &["x"]))),
            ("/a/{id}", Some(("/a/{id}", &["{id}"]))),
            ("/a/x/c/y", Some(("/a/{id}/c/{other}", &["x", "y"]))),
            ("/a/", None),
            ("/a/{id}/c", None),
            ("/a/x/c/", None),
            ("/a/x/c/y/z", None),
            ("/b", None),
            ("/d", Some(("/d", &[]))),
            ("/d/x", Some(("/d/{*}", &[]))),
            ("/d/x/y/z", Some(("/d/{*}", &[]))),
            ("*", None),
            ("", None),
        ] {
            let expected = found.map(|(pattern, segments)| {
                let segments = segments.iter().map(|segment| (*segment).to_owned());
                (pattern, PathSegments(segments.collect()))
            });
            let found = table.find(path);
            let found = found.map(|(known, segments)| (known.path.as_str(), segments));
            assert_eq!(found, expected, "{path}");
        }
    }
}
