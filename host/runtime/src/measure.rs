//! What is measured of plugins: their calls, and the lanes on which these run.

use std::time::{Duration, Instant};

use keywright_core::ports::{PluginFailure, PluginFault};
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

use crate::lane::NotRun;

/// How long a call of a plugin took on its thread, what the host checks of it included.
pub const CALL_DURATION: &str = "keywright_plugin_call_duration_seconds";
/// How long a call of a plugin waited for a thread.
pub const QUEUE_WAIT: &str = "keywright_plugin_queue_wait_seconds";

const CALLS: &str = "keywright_plugin_calls_total";
const ENTROPY_CONFORMS: &str = "keywright_plugin_entropy_conforms";
const LANE_THREADS: &str = "keywright_plugin_lane_threads";
const LANE_THREADS_BUSY: &str = "keywright_plugin_lane_threads_busy";
const LANE_QUEUE_LENGTH: &str = "keywright_plugin_lane_queue_length";
const LANE_QUEUE_LENGTH_MAX: &str = "keywright_plugin_lane_queue_length_max";

/// How full one of the lanes on which plugins run is at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneOccupancy {
    /// The lane: `brief` or `generate`.
    pub lane: &'static str,
    /// Its threads.
    pub threads: usize,
    /// Those of them that are at work.
    pub threads_busy: usize,
    /// The calls that wait for a thread.
    pub queue_length: usize,
    /// The most that may wait.
    pub queue_length_max: usize,
}

impl LaneOccupancy {
    /// Tells the process's recorder.
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

/// Tells the process's recorder what each measurement of plugins means.
pub fn describe_metrics() {
    describe_counter!(
        CALLS,
        "Calls of plugins, by the plugin's configured name, the function and how they ended."
    );
    describe_histogram!(
        CALL_DURATION,
        "How long calls of plugins took on their threads, by plugin and function, in seconds."
    );
    describe_histogram!(
        QUEUE_WAIT,
        "How long calls of plugins waited for a thread, by lane, in seconds."
    );
    describe_gauge!(
        ENTROPY_CONFORMS,
        "1 for each generator whose values were found to be as random as it declares, 0 for one that derives them."
    );
    describe_gauge!(LANE_THREADS, "Threads of each lane of plugin calls.");
    describe_gauge!(
        LANE_THREADS_BUSY,
        "Threads of each lane of plugin calls that are at work."
    );
    describe_gauge!(
        LANE_QUEUE_LENGTH,
        "Calls of plugins that wait for a thread, by lane."
    );
    describe_gauge!(
        LANE_QUEUE_LENGTH_MAX,
        "Calls of plugins that may wait for a thread before further ones are refused, by lane."
    );
}

/// Records whether the values of a plugin that is in use were found to be random, or it derives them.
pub(crate) fn entropy_conforms(plugin: &str, conforms: bool) {
    let conforms = if conforms { 1.0 } else { 0.0 };
    gauge!(ENTROPY_CONFORMS, "plugin" => plugin.to_owned()).set(conforms);
}

/// Makes a call, and measures it under the plugin's name and the function's.
pub(crate) fn measured<T>(
    plugin: &str,
    function: &'static str,
    call: impl FnOnce() -> Result<T, PluginFailure>,
) -> Result<T, PluginFailure> {
    let begun = Instant::now();
    let outcome = call();
    histogram!(CALL_DURATION, "plugin" => plugin.to_owned(), "function" => function)
        .record(begun.elapsed());
    let word = match &outcome {
        Ok(_) => "ok",
        Err(failure) => word_of(failure),
    };
    ended(plugin, function, word);
    outcome
}

/// Counts a call that came to nothing on the host's side.
pub(crate) fn not_run(plugin: &str, function: &'static str, not_run: NotRun) {
    let word = match not_run {
        NotRun::ActorQueueFull { .. } => ACTOR_QUEUE_FULL,
        NotRun::Panicked => "host_panicked",
        NotRun::QueueFull { .. } => "queue_full",
    };
    ended(plugin, function, word);
}

/// Counts a call that was refused because the plugin rests.
pub(crate) fn resting(plugin: &str, function: &'static str) {
    ended(plugin, function, RESTING);
}

/// Records how long work waited for a thread of a lane.
pub(crate) fn waited(lane: &'static str, duration: Duration) {
    histogram!(QUEUE_WAIT, "lane" => lane).record(duration);
}

/// How a call ends that is refused because too many of its actor wait.
const ACTOR_QUEUE_FULL: &str = "actor_queue_full";
/// How a call ends that is refused because the plugin rests.
const RESTING: &str = "resting";

fn ended(plugin: &str, function: &'static str, outcome: &'static str) {
    counter!(CALLS, "plugin" => plugin.to_owned(), "function" => function, "outcome" => outcome)
        .increment(1);
}

fn word_of(failure: &PluginFailure) -> &'static str {
    match failure {
        PluginFailure::DocumentRefused(_)
        | PluginFailure::ParametersRefused(_)
        | PluginFailure::ValueMemberUnknown(_)
        | PluginFailure::ValueRefused(_) => "refused",
        PluginFailure::ActorQueueFull { .. } => ACTOR_QUEUE_FULL,
        PluginFailure::QueueFull { .. } => "queue_full",
        PluginFailure::Resting { .. } => RESTING,
        PluginFailure::Faulted { fault, .. } => match fault {
            PluginFault::InputTooLarge => "input_too_large",
            PluginFault::MemoryExceeded => "memory_exceeded",
            PluginFault::Misconfigured => "misconfigured",
            PluginFault::NotInstantiated => "not_instantiated",
            PluginFault::OutputMalformed => "output_malformed",
            PluginFault::OutputTooLarge => "output_too_large",
            PluginFault::Reported => "reported",
            PluginFault::StackExhausted => "stack_exhausted",
            PluginFault::TimedOut => "timed_out",
            PluginFault::Trapped => "trapped",
        },
    }
}
