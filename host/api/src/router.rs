//! Which path leads where, and what every request passes on its way.

use std::sync::Arc;

use axum::{
    Router,
    middleware::{from_fn, from_fn_with_state},
    routing::{delete, get, post, put},
};
use tower::{Layer, util::MapRequestLayer};
use tower_http::catch_panic::CatchPanicLayer;

use crate::{
    Api,
    authentication::authenticate,
    request::with_normal_path,
    routes::{
        certificates, credentials, interpolation, management,
        operations::{self, no_such_method, no_such_path},
    },
    server_mode::{self, INTERPOLATE, MANAGEMENT, admit},
    telemetry::{observe, panicked},
};

/// The whole service.
///
/// A request passes, from the outside in: the one form of its path, the request's id and its access log, the catching of
/// panics, authentication, routing, and what the server's mode admits. Authentication stands around everything that is
/// not mounted as open, so that what is unknown is told only to those who are known; a path has been given its one form
/// before either is decided.
pub fn router(api: Api) -> Router {
    let api = Arc::new(api);
    let open = Router::new()
        .route("/info", get(operations::info::handler))
        .route("/health", get(operations::health::handler))
        .route_layer(from_fn_with_state(Arc::clone(&api), admit))
        .method_not_allowed_fallback(server_mode::no_such_method)
        .with_state(Arc::clone(&api));
    let open = match &api.development_identity {
        Some(identity) => open.merge(identity.routes()),
        None => open,
    };
    let service = authenticated(Arc::clone(&api))
        .merge(open.method_not_allowed_fallback(no_such_method))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(observe));
    Router::new().fallback_service(MapRequestLayer::new(with_normal_path).layer(service))
}

/// What needs an identity: everything but what is mounted as open, unknown paths included.
fn authenticated(api: Arc<Api>) -> Router {
    let data = get(credentials::get::handler)
        .put(credentials::set::handler)
        .post(credentials::generate::handler)
        .delete(credentials::delete::handler);
    Router::new()
        .route("/api/v1/data", data)
        .route("/api/v1/data/{id}", get(credentials::get_by_id::handler))
        .route("/api/v1/regenerate", post(credentials::regenerate::handler))
        .merge(certificate_routes())
        .route(
            "/api/v1/bulk-regenerate",
            post(credentials::bulk_regenerate::handler),
        )
        .route(INTERPOLATE, post(interpolation::interpolate::handler))
        .route(
            MANAGEMENT,
            get(management::get::handler).post(management::set::handler),
        )
        .route("/api/v1/key-usage", get(operations::key_usage::handler))
        .route("/version", get(operations::version::handler))
        .route_layer(from_fn_with_state(Arc::clone(&api), admit))
        .fallback(no_such_path)
        .method_not_allowed_fallback(server_mode::no_such_method)
        .with_state(Arc::clone(&api))
        .layer(from_fn_with_state(api, authenticate))
}

fn certificate_routes() -> Router<Arc<Api>> {
    let versions = get(certificates::versions::handler).post(certificates::add_version::handler);
    Router::new()
        .route("/api/v1/certificates", get(certificates::list::handler))
        .route(
            "/api/v1/certificates/{certificate_id}/regenerate",
            post(certificates::regenerate::handler),
        )
        .route(
            "/api/v1/certificates/{certificate_id}/update_transitional_version",
            put(certificates::update_transitional_version::handler),
        )
        .route("/api/v1/certificates/{certificate_id}/versions", versions)
        .route(
            "/api/v1/certificates/{certificate_id}/versions/{version_id}",
            delete(certificates::delete_version::handler),
        )
}
