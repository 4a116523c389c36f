//! `keywright export`.

mod authorities;
mod failures;
mod files;
mod forms;
mod interruption;
