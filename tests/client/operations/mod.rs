//! The verbs of operators.

mod key_usage;
mod management;
