//! Which path leads where, what each needs, and what every request passes on its way.

use std::sync::Arc;

use axum::{
    Router,
    middleware::{from_fn, from_fn_with_state},
};
use keywright_core::permission::Operation::{Delete, Read, Write};
use tower::Layer;
use tower_http::{catch_panic::CatchPanicLayer, normalize_path::NormalizePathLayer};

use crate::{
    Api, audit,
    authentication::authenticate,
    route::{
        Access::{Identity, Open, Permission},
        Route, mounted,
    },
    routes::{
        certificates, credentials, interpolation,
        operations::{self, no_such_method, no_such_path},
    },
    telemetry::{observe, panicked},
};

/// Every route of the service. There are no others but those of the development identity provider: the router is made of
/// this list, which a test goes through as a caller without any permission.
#[must_use]
pub fn routes() -> Vec<Route> {
    [
        operation_routes(),
        credential_routes(),
        certificate_routes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn operation_routes() -> Vec<Route> {
    vec![
        Route::get("/health", Open, operations::health::handler),
        Route::get("/info", Open, operations::info::handler),
        Route::get("/version", Identity, operations::version::handler),
    ]
}

fn credential_routes() -> Vec<Route> {
    vec![
        Route::get(DATA, Permission(Read), credentials::get::handler),
        Route::put(DATA, Permission(Write), credentials::set::handler),
        Route::post(DATA, Permission(Write), credentials::generate::handler),
        Route::delete(DATA, Permission(Delete), credentials::delete::handler),
        Route::get(
            "/api/v1/data/{id}",
            Permission(Read),
            credentials::get_by_id::handler,
        ),
        Route::post(
            "/api/v1/regenerate",
            Permission(Write),
            credentials::regenerate::handler,
        ),
        Route::post(
            "/api/v1/bulk-regenerate",
            Permission(Read),
            credentials::bulk_regenerate::handler,
        ),
        Route::post(
            "/api/v1/interpolate",
            Permission(Read),
            interpolation::interpolate::handler,
        ),
    ]
}

fn certificate_routes() -> Vec<Route> {
    vec![
        Route::get(
            "/api/v1/certificates",
            Permission(Read),
            certificates::list::handler,
        ),
        Route::post(
            "/api/v1/certificates/{certificate_id}/regenerate",
            Permission(Write),
            certificates::regenerate::handler,
        ),
        Route::put(
            "/api/v1/certificates/{certificate_id}/update_transitional_version",
            Permission(Write),
            certificates::update_transitional_version::handler,
        ),
        Route::get(
            CERTIFICATE_VERSIONS,
            Permission(Read),
            certificates::versions::handler,
        ),
        Route::post(
            CERTIFICATE_VERSIONS,
            Permission(Write),
            certificates::add_version::handler,
        ),
        Route::delete(
            "/api/v1/certificates/{certificate_id}/versions/{version_id}",
            Permission(Delete),
            certificates::delete_version::handler,
        ),
    ]
}

/// The whole service.
///
/// A request passes, from the outside in: trailing slashes, the request's id and its access log, the catching of panics,
/// authentication, the audit trail, panics once more (so that what panics is audited), and routing. Authentication stands
/// around everything that is not open, so that what is unknown is told only to those who are known.
pub fn router(api: Api) -> Router {
    let api = Arc::new(api);
    let (open, guarded): (Vec<_>, Vec<_>) = routes()
        .into_iter()
        .partition(|route| route.access() == Open);
    let open = mounted(open).with_state(Arc::clone(&api));
    let open = match &api.development_identity {
        Some(identity) => open.merge(identity.routes()),
        None => open,
    };
    let service = authenticated(guarded, Arc::clone(&api))
        .merge(open.method_not_allowed_fallback(no_such_method))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(observe));
    Router::new().fallback_service(NormalizePathLayer::trim_trailing_slash().layer(service))
}

/// What needs an identity: everything but what is open, unknown paths included.
fn authenticated(routes: Vec<Route>, api: Arc<Api>) -> Router {
    mounted(routes)
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .with_state(Arc::clone(&api))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(Arc::clone(&api), audit::record))
        .layer(from_fn_with_state(api, authenticate))
}

const DATA: &str = "/api/v1/data";

const CERTIFICATE_VERSIONS: &str = "/api/v1/certificates/{certificate_id}/versions";
