//! Authorization: each endpoint for each caller, and no disclosure by refusals. `cases` lists every endpoint with the
//! permission that it needs, and `matrix` sends each case as every caller.

mod cases;
mod coverage;
mod matrix;
mod order;
mod world;

/// Returns a permission, as a section of the configuration.
fn permission(path: &str, actors: &[String], operations: &[&str]) -> String {
    format!(
        "[[authorization.permissions]]\npath = {path:?}\nactors = {actors:?}\noperations = {operations:?}\n"
    )
}
