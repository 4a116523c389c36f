//! Which path leads where, and what every request passes on its way.

use std::sync::Arc;

use axum::{
    Router,
    middleware::{from_fn, from_fn_with_state},
    routing::{delete, get, post, put},
};
use tower::Layer;
use tower_http::{catch_panic::CatchPanicLayer, normalize_path::NormalizePathLayer};

use crate::{
    Api, audit,
    authentication::authenticate,
    routes::{
        certificates, credentials, interpolation,
        operations::{self, no_such_method, no_such_path},
    },
    telemetry::{observe, panicked},
};

/// The whole service.
///
/// A request passes, from the outside in: trailing slashes, the request's id and its access log, the catching of panics,
/// authentication, the audit trail (with panics caught inside it once more, so that they are audited), and routing. Authentication stands around everything that is not mounted as open, so that what is
/// unknown is told only to those who are known.
pub fn router(api: Api) -> Router {
    let api = Arc::new(api);
    let open = Router::new()
        .route("/info", get(operations::info::handler))
        .route("/health", get(operations::health::handler))
        .with_state(Arc::clone(&api));
    let open = match &api.development_identity {
        Some(identity) => open.merge(identity.routes()),
        None => open,
    };
    let service = authenticated(Arc::clone(&api))
        .merge(open.method_not_allowed_fallback(no_such_method))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(observe));
    Router::new().fallback_service(NormalizePathLayer::trim_trailing_slash().layer(service))
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
        .route(
            "/api/v1/interpolate",
            post(interpolation::interpolate::handler),
        )
        .route("/version", get(operations::version::handler))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .with_state(Arc::clone(&api))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(Arc::clone(&api), audit::record))
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
