//! The rulings on how requests of real clients are answered, one test or more for each row of the table.

mod authorities;
mod configuration;
mod requests;
mod responses;
mod scalars;
