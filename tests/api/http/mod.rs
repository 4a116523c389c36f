//! What holds for every request.

mod bodies;
mod clients;
mod mistakes;
mod queries;
mod responses;
mod routing;
mod scalars;
mod transport;
