//! What holds for every request.

mod bodies;
mod clients;
mod limits;
mod methods;
mod mistakes;
mod paths;
mod queries;
mod responses;
mod routing;
mod scalars;
mod transport;
