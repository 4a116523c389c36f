//! The actions of requests in the audit trail.

use axum::http::Method;

/// Actions of endpoints with two actions.
pub(crate) mod actions {
    /// A search, at the path for reading.
    pub(crate) const FIND: &str = "FIND";
    /// A regeneration, at the path for generating.
    pub(crate) const REGENERATE: &str = "REGENERATE";
    /// Reading one certificate, at the path for listing all.
    pub(crate) const GET_CERTIFICATE: &str = "GET_CERTIFICATE";
}

/// Returns the action of a request, or `None` if it is not audited.
pub(super) fn action(method: &Method, route: Option<&str>) -> Option<&'static str> {
    let Some(route) = route else {
        return Some(UNKNOWN);
    };
    if NOT_AUDITED.contains(&route) {
        return None;
    }
    // HEAD has the same handler as GET.
    let method = if method == Method::HEAD {
        &Method::GET
    } else {
        method
    };
    let found = ACTIONS.iter().find(|(of_method, of_route, _)| {
        *of_method == method.as_str() && is_same_route(of_route, route)
    });
    Some(found.map_or(UNKNOWN, |(_, _, action)| action))
}

/// Returns whether two routes are the same, except for the names of their parameters.
fn is_same_route(one: &str, other: &str) -> bool {
    let is_same = |(one, other): (&str, &str)| {
        one == other || (one.starts_with('{') && other.starts_with('{'))
    };
    one.split('/').count() == other.split('/').count()
        && one.split('/').zip(other.split('/')).all(is_same)
}

/// The action for an unknown path or method.
const UNKNOWN: &str = "UNKNOWN";

/// Routes that access no stored credentials, and that monitors and clients call frequently.
const NOT_AUDITED: [&str; 3] = ["/version", "/api/v1/key-usage", "/api/v1/types"];

/// The actions of routes that require authentication.
const ACTIONS: &[(&str, &str, &str)] = &[
    ("GET", "/api/v1/data", "GET"),
    ("PUT", "/api/v1/data", "SET"),
    ("POST", "/api/v1/data", "GENERATE"),
    ("DELETE", "/api/v1/data", "DELETE"),
    ("GET", "/api/v1/data/{id}", "GET"),
    ("POST", "/api/v1/regenerate", "REGENERATE"),
    ("POST", "/api/v1/bulk-regenerate", "BULK_REGENERATE"),
    ("POST", "/api/v1/interpolate", "INTERPOLATE"),
    ("GET", "/api/v1/certificates", "GET_ALL_CERTIFICATES"),
    (
        "POST",
        "/api/v1/certificates/{certificate_id}/regenerate",
        "REGENERATE_CERTIFICATE",
    ),
    (
        "PUT",
        "/api/v1/certificates/{certificate_id}/update_transitional_version",
        "UPDATE_TRANSITIONAL_VERSION",
    ),
    (
        "GET",
        "/api/v1/certificates/{certificate_id}/versions",
        "GET_CERTIFICATE_VERSIONS",
    ),
    (
        "POST",
        "/api/v1/certificates/{certificate_id}/versions",
        "ADD_CERTIFICATE_VERSION",
    ),
    (
        "DELETE",
        "/api/v1/certificates/{certificate_id}/versions/{version_id}",
        "DELETE_CERTIFICATE_VERSION",
    ),
    ("GET", "/api/v1/permissions", "GET_PERMISSIONS"),
    ("POST", "/api/v1/permissions", "ADD_PERMISSIONS"),
    ("DELETE", "/api/v1/permissions", "DELETE_PERMISSIONS"),
    ("GET", "/api/v2/permissions", "GET_PERMISSIONS"),
    ("POST", "/api/v2/permissions", "ADD_PERMISSIONS"),
    ("GET", "/api/v2/permissions/explain", "EXPLAIN_PERMISSIONS"),
    (
        "GET",
        "/api/v2/permissions/{permission_id}",
        "GET_PERMISSIONS",
    ),
    (
        "PUT",
        "/api/v2/permissions/{permission_id}",
        "PUT_PERMISSIONS",
    ),
    (
        "PATCH",
        "/api/v2/permissions/{permission_id}",
        "PATCH_PERMISSIONS",
    ),
    (
        "DELETE",
        "/api/v2/permissions/{permission_id}",
        "DELETE_PERMISSIONS",
    ),
    ("GET", "/management", "GET_MANAGEMENT"),
    ("POST", "/management", "SET_MANAGEMENT"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{route::Access, router::routes};

    #[test]
    fn unknown_routes_are_audited() {
        for (method, route, expected) in [
            (Method::GET, None, Some("UNKNOWN")),
            (Method::PATCH, Some("/api/v1/data"), Some("UNKNOWN")),
            (Method::GET, Some("/api/v9/new"), Some("UNKNOWN")),
            (Method::HEAD, Some("/api/v1/data"), Some("GET")),
            (Method::GET, Some("/version"), None),
            (Method::GET, Some("/api/v1/key-usage"), None),
            (Method::GET, Some("/api/v1/types"), None),
        ] {
            assert_eq!(action(&method, route), expected, "{method} {route:?}");
        }
    }

    #[test]
    fn every_authenticated_route_has_an_action_or_exemption() {
        for route in routes() {
            if route.access() == Access::Open {
                continue;
            }
            assert_ne!(
                action(route.method(), Some(route.path())),
                Some(UNKNOWN),
                "{} {}",
                route.method(),
                route.path()
            );
        }
    }

    #[test]
    fn no_route_has_two_actions_for_one_method() {
        let mut seen = std::collections::HashSet::new();
        for (method, route, _) in ACTIONS {
            assert!(seen.insert((method, route)), "{method} {route}");
        }
    }
}
