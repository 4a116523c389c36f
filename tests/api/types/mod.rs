//! The list of types.

mod list;
