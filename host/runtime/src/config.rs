//! The configuration of plugins and their sandbox.

use std::{
    collections::BTreeMap, fmt, num::NonZeroUsize, path::PathBuf, sync::Arc, time::Duration,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{conformance::TestedComponents, lane::QueueLimits};

/// The configuration for [`Runtime::load`](crate::Runtime::load).
#[derive(Clone, Debug)]
pub struct RuntimeConfig {
    /// The settings shared by all plugins.
    pub sandbox: SandboxConfig,
    /// The compiler of components that are not in the cache.
    pub compiler: Compiler,
    /// The generators, by credential type.
    pub generators: BTreeMap<String, PluginConfig>,
    /// The plugin that finds references in documents, if any.
    pub resolver: Option<PluginConfig>,
    /// The components that already passed the entropy test and are not tested again.
    pub tested: TestedComponents,
}

/// The settings shared by all plugins.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SandboxConfig {
    /// The folder for compiled components. It is created with mode 0700 if it does not exist. It must belong to the server's user
    /// and be inaccessible to others.
    pub cache_directory: PathBuf,
    /// Days until a file in `cache_directory` expires after a server last loaded it. Expired files are removed after each start and
    /// SIGHUP, unless a running server has loaded them.
    #[schemars(range(min = 1, max = CACHE_UNUSED_DAYS_MAX_MAX))]
    #[serde(default = "default_cache_unused_days_max")]
    pub cache_unused_days_max: u64,
    /// Maximum processor time to compile a component. A compiling process that exceeds it is killed.
    #[schemars(range(min = 1, max = COMPILE_SECONDS_MAX_MAX))]
    #[serde(default = "default_compile_seconds_max")]
    pub compile_seconds_max: u64,
    /// Threads of each of the two lanes: for `generate`, and for all other functions. Two of the threads for `generate` (one if there
    /// are only two) are reserved for actors without a running call. Defaults to the number of cores, and two more for `generate`.
    #[serde(default)]
    #[schemars(range(max = THREADS_PER_LANE_MAX))]
    pub threads_per_lane: Option<NonZeroUsize>,
    /// Maximum number of calls that wait in each lane. Further calls are refused with 503, except the first waiting call of
    /// each actor.
    #[schemars(range(min = 1, max = QUEUE_LENGTH_MAX))]
    #[serde(default = "default_queue_length")]
    pub queue_length: usize,
    /// Maximum number of calls of one actor that wait in each lane. Further calls of that actor are refused with 429. Defaults to half of
    /// `queue_length`.
    #[serde(default)]
    #[schemars(range(max = QUEUE_LENGTH_MAX))]
    pub queue_length_per_actor_max: Option<NonZeroUsize>,
    /// The value of `Retry-After` in responses to calls that are refused because of a full queue.
    #[schemars(range(min = 1, max = RETRY_AFTER_SECONDS_MAX))]
    #[serde(default = "default_retry_after_seconds")]
    pub retry_after_seconds: u64,
    /// Consecutive faults of a component (traps, exceeded deadlines, exceeded memory) that open its circuit: for one actor, or
    /// for all actors if at least three actors caused the faults.
    #[schemars(range(min = 1, max = FAULTS_MAX_MAX))]
    #[serde(default = "default_faults_max")]
    pub faults_max: u32,
    /// Seconds for which the circuit of a component stays open.
    #[schemars(range(min = 1, max = DISABLED_SECONDS_MAX))]
    #[serde(default = "default_disabled_seconds")]
    pub disabled_seconds: u64,
}

/// The maximum of `cache_unused_days_max`, in days.
const CACHE_UNUSED_DAYS_MAX_MAX: u64 = 3_650;
/// The maximum of `compile_seconds_max`.
const COMPILE_SECONDS_MAX_MAX: u64 = 3_600;
/// The maximum number of threads of a lane.
pub(crate) const THREADS_PER_LANE_MAX: usize = 256;
/// The maximum number of queued calls of a lane.
const QUEUE_LENGTH_MAX: usize = 65_536;
/// The maximum of `retry_after_seconds`.
const RETRY_AFTER_SECONDS_MAX: u64 = 3_600;
/// The maximum of `faults_max`.
const FAULTS_MAX_MAX: u64 = 1_000_000;
/// The maximum of `disabled_seconds`.
const DISABLED_SECONDS_MAX: u64 = 3_600;

