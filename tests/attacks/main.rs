//! Attacks on a running server: one file per class of hostile input. Each test sends all inputs of its class, and then
//! requires that the server is alive, serves other callers, and leaks nothing.

mod alive;
mod certificates;
mod files;
mod http;
mod json;
mod memory;
mod mutation;
mod plugins;
mod rotation;
