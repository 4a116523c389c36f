//! Authorization: each endpoint for each caller, and no disclosure by refusals.

mod cases;
mod grants;
mod listings;
mod matrix;
mod not_found;
mod order;
mod rows;
mod world;
