//! Metrics, and the management listener.

mod authentication;
mod documented;
mod listener;
mod requests;
mod stored;