impl SandboxConfig {
    /// Returns the defaults with this cache directory.
    pub fn new(cache_directory: PathBuf) -> Self {
        Self {
            cache_directory,
            cache_unused_days_max: default_cache_unused_days_max(),
            compile_seconds_max: default_compile_seconds_max(),
            threads_per_lane: None,
            queue_length: default_queue_length(),
            queue_length_per_actor_max: None,
            retry_after_seconds: default_retry_after_seconds(),
            faults_max: default_faults_max(),
            disabled_seconds: default_disabled_seconds(),
        }
    }

    /// Returns the time after which unused files in the cache folder expire.
    pub fn cache_unused_max(&self) -> Duration {
        Duration::from_secs(self.cache_unused_days_max.saturating_mul(24 * 60 * 60))
    }

    pub(crate) fn queue_limits(&self) -> QueueLimits {
        let half = self.queue_length.div_ceil(2);
        QueueLimits {
            length_max: self.queue_length,
            length_per_actor_max: self.queue_length_per_actor_max.map_or(half, usize::from),
            retry_after: Duration::from_secs(self.retry_after_seconds),
        }
    }
}

fn default_cache_unused_days_max() -> u64 {
    30
}

fn default_compile_seconds_max() -> u64 {
    120
}

fn default_queue_length() -> usize {
    256
}

fn default_retry_after_seconds() -> u64 {
    1
}

fn default_faults_max() -> u32 {
    5
}

fn default_disabled_seconds() -> u64 {
    30
}

/// The way in which components are compiled.
#[derive(Clone, Debug)]
pub enum Compiler {
    /// In a separate process for each component.
    Program {
        /// A program that calls [`compile_component`](crate::compile_component).
        path: PathBuf,
        /// The maximum processor time for a component, in seconds.
        seconds_max: u64,
    },
    /// In this process, without limits: for trusted components.
    ThisProcess,
}

/// The configuration of a plugin.
#[derive(Clone)]
pub struct PluginConfig {
    /// The source of the component.
    pub component: ComponentSource,
    /// The required SHA-256 of the component, in lower-case hexadecimal; `None` permits any component.
    pub sha256: Option<String>,
    /// The plugin's own settings, passed with each call. They may contain secrets and are never logged.
    pub settings: Map<String, Value>,
    /// The host interfaces that the plugin may use. A plugin that imports others is refused.
    pub grants: Vec<Grant>,
    /// Whether a generator may derive its values from its parameters alone, without randomness. If `false`, a generator that
    /// declares no random bits is refused. A generator that declares random bits must pass the entropy test in either case.
    pub derived: bool,
    /// The limits of each call.
    pub limits: Limits,
}

impl fmt::Debug for PluginConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PluginConfig")
            .field("component", &self.component)
            .field("sha256", &self.sha256)
            .field("grants", &self.grants)
            .field("derived", &self.derived)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The source of a component.
#[derive(Clone, Debug)]
pub enum ComponentSource {
    /// Bytes that were already read.
    Bytes {
        /// The name used in messages.
        name: String,
        /// The WebAssembly component.
        bytes: Arc<[u8]>,
    },
    /// A file.
    File(PathBuf),
}

impl ComponentSource {
    /// Returns the default name of a plugin: the file name without its extension, or the name of the bytes.
    pub(crate) fn short_name(&self) -> String {
        match self {
            Self::Bytes { name, .. } => name.clone(),
            Self::File(path) => path
                .file_stem()
                .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned()),
        }
    }
}

impl From<PathBuf> for ComponentSource {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl fmt::Display for ComponentSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes { name, .. } => formatter.write_str(name),
            Self::File(path) => path.display().fmt(formatter),
        }
    }
}

/// A host interface that a plugin may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    /// The host's random generator: `wasi:random/random`.
    Random,
    /// Only for generators: signing with the issuers that callers name, `keywright:signing/issuer`.
    Signing,
    /// Only for generators: reading the values of the credentials that callers name as inputs,
    /// `keywright:generator/derived-generator`.
    Inputs,
}

