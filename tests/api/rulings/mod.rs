//! Rulings on what the original server and its real clients do. Each test is named after its row in section 20 of the behaviour
//! reference.

mod certificates;
mod spring;
