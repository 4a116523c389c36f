//! Who may do what: each endpoint for each caller, and what permissions do not tell.

mod cases;
mod grants;
mod matrix;
mod world;
