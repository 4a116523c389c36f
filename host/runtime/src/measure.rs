//! The metrics of plugin calls and lanes, and the peak usage of a plugin's limits.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use keywright_core::ports::{PluginCallError, PluginFaultError};
use metrics::{
    Counter, Histogram, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};

/// The duration of a plugin call on its thread, including the host's checks.
pub const CALL_DURATION: &str = "keywright_plugin_call_duration_seconds";
/// The time that a plugin call waited for a thread.
pub const QUEUE_WAIT: &str = "keywright_plugin_queue_wait_seconds";

const CALLS: &str = "keywright_plugin_calls_total";
const ENTROPY_CONFORMS: &str = "keywright_plugin_entropy_conforms";
const LANE_THREADS: &str = "keywright_plugin_lane_threads";
const LANE_THREADS_BUSY: &str = "keywright_plugin_lane_threads_busy";
const LANE_QUEUE_LENGTH: &str = "keywright_plugin_lane_queue_length";
const LANE_QUEUE_LENGTH_MAX: &str = "keywright_plugin_lane_queue_length_max";

/// The occupancy of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneOccupancy {
    /// The lane: `brief` for short calls, or `generate`.
    pub lane: &'static str,
    /// Its threads.
    pub threads: usize,
    /// The busy threads.
    pub threads_busy: usize,
    /// The waiting calls.
    pub queue_length: usize,
    /// The maximum number of waiting calls.
    pub queue_length_max: usize,
}

impl LaneOccupancy {
    /// Sets the gauges of the lane.
    pub fn record(&self) {
        for (name, number) in [
            (LANE_THREADS, self.threads),
            (LANE_THREADS_BUSY, self.threads_busy),
            (LANE_QUEUE_LENGTH, self.queue_length),
            (LANE_QUEUE_LENGTH_MAX, self.queue_length_max),
        ] {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            gauge!(name, "lane" => self.lane).set(number);
        }
    }
}

/// Registers the descriptions of these metrics.
pub fn describe_metrics() {
    describe_counter!(
        CALLS,
        "Plugin calls, by configured plugin name, function and outcome."
    );
    describe_histogram!(
        CALL_DURATION,
        "Duration of plugin calls on their threads, by plugin and function, in seconds."
    );
    describe_histogram!(
        QUEUE_WAIT,
        "Time that plugin calls waited for a thread, by lane, in seconds."
    );
    describe_gauge!(
        ENTROPY_CONFORMS,
        "1 for each generator that passed the entropy test, 0 for each generator that derives its values."
    );
    describe_gauge!(LANE_THREADS, "Threads of each lane of plugin calls.");
    describe_gauge!(
        LANE_THREADS_BUSY,
        "Busy threads of each lane of plugin calls."
    );
    describe_gauge!(
        LANE_QUEUE_LENGTH,
        "Plugin calls that wait for a thread, by lane."
    );
    describe_gauge!(
        LANE_QUEUE_LENGTH_MAX,
        "Maximum number of plugin calls that may wait for a thread, by lane; further calls are refused."
    );
}

/// Records whether an active generator passed the entropy test or derives its values.
pub(crate) fn entropy_conforms(plugin: &str, conforms: bool) {
    let conforms = if conforms { 1.0 } else { 0.0 };
    gauge!(ENTROPY_CONFORMS, "plugin" => plugin.to_owned()).set(conforms);
}

/// The metrics of a plugin's calls. A series is created by its first call; later successful calls don't look up labels again.
#[derive(Default)]
pub(crate) struct CallMeasurements {
    /// In the order of [`FUNCTIONS`].
    functions: [FunctionMeasurements; FUNCTIONS.len()],
    calls: AtomicU64,
    faults: AtomicU64,
}

#[derive(Default)]
struct FunctionMeasurements {
    duration: OnceLock<Histogram>,
    successes: OnceLock<Counter>,
}

impl CallMeasurements {
    /// Makes a call and records its duration and outcome.
    pub(crate) fn measured<T>(
        &self,
        plugin: &str,
        function: &'static str,
        call: impl FnOnce() -> Result<T, PluginCallError>,
    ) -> Result<T, PluginCallError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let begun = Instant::now();
        let outcome = call();
        let position = FUNCTIONS.iter().position(|known| *known == function);
        let Some(series) = position.and_then(|position| self.functions.get(position)) else {
            return outcome;
        };
        series
            .duration
            .get_or_init(
                || histogram!(CALL_DURATION, "plugin" => plugin.to_owned(), "function" => function),
            )
            .record(begun.elapsed());
        match &outcome {
            Ok(_) => series
                .successes
                .get_or_init(|| calls(plugin, function, "ok"))
                .increment(1),
            Err(failure) => calls(plugin, function, outcome_of(failure)).increment(1),
        }
        outcome
    }

    /// Counts a call in which the plugin failed.
    pub(crate) fn faulted(&self) {
        self.faults.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the numbers of calls and of faults so far.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        (read(&self.calls), read(&self.faults))
    }
}

