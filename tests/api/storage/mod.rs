//! Storage of credentials.

mod configuration;
mod database_away;
