//! How much of its limits a plugin uses.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// The most that any call of a plugin has used so far.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    memory_bytes: AtomicU64,
    input_bytes: AtomicU64,
    output_bytes: AtomicU64,
    duration_ns: AtomicU64,
}

/// What was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Used {
    /// The size of all linear memories of an instance together.
    pub(crate) memory_bytes: u64,
    /// What went in, settings included.
    pub(crate) input_bytes: u64,
    /// What came out.
    pub(crate) output_bytes: u64,
    /// How long it took.
    pub(crate) duration: Duration,
}

impl Usage {
    /// A call has ended that was given so much and had so much memory.
    pub(crate) fn called(&self, input_bytes: usize, memory_bytes: u64, duration: Duration) {
        raise(&self.input_bytes, number(input_bytes));
        raise(&self.memory_bytes, memory_bytes);
        let duration_ns = u64::try_from(duration.as_nanos());
        raise(&self.duration_ns, duration_ns.unwrap_or(u64::MAX));
    }

    /// A call has returned so much.
    pub(crate) fn returned(&self, output_bytes: usize) {
        raise(&self.output_bytes, number(output_bytes));
    }

    /// The most so far.
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
