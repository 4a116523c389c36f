//! The whole service, from the request to the response, over ports that keep everything in memory.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets what it does not expect should end there"
)]

mod audit;
mod audit_by_requests;
mod certificates;
mod credentials;
mod edge;
mod fakes;
mod harness;
mod identity;
mod identity_provider;
mod kept_sink;
mod logs;
mod management;
mod memory;
mod paths;
mod permissions;
mod permissions_in_memory;
mod read_only;
mod reads_in_memory;
mod response_memory;
mod retention;
mod routes;
mod tokens;
