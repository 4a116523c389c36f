//! The HTTP API: it parses requests, calls one use case of `keywright-core` for each, and renders the results.
//!
//! [`Pipeline`] creates the service from an [`Api`]; `pipeline.rs` handles a request from start to end.
//! [`management_router`] creates the service for monitoring. Each endpoint is declared in one file below `routes/`: its
//! route (method, path, access, audit action, description), its request and response, and its handler. Other modules:
//!
//! - `request/` normalizes paths, and parses queries and bodies, so that unknown, missing and malformed fields get the statuses that
//!   clients expect;
//! - `response/` renders versions, and contains the only mapping of failures to statuses and bodies;
//! - `description/` generates the API description from the routes, and the page that shows it;
//! - [`authentication`] authenticates callers; [`development_identity`] is an identity provider for development;
//! - [`UserInterface`] is a user interface for browsers, whose requests pass through the same pipeline;
//! - [`audit`] records which caller accessed which resource;
//! - `admission.rs` limits requests, and refuses writes in read-only mode.
//!
//! To add an endpoint, write its file, and add its route to the list in `router.rs`. If the endpoint maps a failure to a
//! different status than other endpoints, add a variant to `response::Endpoint`. Tests require a request to each route.

mod admission;
pub mod audit;
pub mod authentication;
mod description;
pub mod development_identity;
mod interface;
mod pipeline;
mod request;
mod response;
mod route;
mod router;
mod routes;

pub use admission::{ReadOnlyMode, RequestLimits, ServerMode};
/// The type that [`management_router`] returns: a service that each connection clones.
pub use axum::Router;
/// The response of the service.
pub use axum::response::Response;
pub use interface::{
    InterfaceAccess, InterfaceRoute, RefusedRequest, UserInterface, status_and_message,
};
pub use pipeline::{
    ACCESS_LOG, Api, Connection, Information, Limits, Pipeline, client_network, describe_metrics,
};
pub use response::{FRAME_BYTES_MAX, Held, HeldBody, error_chain};
pub use route::{Access, BoundHandler, REQUEST_DURATION, Route};
pub use router::{management_router, routes};
pub use routes::health::HealthCheck;
