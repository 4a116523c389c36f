//! The whole service, from the request to the response, with a database, and fakes of the other ports.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first unexpected result"
)]

mod audit;
mod audit_by_requests;
mod bulk_regenerate;
mod check;
mod credentials;
mod edge;
mod fakes;
mod harness;
mod routes;
mod storage;
mod tokens;
