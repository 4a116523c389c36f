//! The routes of the service, with the access that each requires and its action in the audit trail.

use std::sync::Arc;

use axum::http::Method;
use keywright_core::permission::Operation::{Delete, Read, ReadAcl, Write, WriteAcl};

use crate::{
    Api,
    development_identity::DevelopmentIdentity,
    route::{
        Access::{Identity, Open, Permission},
        Route, RouteTable,
    },
    routes::{
        certificates, credentials, description, interpolation, management, operations, permissions,
        types,
    },
    server_mode::{INTERPOLATE, MANAGEMENT},
};

/// A route to the handler of a module, with its action in the audit trail and its description.
macro_rules! route {
    ($method:ident $path:expr, $access:expr, $action:expr, $($module:ident)::+) => {
        Route::new(
            Method::$method,
            $path,
            $access,
            $action,
            $($module)::+::handler,
            $($module)::+::describe,
        )
    };
}

/// Returns all routes of the service, except those of the development identity provider. A test calls each of them without
/// any permission.
#[must_use]
pub fn routes() -> Vec<Route> {
    [
        operation_routes(),
        credential_routes(),
        certificate_routes(),
        permission_routes(),
        permission_by_credential_routes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn operation_routes() -> Vec<Route> {
    vec![
        route!(GET "/docs", Open, NOT_AUDITED, description::reference),
        route!(GET "/openapi.json", Open, NOT_AUDITED, description::openapi),
        route!(GET "/health", Open, NOT_AUDITED, operations::health),
        route!(GET "/info", Open, NOT_AUDITED, operations::info),
        route!(GET MANAGEMENT, Identity, "GET_MANAGEMENT", management::get),
        route!(POST MANAGEMENT, Identity, "SET_MANAGEMENT", management::set),
        route!(GET "/api/v1/key-usage", Identity, NOT_AUDITED, operations::key_usage),
        route!(GET "/api/v1/types", Identity, NOT_AUDITED, types::list),
        route!(GET "/version", Identity, NOT_AUDITED, operations::version),
    ]
}

fn credential_routes() -> Vec<Route> {
    vec![
        route!(GET DATA, Permission(Read), "GET", credentials::get),
        route!(PUT DATA, Permission(Write), "SET", credentials::set),
        route!(POST DATA, Permission(Write), "GENERATE", credentials::generate),
        route!(DELETE DATA, Permission(Delete), "DELETE", credentials::delete),
        route!(GET "/api/v1/data/{id}", Permission(Read), "GET", credentials::get_by_id),
        route!(POST "/api/v1/regenerate", Permission(Write), "REGENERATE", credentials::regenerate),
        route!(POST "/api/v1/bulk-regenerate", Permission(Read), "BULK_REGENERATE", credentials::bulk_regenerate),
        route!(POST INTERPOLATE, Permission(Read), "INTERPOLATE", interpolation::interpolate),
    ]
}

fn certificate_routes() -> Vec<Route> {
    vec![
        route!(GET "/api/v1/certificates", Permission(Read), "GET_ALL_CERTIFICATES", certificates::list),
        route!(POST "/api/v1/certificates/{certificate_id}/regenerate", Permission(Write), "REGENERATE_CERTIFICATE", certificates::regenerate),
        route!(PUT "/api/v1/certificates/{certificate_id}/update_transitional_version", Permission(Write), "UPDATE_TRANSITIONAL_VERSION", certificates::update_transitional_version),
        route!(GET CERTIFICATE_VERSIONS, Permission(Read), "GET_CERTIFICATE_VERSIONS", certificates::versions),
        route!(POST CERTIFICATE_VERSIONS, Permission(Write), "ADD_CERTIFICATE_VERSION", certificates::add_version),
        route!(DELETE "/api/v1/certificates/{certificate_id}/versions/{version_id}", Permission(Delete), "DELETE_CERTIFICATE_VERSION", certificates::delete_version),
    ]
}

fn permission_routes() -> Vec<Route> {
    vec![
        route!(GET PERMISSIONS, Permission(ReadAcl), "GET_PERMISSIONS", permissions::get),
        route!(POST PERMISSIONS, Permission(WriteAcl), "ADD_PERMISSIONS", permissions::add),
        route!(GET "/api/v2/permissions/explain", Permission(ReadAcl), "EXPLAIN_PERMISSIONS", permissions::explain),
        route!(GET ONE_PERMISSION, Permission(ReadAcl), "GET_PERMISSIONS", permissions::get_by_id),
        route!(PUT ONE_PERMISSION, Permission(WriteAcl), "PUT_PERMISSIONS", permissions::replace),
        route!(PATCH ONE_PERMISSION, Permission(WriteAcl), "PATCH_PERMISSIONS", permissions::amend),
        route!(DELETE ONE_PERMISSION, Permission(WriteAcl), "DELETE_PERMISSIONS", permissions::delete),
    ]
}

fn permission_by_credential_routes() -> Vec<Route> {
    use permissions::by_credential::{add, delete, list};
    vec![
        route!(GET PERMISSIONS_BY_CREDENTIAL, Permission(ReadAcl), "GET_PERMISSIONS", list),
        route!(POST PERMISSIONS_BY_CREDENTIAL, Permission(WriteAcl), "ADD_PERMISSIONS", add),
        route!(DELETE PERMISSIONS_BY_CREDENTIAL, Permission(WriteAcl), "DELETE_PERMISSIONS", delete),
    ]
}

/// Returns the table of all routes, including those of the development identity provider if there is one.
pub(crate) fn route_table(api: &Arc<Api>) -> RouteTable {
    let routes = routes()
        .into_iter()
        .map(|route| route.mounted(Arc::clone(api)));
    let identity = api.development_identity.iter();
    RouteTable::new(routes.chain(identity.flat_map(DevelopmentIdentity::routes)))
}

/// The action of routes that access no stored credentials. Monitors and clients call them frequently.
const NOT_AUDITED: Option<&str> = None;

const DATA: &str = "/api/v1/data";

const CERTIFICATE_VERSIONS: &str = "/api/v1/certificates/{certificate_id}/versions";

const PERMISSIONS: &str = "/api/v2/permissions";

const ONE_PERMISSION: &str = "/api/v2/permissions/{permission_id}";

const PERMISSIONS_BY_CREDENTIAL: &str = "/api/v1/permissions";
