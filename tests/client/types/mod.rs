//! The verb of types.

mod list;
