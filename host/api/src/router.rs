//! The routes of the service, and the routes for monitoring.

use std::sync::Arc;

use axum::{
    Router,
    http::{StatusCode, header::CONTENT_TYPE},
    middleware::{Next, from_fn},
    routing::get,
};

use crate::{
    Api, InterfaceRoute,
    development_identity::DevelopmentIdentity,
    response::{ApiError, or_panicked},
    route::{Route, RouteTable},
    routes::{
        certificates, credentials,
        health::{self, HealthCheck},
        interpolation, management, operations, permissions, types,
    },
};

/// Returns all described routes of the service: all except the development identity provider's, and `/docs/index.html`. A test
/// calls each route without any permission.
pub fn routes() -> Vec<Route> {
    vec![
        operations::reference_route("/docs"),
        operations::openapi_route(),
        health::route(),
        operations::info_route(),
        management::get_route(),
        management::set_route(),
        operations::key_usage_route(),
        types::route(),
        operations::version_route(),
        credentials::get::get_route(),
        credentials::set::set_route(),
        credentials::generate::generate_route(),
        credentials::set::delete_route(),
        credentials::get::get_by_id_route(),
        credentials::generate::regenerate_route(),
        credentials::bulk_regenerate::route(),
        interpolation::route(),
        certificates::list::route(),
        certificates::regenerate::route(),
        certificates::versions::update_transitional_route(),
        certificates::versions::list_route(),
        certificates::versions::add_route(),
        certificates::versions::delete_route(),
        permissions::get_route(),
        permissions::add_route(),
        permissions::explain::route(),
        permissions::get_by_id_route(),
        permissions::replace_route(),
        permissions::amend_route(),
        permissions::delete_route(),
        permissions::by_credential::list_route(),
        permissions::by_credential::add_route(),
        permissions::by_credential::delete_route(),
    ]
}

/// Returns the table of all routes, including the development identity provider's and the user interface's if they are
/// enabled.
pub(crate) fn route_table(api: &Arc<Api>) -> RouteTable {
    // CredHub's path.
    let reference = operations::reference_route("/docs/index.html");
    let routes = routes()
        .into_iter()
        .chain([reference])
        .map(|route| route.mounted(Arc::clone(api)));
    let identity = api.development_identity.iter();
    let interface = api
        .interface
        .iter()
        .flat_map(|interface| interface.routes());
    RouteTable::new(
        routes
            .chain(identity.flat_map(DevelopmentIdentity::routes))
            .chain(interface.map(InterfaceRoute::mounted)),
    )
}

pub(crate) fn no_such_path() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "unknown path")
}

/// Returns the service of the management address: health and metrics. It does not authenticate callers, so its responses
/// contain no data of any user. `metrics` returns all current metrics in the Prometheus text format, version 0.0.4.
pub fn management_router<M>(
    health: Arc<HealthCheck>,
    metrics: impl Fn() -> M + Clone + Send + Sync + 'static,
) -> Router
where
    M: Future<Output = String> + Send,
{
    Router::new()
        .route("/health", get(async move || health.response().await))
        .route(
            "/metrics",
            get(async move || ([(CONTENT_TYPE, MEDIA_TYPE)], metrics().await)),
        )
        .fallback(async || no_such_path())
        .method_not_allowed_fallback(async || StatusCode::NOT_FOUND)
        .layer(from_fn(async |request, next: Next| {
            or_panicked(next.run(request)).await
        }))
}

/// The media type of the Prometheus text format.
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
