//! What holds for every request.

mod bodies;
mod clients;
mod limits;
mod queries;
mod responses;
mod routing;
mod scalars;
