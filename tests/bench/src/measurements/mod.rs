//! One file for each measurement.

pub(crate) mod bulk;
pub(crate) mod existence;
pub(crate) mod find;
pub(crate) mod guest_overhead;
pub(crate) mod memory;
pub(crate) mod plugins;
pub(crate) mod requests;
pub(crate) mod rotation;
pub(crate) mod rsa;
pub(crate) mod scale;
pub(crate) mod start;
pub(crate) mod swap;
pub(crate) mod versions;
