//! Behavior common to all requests.

mod bodies;
mod clients;
mod methods;
mod mistakes;
mod paths;
mod queries;
mod responses;
mod routing;
mod scalars;
mod transport;
