//! Calls of guests: instantiation, limits, the mapping of errors to faults, metrics, and the peak usage of a plugin's limits.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use keywright_core::{
    credential::PluginIdentity,
    log::duration_ms,
    ports::{CertificateIssuer, PluginCallError, PluginFaultError},
    text::for_log,
};
use metrics::{Counter, Histogram, counter, describe_counter, describe_histogram, histogram};
use rustix::time::{ClockId, clock_gettime};
use wasmtime::{
    PoolConcurrencyLimitError, Store, Trap, UpdateDeadline,
    component::{Instance, InstancePre},
};

use crate::{
    config::Limits,
    engine::EPOCH_TICK,
    host::{
        CallState, HostError, MemoryLimiter, NoteReader, Notes, RandomSource,
        TBS_CERTIFICATE_BYTES_MAX,
    },
    lane::NotRun,
    load_error::PluginRefusedError,
    schema::SettingsSchema,
};

/// The maximum number of resource handles that a guest may hold at once.
const HANDLES_MAX: usize = 64;
/// The bytes that the host may copy for a guest beyond its limits, so that slightly oversized output is measured and reported
/// as such.
const COPIED_BYTES_SLACK: usize = 64 * 1024;

/// The only function whose calls may take long. All other functions share the lane `brief`.
pub(crate) const GENERATE: &str = "generate";
/// The maximum processor time of a call of any function but [`GENERATE`], in milliseconds.
const SHORT_CALL_MS_MAX: u64 = 3_000;

/// A loaded plugin that can be called.
pub(crate) struct Plugin {
    pub(crate) identity: PluginIdentity,
    /// The supported version of the interfaces in `wit/` that it is built for.
    pub(crate) wit_version: &'static str,
    /// Its linked component.
    pub(crate) component: InstancePre<CallState>,
    /// Its settings, as JSON text.
    pub(crate) settings: String,
    /// The schema of its settings, if it declares one.
    pub(crate) settings_schema: Option<SettingsSchema>,
    /// The limits of each call.
    pub(crate) limits: Limits,
    pub(crate) random: Arc<dyn RandomSource>,
    /// The reader of its notes; `None` in a server.
    pub(crate) notes: Option<NoteReader>,
    /// The peak usage of its calls.
    pub(crate) usage: Arc<Usage>,
    pub(crate) measurements: Arc<CallMeasurements>,
}

impl Plugin {
    /// Calls the guest in a fresh instance; `body` gets the instance and makes the call.
    ///
    /// `input_bytes` is the size of the texts passed to the guest in addition to the settings.
    ///
    /// # Errors
    /// The guest's fault, which is already logged.
    pub(crate) fn call<T>(
        &self,
        function: &'static str,
        input_bytes: usize,
        issuer: Option<Arc<dyn CertificateIssuer>>,
        body: impl FnOnce(&mut Store<CallState>, &Instance) -> wasmtime::Result<T>,
    ) -> Result<T, PluginFaultError> {
        let input_bytes = input_bytes + self.settings.len();
        self.check_input(function, input_bytes)?;
        let (begun, used_before) = (Instant::now(), processor_time());
        let mut store = self.store(function, issuer, used_before);
        let outcome = self
            .component
            .instantiate(&mut store)
            .and_then(|instance| body(&mut store, &instance));
        store.data().notes.end();
        let memory_bytes = store.data().limiter.memory_bytes;
        let used = processor_time().saturating_sub(used_before);
        self.usage.called(input_bytes, memory_bytes, used);
        tracing::debug!(
            plugin.name = self.identity.name,
            plugin.digest = self.identity.digest,
            function,
            duration_ms = duration_ms(begun.elapsed()),
            outcome = if outcome.is_ok() {
                "returned"
            } else {
                "faulted"
            },
            "plugin called"
        );
        outcome.map_err(|cause| {
            let is_exceeded = store.data().limiter.is_exceeded;
            let exceeded_bytes = is_exceeded.then_some(self.limits.memory_bytes_max);
            let output_bytes_max = self.limits.output_bytes_max;
            let deadline_ms = self.deadline_ms(function);
            let fault = fault_of(&cause, deadline_ms, exceeded_bytes, output_bytes_max);
            self.fault(function, fault, &cause.root_cause().to_string())
        })
    }

