//! What a server measures, and the address where it tells.

mod authentication;
mod documented;
mod listener;
mod requests;
mod stored;
