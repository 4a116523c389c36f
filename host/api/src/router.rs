//! Which path leads where, what each needs, and what every request passes on its way.

use std::sync::Arc;

use axum::{
    Router,
    middleware::{from_fn, from_fn_with_state},
};
use keywright_core::permission::Operation::{Delete, Read, ReadAcl, Write, WriteAcl};
use tower::{Layer, util::MapRequestLayer};
use tower_http::catch_panic::CatchPanicLayer;

use crate::{
    Api,
    admission::{self, Admission, check_head},
    audit,
    authentication::authenticate,
    request::with_normal_path,
    route::{
        Access::{Identity, Open, Permission},
        Route, mounted,
    },
    routes::{
        certificates, credentials, description, interpolation, management,
        operations::{self, no_such_method, no_such_path},
        permissions, types,
    },
    server_mode::{self, INTERPOLATE, MANAGEMENT},
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
        permission_routes(),
        permission_by_credential_routes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn operation_routes() -> Vec<Route> {
    vec![
        Route::get(
            "/docs",
            Open,
            description::reference::handler,
            description::reference::describe,
        ),
        Route::get(
            "/openapi.json",
            Open,
            description::openapi::handler,
            description::openapi::describe,
        ),
        Route::get(
            "/health",
            Open,
            operations::health::handler,
            operations::health::describe,
        ),
        Route::get(
            "/info",
            Open,
            operations::info::handler,
            operations::info::describe,
        ),
        Route::get(
            MANAGEMENT,
            Identity,
            management::get::handler,
            management::get::describe,
        ),
        Route::post(
            MANAGEMENT,
            Identity,
            management::set::handler,
            management::set::describe,
        ),
        Route::get(
            "/api/v1/key-usage",
            Identity,
            operations::key_usage::handler,
            operations::key_usage::describe,
        ),
        Route::get(
            "/api/v1/types",
            Identity,
            types::list::handler,
            types::list::describe,
        ),
        Route::get(
            "/version",
            Identity,
            operations::version::handler,
            operations::version::describe,
        ),
    ]
}

fn credential_routes() -> Vec<Route> {
    vec![
        Route::get(
            DATA,
            Permission(Read),
            credentials::get::handler,
            credentials::get::describe,
        ),
        Route::put(
            DATA,
            Permission(Write),
            credentials::set::handler,
            credentials::set::describe,
        ),
        Route::post(
            DATA,
            Permission(Write),
            credentials::generate::handler,
            credentials::generate::describe,
        ),
        Route::delete(
            DATA,
            Permission(Delete),
            credentials::delete::handler,
            credentials::delete::describe,
        ),
        Route::get(
            "/api/v1/data/{id}",
            Permission(Read),
            credentials::get_by_id::handler,
            credentials::get_by_id::describe,
        ),
        Route::post(
            "/api/v1/regenerate",
            Permission(Write),
            credentials::regenerate::handler,
            credentials::regenerate::describe,
        ),
        Route::post(
            "/api/v1/bulk-regenerate",
            Permission(Read),
            credentials::bulk_regenerate::handler,
            credentials::bulk_regenerate::describe,
        ),
        Route::post(
            INTERPOLATE,
            Permission(Read),
            interpolation::interpolate::handler,
            interpolation::interpolate::describe,
        ),
    ]
}

fn certificate_routes() -> Vec<Route> {
    vec![
        Route::get(
            "/api/v1/certificates",
            Permission(Read),
            certificates::list::handler,
            certificates::list::describe,
        ),
        Route::post(
            "/api/v1/certificates/{certificate_id}/regenerate",
            Permission(Write),
            certificates::regenerate::handler,
            certificates::regenerate::describe,
        ),
        Route::put(
            "/api/v1/certificates/{certificate_id}/update_transitional_version",
            Permission(Write),
            certificates::update_transitional_version::handler,
            certificates::update_transitional_version::describe,
        ),
        Route::get(
            CERTIFICATE_VERSIONS,
            Permission(Read),
            certificates::versions::handler,
            certificates::versions::describe,
        ),
        Route::post(
            CERTIFICATE_VERSIONS,
            Permission(Write),
            certificates::add_version::handler,
            certificates::add_version::describe,
        ),
        Route::delete(
            "/api/v1/certificates/{certificate_id}/versions/{version_id}",
            Permission(Delete),
            certificates::delete_version::handler,
            certificates::delete_version::describe,
        ),
    ]
}

fn permission_routes() -> Vec<Route> {
    vec![
        Route::get(
            PERMISSIONS,
            Permission(ReadAcl),
            permissions::get::handler,
            permissions::get::describe,
        ),
        Route::post(
            PERMISSIONS,
            Permission(WriteAcl),
            permissions::add::handler,
            permissions::add::describe,
        ),
        Route::get(
            "/api/v2/permissions/explain",
            Permission(ReadAcl),
            permissions::explain::handler,
            permissions::explain::describe,
        ),
        Route::get(
            ONE_PERMISSION,
            Permission(ReadAcl),
            permissions::get_by_id::handler,
            permissions::get_by_id::describe,
        ),
        Route::put(
            ONE_PERMISSION,
            Permission(WriteAcl),
            permissions::replace::handler,
            permissions::replace::describe,
        ),
        Route::patch(
            ONE_PERMISSION,
            Permission(WriteAcl),
            permissions::amend::handler,
            permissions::amend::describe,
        ),
        Route::delete(
            ONE_PERMISSION,
            Permission(WriteAcl),
            permissions::delete::handler,
            permissions::delete::describe,
        ),
    ]
}

fn permission_by_credential_routes() -> Vec<Route> {
    use permissions::by_credential::{add, delete, list};
    vec![
        Route::get(
            PERMISSIONS_BY_CREDENTIAL,
            Permission(ReadAcl),
            list::handler,
            list::describe,
        ),
        Route::post(
            PERMISSIONS_BY_CREDENTIAL,
            Permission(WriteAcl),
            add::handler,
            add::describe,
        ),
        Route::delete(
            PERMISSIONS_BY_CREDENTIAL,
            Permission(WriteAcl),
            delete::handler,
            delete::describe,
        ),
    ]
}

/// The whole service.
///
/// A request passes, from the outside in: the one form of its path, the request's id and its access log, the limits of its
/// head, the catching of panics, authentication, the audit trail, panics once more (so that what panics is audited),
/// admission, routing, and what the server's mode admits. Authentication stands around everything that is not open, so that
/// what is unknown is told only to those who are known; a path has been given its one form before either is decided.
/// Admission stands inside the audit trail, so that what it refuses is audited; but such an answer does not wait until its
/// event is written, or whoever asks too often would hold a connection for as long as the sink takes.
pub fn router(api: Api) -> Router {
    let api = Arc::new(api);
    let (open, guarded): (Vec<_>, Vec<_>) = routes()
        .into_iter()
        .partition(|route| route.access() == Open);
    let open = mounted(open)
        .route_layer(from_fn_with_state(Arc::clone(&api), server_mode::admit))
        .method_not_allowed_fallback(server_mode::no_such_method)
        .with_state(Arc::clone(&api));
    let open = match &api.development_identity {
        Some(identity) => open.merge(identity.routes()),
        None => open,
    };
    let service = authenticated(guarded, Arc::clone(&api))
        .merge(open.method_not_allowed_fallback(no_such_method))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(api.request_limits, check_head))
        .layer(from_fn(observe));
    Router::new().fallback_service(MapRequestLayer::new(with_normal_path).layer(service))
}

/// What needs an identity: everything but what is open, unknown paths included.
fn authenticated(routes: Vec<Route>, api: Arc<Api>) -> Router {
    let admission = Arc::new(Admission::new(&api.request_limits));
    mounted(routes)
        .route_layer(from_fn_with_state(Arc::clone(&api), server_mode::admit))
        .fallback(no_such_path)
        .method_not_allowed_fallback(server_mode::no_such_method)
        .with_state(Arc::clone(&api))
        .layer(from_fn_with_state(admission, admission::admit))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(Arc::clone(&api), audit::record))
        .layer(from_fn_with_state(api, authenticate))
}

const DATA: &str = "/api/v1/data";

const CERTIFICATE_VERSIONS: &str = "/api/v1/certificates/{certificate_id}/versions";

const PERMISSIONS: &str = "/api/v2/permissions";

const ONE_PERMISSION: &str = "/api/v2/permissions/{permission_id}";

const PERMISSIONS_BY_CREDENTIAL: &str = "/api/v1/permissions";