    pub(crate) fn call_to_load<T>(
        &self,
        function: &'static str,
        body: impl FnOnce(&mut Store<CallState>, &Instance) -> wasmtime::Result<T>,
    ) -> Result<T, PluginRefusedError> {
        let outcome = self.call(function, 0, None, body);
        outcome.map_err(|fault| PluginRefusedError::FunctionFailed { function, fault })
    }

    /// Checks the settings against their schema, if the plugin declares one.
    pub(crate) fn check_settings(&self) -> Result<(), PluginRefusedError> {
        let schema = self.settings_schema.as_ref();
        schema.map_or(Ok(()), |schema| schema.check(&self.settings))
    }

    /// Creates and drops an instance without a call.
    ///
    /// # Errors
    /// The guest's fault, which is already logged.
    pub(crate) fn instantiate(&self) -> Result<(), PluginFaultError> {
        self.call("instantiate", 0, None, |_, _| Ok(()))
    }

    /// Logs a fault of the guest, or reports its cause to the reader of notes, and returns it. `cause` must not contain data.
    pub(crate) fn fault(
        &self,
        function: &'static str,
        fault: PluginFaultError,
        cause: &str,
    ) -> PluginFaultError {
        if let Some(reader) = &self.notes {
            reader(function, &for_log(cause));
            return fault;
        }
        if matches!(fault, PluginFaultError::InputTooLarge(_)) {
            // The caller's fault: callers must not fill the log.
            return fault;
        }
        tracing::error!(
            plugin.name = self.identity.name,
            plugin.digest = self.identity.digest,
            function,
            fault = fault.to_string(),
            cause,
            "plugin call failed"
        );
        fault
    }

    /// Checks the size of the guest's input.
    pub(crate) fn check_input(
        &self,
        function: &'static str,
        input_bytes: usize,
    ) -> Result<(), PluginFaultError> {
        if input_bytes > self.limits.input_bytes_max {
            return Err(self.fault(
                function,
                PluginFaultError::InputTooLarge(self.limits.input_bytes_max),
                "its input is too large",
            ));
        }
        Ok(())
    }

    /// Checks the size of the guest's output.
    pub(crate) fn check_output(
        &self,
        function: &'static str,
        output_bytes: usize,
    ) -> Result<(), PluginFaultError> {
        self.usage.returned(output_bytes);
        if output_bytes > self.limits.output_bytes_max {
            return Err(self.fault(
                function,
                PluginFaultError::OutputTooLarge(self.limits.output_bytes_max),
                "its output is too large",
            ));
        }
        Ok(())
    }

    /// Converts a fault to the failure for callers.
    pub(crate) fn faulted(&self, fault: PluginFaultError) -> PluginCallError {
        PluginCallError::Faulted {
            plugin: self.identity.name.clone(),
            fault,
        }
    }

    /// Returns the failure for output that does not have the declared form, and logs it. `reason` is a predicate with the output
    /// as its subject, and must not contain data.
    pub(crate) fn malformed(&self, function: &'static str, reason: &str) -> PluginCallError {
        let fault = PluginFaultError::OutputMalformed;
        self.faulted(self.fault(function, fault, &format!("its output {reason}")))
    }

    /// Returns the failure for a guest that reports invalid settings, and logs its message.
    pub(crate) fn misconfigured(&self, function: &'static str, text: &str) -> PluginCallError {
        self.faulted(self.fault(function, PluginFaultError::Misconfigured, &for_log(text)))
    }

    /// Returns the failure for a guest that reports an internal error, and logs its message.
    pub(crate) fn reported(&self, function: &'static str, text: &str) -> PluginCallError {
        self.faulted(self.fault(function, PluginFaultError::Reported, &for_log(text)))
    }

