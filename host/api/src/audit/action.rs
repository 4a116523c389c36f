//! What requests ask for, as the audit trail names it.

use axum::http::Method;

/// What the endpoints that have two actions say in the caller's trail.
pub(crate) mod told {
    /// A search, at the address of reading.
    pub(crate) const FIND: &str = "FIND";
    /// A regeneration, at the address of generating.
    pub(crate) const REGENERATE: &str = "REGENERATE";
    /// One certificate, at the address of listing all.
    pub(crate) const GET_CERTIFICATE: &str = "GET_CERTIFICATE";
}

/// The action of a request, or none when it is not audited.
pub(super) fn action(method: &Method, route: Option<&str>) -> Option<&'static str> {
    let Some(route) = route else {
        return Some(UNKNOWN);
    };
    if NOT_AUDITED.contains(&route) {
        return None;
    }
    // A request for the headers alone is answered by whatever answers the whole.
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

/// Whether two routes are one, whatever they call their parameters.
fn is_same_route(one: &str, other: &str) -> bool {
    let is_same = |(one, other): (&str, &str)| {
        one == other || (one.starts_with('{') && other.starts_with('{'))
    };
    one.split('/').count() == other.split('/').count()
        && one.split('/').zip(other.split('/')).all(is_same)
}

/// A path or a method that is not there.
const UNKNOWN: &str = "UNKNOWN";

/// Routes that touch nothing and tell nothing of what is stored, and that monitors and clients call all the time.
const NOT_AUDITED: [&str; 3] = ["/version", "/api/v1/key-usage", "/api/v1/types"];

/// The action of each route that needs an identity.
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
    fn what_is_not_in_the_table_is_audited_all_the_same() {
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
    fn every_route_that_needs_an_identity_has_an_action_or_is_not_audited() {
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
