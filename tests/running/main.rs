//! Tests of running the server: service, configuration and documents. This is a separate test program, so that it does not
//! run once per database.

mod announcement;
mod check_config;
mod documents;
mod layout;
mod listening;
mod service;
mod symptoms;
mod unprivileged;