    /// Returns the failure for a call that was not made, and records the metric.
    pub(crate) fn not_run(&self, function: &'static str, not_run: NotRun) -> PluginCallError {
        let (reason, failure) = match not_run {
            NotRun::ActorQueueFull { retry_after } => (
                ACTOR_QUEUE_FULL,
                PluginCallError::ActorQueueFull { retry_after },
            ),
            NotRun::Panicked => (HOST_PANICKED, self.faulted(PluginFaultError::Trapped)),
            NotRun::QueueFull { retry_after } => {
                (QUEUE_FULL, PluginCallError::QueueFull { retry_after })
            }
        };
        not_called(&self.identity.name, function, reason);
        failure
    }

    fn store(
        &self,
        function: &'static str,
        issuer: Option<Arc<dyn CertificateIssuer>>,
        used_before: Duration,
    ) -> Store<CallState> {
        let state = CallState {
            random: Arc::clone(&self.random),
            has_drawn: false,
            issuer,
            notes: Notes::new(self.notes.clone(), function),
            limiter: MemoryLimiter::new(self.limits.memory_bytes_max),
        };
        let mut store = Store::new(self.component.engine(), state);
        store.limiter(|state| &mut state.limiter);
        enforce_deadline(&mut store, self.deadline_ms(function), used_before);
        store.set_max_component_handles(HANDLES_MAX);
        let copied_bytes_max = self.limits.output_bytes_max.max(TBS_CERTIFICATE_BYTES_MAX);
        store.set_hostcall_fuel(copied_bytes_max + COPIED_BYTES_SLACK);
        store
    }

    fn deadline_ms(&self, function: &'static str) -> u64 {
        match function {
            GENERATE => self.limits.deadline_ms,
            _ => self.limits.deadline_ms.min(SHORT_CALL_MS_MAX),
        }
    }
}

/// Interrupts the guest once its thread has used this much processor time beyond `used_before`. Time in which other threads run
/// does not count: on busy processors, calls of well-behaved plugins would fail otherwise.
fn enforce_deadline(store: &mut Store<CallState>, deadline_ms: u64, used_before: Duration) {
    store.set_epoch_deadline(deadline_ticks(deadline_ms));
    store.epoch_deadline_callback(move |_| {
        let used = processor_time().saturating_sub(used_before).as_millis();
        let remaining_ms = deadline_ms.saturating_sub(u64::try_from(used).unwrap_or(u64::MAX));
        Ok(match remaining_ms {
            0 => UpdateDeadline::Interrupt,
            _ => UpdateDeadline::Continue(deadline_ticks(remaining_ms)),
        })
    });
}

/// Converts a deadline to ticks. Adds one, because the first tick may come at once.
fn deadline_ticks(deadline_ms: u64) -> u64 {
    let tick_ms = u64::try_from(EPOCH_TICK.as_millis()).unwrap_or(1);
    deadline_ms.div_ceil(tick_ms) + 1
}

/// Returns the processor time that the current thread has used.
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Maps an error of the engine to a fault of the guest, or of the operating system if it denied resources for an instance.
/// `exceeded_bytes` is the limit if the guest was denied memory.
///
/// A guest that was denied memory rarely reports it: its allocator aborts. So any later error is attributed to that, except
/// for an exceeded deadline or stack.
fn fault_of(
    cause: &wasmtime::Error,
    deadline_ms: u64,
    exceeded_bytes: Option<u64>,
    output_bytes_max: usize,
) -> PluginFaultError {
    match (cause.downcast_ref::<Trap>(), exceeded_bytes) {
        (Some(Trap::Interrupt), _) => PluginFaultError::TimedOut(deadline_ms),
        (Some(Trap::StackOverflow), _) => PluginFaultError::StackExhausted,
        (_, Some(bytes)) => PluginFaultError::MemoryExceeded(bytes),
        (Some(_), None) => PluginFaultError::Trapped,
        (None, None) if cause.is::<HostError>() => PluginFaultError::Trapped,
        (None, None) if copied_too_much(cause) => {
            PluginFaultError::OutputTooLarge(output_bytes_max)
        }
        (None, None) if is_of_the_system(cause) => PluginFaultError::NotInstantiated,
        (None, None) => PluginFaultError::OutputMalformed,
    }
}