/// The measured functions of plugins.
const FUNCTIONS: [&str; 6] = [
    "accept",
    "expires",
    "find-references",
    "generate",
    "normalize",
    "recover",
];

/// Counts a call that the host did not make, with the reason as its outcome.
pub(crate) fn not_called(plugin: &str, function: &'static str, reason: &'static str) {
    calls(plugin, function, reason).increment(1);
}

/// The metric of the time that work waits for a thread of a lane.
#[derive(Default)]
pub(crate) struct QueueMeasurements(OnceLock<Histogram>);

impl QueueMeasurements {
    /// Records how long work waited.
    pub(crate) fn waited(&self, lane: &'static str, duration: Duration) {
        self.0
            .get_or_init(|| histogram!(QUEUE_WAIT, "lane" => lane))
            .record(duration);
    }
}

/// The outcome of a call that was refused because the actor has too many waiting calls.
pub(crate) const ACTOR_QUEUE_FULL: &str = "actor_queue_full";
/// The outcome of a call that was refused because the circuit breaker is open.
pub(crate) const CIRCUIT_OPEN: &str = "disabled";
/// The outcome of a call that panicked in the host.
pub(crate) const HOST_PANICKED: &str = "host_panicked";
/// The outcome of a call that was refused because the lane has too many waiting calls.
pub(crate) const QUEUE_FULL: &str = "queue_full";

fn calls(plugin: &str, function: &'static str, outcome: &'static str) -> Counter {
    counter!(CALLS, "plugin" => plugin.to_owned(), "function" => function, "outcome" => outcome)
}

fn outcome_of(failure: &PluginCallError) -> &'static str {
    match failure {
        PluginCallError::DocumentRefused(_)
        | PluginCallError::ParametersRefused(_)
        | PluginCallError::ValueFieldUnknown(_)
        | PluginCallError::ValueRefused(_) => "refused",
        PluginCallError::ActorQueueFull { .. } => ACTOR_QUEUE_FULL,
        PluginCallError::QueueFull { .. } => QUEUE_FULL,
        PluginCallError::CircuitOpen { .. } => CIRCUIT_OPEN,
        PluginCallError::Faulted { fault, .. } => match fault {
            PluginFaultError::InputTooLarge(_) => "input_too_large",
            PluginFaultError::MemoryExceeded(_) => "memory_exceeded",
            PluginFaultError::Misconfigured => "misconfigured",
            PluginFaultError::NotInstantiated => "not_instantiated",
            PluginFaultError::OutputMalformed => "output_malformed",
            PluginFaultError::OutputTooLarge(_) => "output_too_large",
            PluginFaultError::Reported => "reported",
            PluginFaultError::StackExhausted => "stack_exhausted",
            PluginFaultError::TimedOut(_) => "timed_out",
            PluginFaultError::Trapped => "trapped",
        },
    }
}

/// The peak usage of all calls of a plugin so far.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    memory_bytes: AtomicU64,
    input_bytes: AtomicU64,
    output_bytes: AtomicU64,
    processor_ns: AtomicU64,
}

/// A snapshot of [`Usage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeakUsage {
    /// The total size of an instance's linear memories.
    pub(crate) memory_bytes: u64,
    /// The input, including settings.
    pub(crate) input_bytes: u64,
    pub(crate) output_bytes: u64,
    pub(crate) processor_time: Duration,
}

impl Usage {
    /// Records the input, memory and processor time of a call.
    pub(crate) fn called(&self, input_bytes: usize, memory_bytes: u64, processor_time: Duration) {
        raise(&self.input_bytes, number(input_bytes));
        raise(&self.memory_bytes, memory_bytes);
        let processor_ns = u64::try_from(processor_time.as_nanos());
        raise(&self.processor_ns, processor_ns.unwrap_or(u64::MAX));
    }

    /// Records the output of a call.
    pub(crate) fn returned(&self, output_bytes: usize) {
        raise(&self.output_bytes, number(output_bytes));
    }

    /// Returns the peaks so far.
    pub(crate) fn peaks(&self) -> PeakUsage {
        let read = |peak: &AtomicU64| peak.load(Ordering::Relaxed);
        PeakUsage {
            memory_bytes: read(&self.memory_bytes),
            input_bytes: read(&self.input_bytes),
            output_bytes: read(&self.output_bytes),
            processor_time: Duration::from_nanos(read(&self.processor_ns)),
        }
    }
}

fn raise(peak: &AtomicU64, used: u64) {
    peak.fetch_max(used, Ordering::Relaxed);
}

fn number(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
