//! The measurements, by topic.

mod bulk;
mod existence;
mod plugins;
pub(crate) mod requests;
mod scale;
mod start;
mod versions;

use std::path::PathBuf;

use crate::{statistics::Outcome, table::Table};

/// The name of a measurement, and its function, which gets the name.
type Measurement = (&'static str, fn(&str, &Arguments) -> Outcome<Table>);

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

pub(crate) const MEASUREMENTS: [Measurement; 15] = [
    ("get", requests::measure),
    ("interpolate", requests::measure),
    ("set", requests::measure),
    ("flush", requests::measure),
    ("generate", requests::measure),
    ("latency", requests::measure),
    ("scale", |_, given| scale::measure(&given.sizes)),
    ("find", |_, given| scale::measure_find(&given.sizes)),
    ("rotation", |_, given| bulk::measure_rotation(&given.sizes)),
    ("plugins", |_, given| plugins::measure(&given.components)),
    ("bulk", |_, _| bulk::measure()),
    ("existence", |_, _| existence::measure()),
    ("versions", |_, _| versions::measure()),
    ("start", |_, _| start::measure()),
    ("memory", |_, _| start::measure_memory()),
];
