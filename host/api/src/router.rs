//! The list of all routes of the service.

use std::sync::Arc;

use crate::{
    Api,
    development_identity::DevelopmentIdentity,
    route::{Route, RouteTable},
    routes::{
        certificates, credentials, description, interpolation, management, operations, permissions,
        types,
    },
};

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
        description::reference::route(),
        description::openapi::route(),
        operations::health::route(),
        operations::info::route(),
        management::get::route(),
        management::set::route(),
        operations::key_usage::route(),
        types::list::route(),
        operations::version::route(),
    ]
}

fn credential_routes() -> Vec<Route> {
    vec![
        credentials::get::route(),
        credentials::set::route(),
        credentials::generate::route(),
        credentials::delete::route(),
        credentials::get_by_id::route(),
        credentials::regenerate::route(),
        credentials::bulk_regenerate::route(),
        interpolation::interpolate::route(),
    ]
}

fn certificate_routes() -> Vec<Route> {
    vec![
        certificates::list::route(),
        certificates::regenerate::route(),
        certificates::update_transitional_version::route(),
        certificates::versions::route(),
        certificates::add_version::route(),
        certificates::delete_version::route(),
    ]
}

fn permission_routes() -> Vec<Route> {
    vec![
        permissions::get::route(),
        permissions::add::route(),
        permissions::explain::route(),
        permissions::get_by_id::route(),
        permissions::replace::route(),
        permissions::amend::route(),
        permissions::delete::route(),
    ]
}

fn permission_by_credential_routes() -> Vec<Route> {
    use permissions::by_credential::{add, delete, list};
    vec![list::route(), add::route(), delete::route()]
}

/// Returns the table of all routes, including those of the development identity provider if there is one.
pub(crate) fn route_table(api: &Arc<Api>) -> RouteTable {
    let routes = routes()
        .into_iter()
        .map(|route| route.mounted(Arc::clone(api)));
    let identity = api.development_identity.iter();
    RouteTable::new(routes.chain(identity.flat_map(DevelopmentIdentity::routes)))
}
