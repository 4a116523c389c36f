//! Authorization: each endpoint for each caller, and no disclosure by refusals.

mod cases;
mod coverage;
mod matrix;
mod order;
mod world;
