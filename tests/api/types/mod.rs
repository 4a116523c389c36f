//! The types that a server knows.

mod list;
