//! The API's description, and conformance to it.

mod documents;
mod examples;
mod schemathesis;