/// Returns whether the operating system denied a resource. Guests can't access the system, so the engine needed it for the
/// instance. The engine has several types for system errors, which share this wording.
fn is_of_the_system(cause: &wasmtime::Error) -> bool {
    let message = cause.root_cause().to_string();
    cause.is::<PoolConcurrencyLimitError>() || message.contains(" (os error ")
}

/// Returns whether the guest tried to make the host copy more than the store's fuel for copies. The engine's error type is
/// private, so this compares its message.
fn copied_too_much(cause: &wasmtime::Error) -> bool {
    cause
        .root_cause()
        .to_string()
        .contains("fuel allocated for hostcalls")
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

/// The outcome of a call that was refused because the actor has too many waiting calls.
const ACTOR_QUEUE_FULL: &str = "actor_queue_full";
/// The outcome of a call that was refused because the circuit breaker is open.
pub(crate) const CIRCUIT_OPEN: &str = "disabled";
/// The outcome of a call that panicked in the host.
const HOST_PANICKED: &str = "host_panicked";
/// The outcome of a call that was refused because the lane has too many waiting calls.
const QUEUE_FULL: &str = "queue_full";

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
    /// The total size of an instance's linear memories.
    memory_bytes: AtomicU64,
    /// The input, including settings.
    input_bytes: AtomicUsize,
    output_bytes: AtomicUsize,
    processor_ns: AtomicU64,
}

impl Usage {
    pub(crate) fn called(&self, input_bytes: usize, memory_bytes: u64, processor_time: Duration) {
        let processor_ns = u64::try_from(processor_time.as_nanos()).unwrap_or(u64::MAX);
        self.input_bytes.fetch_max(input_bytes, Ordering::Relaxed);
        self.memory_bytes.fetch_max(memory_bytes, Ordering::Relaxed);
        self.processor_ns.fetch_max(processor_ns, Ordering::Relaxed);
    }

    /// Records the output of a call.
    pub(crate) fn returned(&self, output_bytes: usize) {
        self.output_bytes.fetch_max(output_bytes, Ordering::Relaxed);
    }

    /// Returns the lowest limits that all calls so far met.
    pub(crate) fn peaks(&self) -> Limits {
        let processor_ns = self.processor_ns.load(Ordering::Relaxed);
        Limits {
            memory_bytes_max: self.memory_bytes.load(Ordering::Relaxed),
            deadline_ms: processor_ns.div_ceil(1_000_000),
            input_bytes_max: self.input_bytes.load(Ordering::Relaxed),
            output_bytes_max: self.output_bytes.load(Ordering::Relaxed),
        }
    }
}

/// Registers the descriptions of the metrics of calls.
pub(crate) fn describe_metrics() {
    describe_counter!(
        CALLS,
        "Plugin calls, by configured plugin name, function and outcome."
    );
    describe_histogram!(
        CALL_DURATION,
        "Duration of plugin calls on their threads, by plugin and function, in seconds."
    );
}

/// The duration of a plugin call on its thread, including the host's checks.
pub const CALL_DURATION: &str = "keywright_plugin_call_duration_seconds";

const CALLS: &str = "keywright_plugin_calls_total";

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn resources_denied_by_the_system_are_no_fault_of_the_guest() {
        let enomem = io::Error::from_raw_os_error(12);
        let mapping = wasmtime::Error::new(enomem).context("mapping a memory");
        let fault = fault_of(&mapping, 1, None, 1);
        assert_eq!(fault, PluginFaultError::NotInstantiated);
        let lifting = wasmtime::Error::msg("list pointer/length out of bounds of memory");
        let fault = fault_of(&lifting, 1, None, 1);
        assert_eq!(fault, PluginFaultError::OutputMalformed);
    }

    #[test]
    fn deadlines_are_never_shorter_than_configured() {
        assert_eq!(deadline_ticks(10), 2);
        assert_eq!(deadline_ticks(11), 3);
    }
}
