//! The routes of the service, and the access that each requires.

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

/// A route to the handler of a module, with its description.
macro_rules! route {
    ($method:ident $path:expr, $access:expr, $($module:ident)::+) => {
        Route::new(
            Method::$method,
            $path,
            $access,
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
        route!(GET "/docs", Open, description::reference),
        route!(GET "/openapi.json", Open, description::openapi),
        route!(GET "/health", Open, operations::health),
        route!(GET "/info", Open, operations::info),
        route!(GET MANAGEMENT, Identity, management::get),
        route!(POST MANAGEMENT, Identity, management::set),
        route!(GET "/api/v1/key-usage", Identity, operations::key_usage),
        route!(GET "/api/v1/types", Identity, types::list),
        route!(GET "/version", Identity, operations::version),
    ]
}

fn credential_routes() -> Vec<Route> {
    vec![
        route!(GET DATA, Permission(Read), credentials::get),
        route!(PUT DATA, Permission(Write), credentials::set),
        route!(POST DATA, Permission(Write), credentials::generate),
        route!(DELETE DATA, Permission(Delete), credentials::delete),
        route!(GET "/api/v1/data/{id}", Permission(Read), credentials::get_by_id),
        route!(POST "/api/v1/regenerate", Permission(Write), credentials::regenerate),
        route!(POST "/api/v1/bulk-regenerate", Permission(Read), credentials::bulk_regenerate),
        route!(POST INTERPOLATE, Permission(Read), interpolation::interpolate),
    ]
}

fn certificate_routes() -> Vec<Route> {
    vec![
        route!(GET "/api/v1/certificates", Permission(Read), certificates::list),
        route!(POST "/api/v1/certificates/{certificate_id}/regenerate", Permission(Write), certificates::regenerate),
        route!(PUT "/api/v1/certificates/{certificate_id}/update_transitional_version", Permission(Write), certificates::update_transitional_version),
        route!(GET CERTIFICATE_VERSIONS, Permission(Read), certificates::versions),
        route!(POST CERTIFICATE_VERSIONS, Permission(Write), certificates::add_version),
        route!(DELETE "/api/v1/certificates/{certificate_id}/versions/{version_id}", Permission(Delete), certificates::delete_version),
    ]
}

fn permission_routes() -> Vec<Route> {
    vec![
        route!(GET PERMISSIONS, Permission(ReadAcl), permissions::get),
        route!(POST PERMISSIONS, Permission(WriteAcl), permissions::add),
        route!(GET "/api/v2/permissions/explain", Permission(ReadAcl), permissions::explain),
        route!(GET ONE_PERMISSION, Permission(ReadAcl), permissions::get_by_id),
        route!(PUT ONE_PERMISSION, Permission(WriteAcl), permissions::replace),
        route!(PATCH ONE_PERMISSION, Permission(WriteAcl), permissions::amend),
        route!(DELETE ONE_PERMISSION, Permission(WriteAcl), permissions::delete),
    ]
}

fn permission_by_credential_routes() -> Vec<Route> {
    use permissions::by_credential::{add, delete, list};
    vec![
        route!(GET PERMISSIONS_BY_CREDENTIAL, Permission(ReadAcl), list),
        route!(POST PERMISSIONS_BY_CREDENTIAL, Permission(WriteAcl), add),
        route!(DELETE PERMISSIONS_BY_CREDENTIAL, Permission(WriteAcl), delete),
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

const DATA: &str = "/api/v1/data";

const CERTIFICATE_VERSIONS: &str = "/api/v1/certificates/{certificate_id}/versions";

const PERMISSIONS: &str = "/api/v2/permissions";

const ONE_PERMISSION: &str = "/api/v2/permissions/{permission_id}";

const PERMISSIONS_BY_CREDENTIAL: &str = "/api/v1/permissions";
