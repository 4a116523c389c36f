//! Where credentials are kept.

mod configuration;
mod database_away;
