//! Who may do what: each endpoint for each caller, and what permissions do not tell.

mod cases;
mod grants;
mod listings;
mod matrix;
mod not_found;
mod order;
mod rows;
mod world;
