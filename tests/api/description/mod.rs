//! What the API says of itself, and whether it keeps it.

mod documents;
mod examples;
mod schemathesis;
