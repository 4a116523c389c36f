//! The HTTP edge: it parses a request, calls one use case of `keywright-core`, and renders what came of it.
//!
//! [`Pipeline`] makes the whole service out of an [`Api`], and `pipeline.rs` is the life of a request, from top to bottom.
//! [`management_router`] makes the service for those who watch the server. Each verb is one file,
//! `routes/<noun>/<verb>.rs`, and each reads in one order: the request, the response, what the description says, the
//! handler. Where to find the rest:
//!
//! - `request/` reads bodies and queries, so that an unknown field, a missing one and one of the wrong kind each get the
//!   status that clients know;
//! - `response/` renders versions, and holds the one place where a failure becomes a status and a body;
//! - `description/` makes the API's description of what the routes say, and the page that shows it;
//! - [`authentication`] finds out who is asking; [`development_identity`] is an identity provider for development;
//! - [`audit`] writes down who touched what;
//! - `request/path.rs` gives a path the one form by which everything else goes; `server_mode.rs` is read-only mode, and
//!   `admission/` says which requests are taken at all;
//! - `telemetry.rs` gives each request its id, its span and its line in the access log, `measure.rs` its measurements.
//!
//! To add a verb: write its file, put it into the list of routes in `router.rs` with what its caller needs and what describes it, and into the
//! table in `audit/action.rs` with what the audit trail calls it, and, when a failure has another status there than elsewhere, add
//! a case to `response::Endpoint`. Tests ask for a request to each route, and for its action.

mod admission;
mod api;
pub mod audit;
pub mod authentication;
mod connection;
mod description;
pub mod development_identity;
mod management_router;
mod measure;
mod pipeline;
mod request;
mod response;
mod route;
mod router;
mod routes;
mod server_mode;
mod telemetry;

pub use admission::RequestLimits;
pub use api::{Api, Information, Limits};
/// What [`management_router`] makes: a service for each connection to clone.
pub use axum::Router;
pub use connection::Connection;
pub use management_router::{Management, Measurements, management_router};
pub use measure::{REQUEST_DURATION, describe_metrics};
pub use pipeline::Pipeline;
pub use response::{FRAME_BYTES_MAX, Held, HeldBody};
pub use route::{Access, Route};
pub use router::routes;
pub use server_mode::{ReadOnlyMode, ServerMode};
pub use telemetry::ACCESS_LOG;
