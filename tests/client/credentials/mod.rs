//! The verbs of credentials.

mod get;
