//! Rulings on what the original server and its real clients do. Each test is named after its row in section 20 of the behaviour
//! reference.

mod authorities;
mod certificates;
mod configuration;
mod requests;
mod responses;
mod scalars;
mod spring;
