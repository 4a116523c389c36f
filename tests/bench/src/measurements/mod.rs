//! The measurements, by topic.

mod bulk;
mod existence;
mod native;
mod plugins;
pub(crate) mod requests;
mod scale;
mod start;
mod versions;

use std::path::PathBuf;

use crate::{statistics::Outcome, table::Table};

/// The name and the function of a measurement.
type Measurement = (&'static str, fn(&Arguments) -> Outcome<Table>);

/// The arguments other than names of measurements.
#[derive(Default)]
pub(crate) struct Arguments {
    /// The sizes of stores, for measurements with such an argument.
    pub(crate) sizes: Vec<usize>,
    /// The components, for measurements with such an argument.
    pub(crate) components: Vec<PathBuf>,
    /// The program of another build of the server that requests are measured with, alternating with this build.
    pub(crate) other: Option<PathBuf>,
}

pub(crate) const MEASUREMENTS: [Measurement; 16] = [
    ("get", |given| {
        requests::measure("get", given.other.as_deref())
    }),
    ("interpolate", |given| {
        requests::measure("interpolate", given.other.as_deref())
    }),
    ("set", |given| {
        requests::measure("set", given.other.as_deref())
    }),
    ("flush", |given| {
        requests::measure("flush", given.other.as_deref())
    }),
    ("generate", |given| {
        requests::measure("generate", given.other.as_deref())
    }),
    ("latency", |given| {
        requests::measure("latency", given.other.as_deref())
    }),
    ("scale", |given| scale::measure(&given.sizes)),
    ("find", |given| scale::measure_find(&given.sizes)),
    ("rotation", |given| bulk::measure_rotation(&given.sizes)),
    ("plugins", |given| plugins::measure(&given.components)),
    ("rsa", |_| native::measure()),
    ("bulk", |_| bulk::measure()),
    ("existence", |_| existence::measure()),
    ("versions", |_| versions::measure()),
    ("start", |_| start::measure()),
    ("memory", |_| start::measure_memory()),
];
