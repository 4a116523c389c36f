//! The whole service, from the request to the response, with ports that store everything in memory.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first unexpected result"
)]

mod audit;
mod audit_by_requests;
mod bulk_regenerate;
mod credentials;
mod edge;
mod fakes;
mod harness;
mod memory;
mod paths;
mod permissions_in_memory;
mod routes;
mod tokens;
