//! The peak usage of a plugin's limits.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// The peak usage of all calls of a plugin so far.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    memory_bytes: AtomicU64,
    input_bytes: AtomicU64,
    output_bytes: AtomicU64,
    duration_ns: AtomicU64,
}

/// A snapshot of [`Usage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Used {
    /// The total size of an instance's linear memories.
    pub(crate) memory_bytes: u64,
    /// The input, including settings.
    pub(crate) input_bytes: u64,
    /// The output.
    pub(crate) output_bytes: u64,
    /// The duration.
    pub(crate) duration: Duration,
}

impl Usage {
    /// Records the input, memory and duration of a call.
    pub(crate) fn called(&self, input_bytes: usize, memory_bytes: u64, duration: Duration) {
        raise(&self.input_bytes, number(input_bytes));
        raise(&self.memory_bytes, memory_bytes);
        let duration_ns = u64::try_from(duration.as_nanos());
        raise(&self.duration_ns, duration_ns.unwrap_or(u64::MAX));
    }

    /// Records the output of a call.
    pub(crate) fn returned(&self, output_bytes: usize) {
        raise(&self.output_bytes, number(output_bytes));
    }

    /// Returns the peaks so far.
    pub(crate) fn most(&self) -> Used {
        let read = |most: &AtomicU64| most.load(Ordering::Relaxed);
        Used {
            memory_bytes: read(&self.memory_bytes),
            input_bytes: read(&self.input_bytes),
            output_bytes: read(&self.output_bytes),
            duration: Duration::from_nanos(read(&self.duration_ns)),
        }
    }
}

fn raise(most: &AtomicU64, used: u64) {
    most.fetch_max(used, Ordering::Relaxed);
}

fn number(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