impl fmt::Display for Grant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}

/// The limits of each call of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Maximum total size of the linear memories of a call.
    #[schemars(range(min = MEMORY_BYTES_BOUNDS.0, max = MEMORY_BYTES_BOUNDS.1))]
    pub memory_bytes_max: u64,
    /// Maximum duration of a call. Calls of functions other than `generate` have at most 3000 milliseconds.
    #[schemars(range(min = DEADLINE_MS_BOUNDS.0, max = DEADLINE_MS_BOUNDS.1))]
    pub deadline_ms: u64,
    /// Maximum size of a call's input, including settings.
    #[schemars(range(min = MESSAGE_BYTES_BOUNDS.0, max = MESSAGE_BYTES_BOUNDS.1))]
    pub input_bytes_max: usize,
    /// Maximum size of a call's output.
    #[schemars(range(min = MESSAGE_BYTES_BOUNDS.0, max = MESSAGE_BYTES_BOUNDS.1))]
    pub output_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes_max: 64 * 1024 * 1024,
            deadline_ms: 30_000,
            input_bytes_max: 128 * 1024,
            output_bytes_max: 128 * 1024,
        }
    }
}

impl Limits {
    /// Returns the name, the minimum and the maximum of the first limit that is out of range.
    pub fn out_of_bounds(&self) -> Option<(&'static str, u64, u64)> {
        let bytes = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
        [
            (
                "memory_bytes_max",
                self.memory_bytes_max,
                MEMORY_BYTES_BOUNDS,
            ),
            ("deadline_ms", self.deadline_ms, DEADLINE_MS_BOUNDS),
            (
                "input_bytes_max",
                bytes(self.input_bytes_max),
                MESSAGE_BYTES_BOUNDS,
            ),
            (
                "output_bytes_max",
                bytes(self.output_bytes_max),
                MESSAGE_BYTES_BOUNDS,
            ),
        ]
        .into_iter()
        .find(|(_, value, (min, max))| !(min..=max).contains(&value))
        .map(|(name, _, (min, max))| (name, min, max))
    }
}

/// The range of `memory_bytes_max`: 64 KiB to 4 GiB.
const MEMORY_BYTES_BOUNDS: (u64, u64) = (64 << 10, 4 << 30);
/// The range of `deadline_ms`.
const DEADLINE_MS_BOUNDS: (u64, u64) = (10, 600_000);
/// The range of `input_bytes_max` and `output_bytes_max`: 1 KiB to 16 MiB.
const MESSAGE_BYTES_BOUNDS: (u64, u64) = (1 << 10, 16 << 20);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_one_past_each_bound_are_out_of_range() {
        type Change = fn(&mut Limits);
        let limits = Limits::default();
        assert_eq!(limits.out_of_bounds(), None);
        let changes: [(Change, &str); 6] = [
            (
                |limits| limits.memory_bytes_max = (4 << 30) + 1,
                "memory_bytes_max",
            ),
            (
                |limits| limits.memory_bytes_max = 64 * 1024 - 1,
                "memory_bytes_max",
            ),
            (|limits| limits.deadline_ms = 9, "deadline_ms"),
            (|limits| limits.deadline_ms = 600_001, "deadline_ms"),
            (|limits| limits.input_bytes_max = 1023, "input_bytes_max"),
            (
                |limits| limits.output_bytes_max = (16 << 20) + 1,
                "output_bytes_max",
            ),
        ];
        for (change, name) in changes {
            let mut outside = limits;
            change(&mut outside);
            assert_eq!(outside.out_of_bounds().map(|(name, ..)| name), Some(name));
        }
    }

    #[test]
    fn debug_omits_the_settings() {
        let settings = json!({"token": "hunter2"});
        let plugin = PluginConfig {
            component: PathBuf::from("p.wasm").into(),
            sha256: None,
            settings: settings.as_object().cloned().unwrap(),
            grants: Vec::new(),
            derived: false,
            limits: Limits::default(),
        };
        assert!(!format!("{plugin:?}").contains("hunter2"));
    }
}
