//! The configuration of plugins and their sandbox.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    num::NonZeroUsize,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::lane::QueueLimits;

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
    /// The digests of components that passed the entropy test without settings when a release was built. They are not tested
    /// again.
    pub tested: BTreeSet<String>,
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
    #[serde(default)]
    pub cache_unused_days_max: Number<1, 3_650, 30>,
    /// Maximum processor time to compile a component. A compiling process that exceeds it is killed.
    #[serde(default)]
    pub compile_seconds_max: Number<1, 3_600, 120>,
    /// Threads of each of the two lanes: for `generate`, and for all other functions. Two of the threads for `generate` (one if there
    /// are only two) are reserved for actors without a running call. Defaults to the number of cores, and two more for `generate`.
    #[serde(default)]
    #[schemars(range(max = THREADS_PER_LANE_MAX))]
    pub threads_per_lane: Option<NonZeroUsize>,
    /// Maximum number of calls that wait in each lane. Further calls are refused with 503, except the first waiting call of
    /// each actor.
    #[serde(default)]
    pub queue_length: Number<1, QUEUE_LENGTH_MAX, 256>,
    /// Maximum number of calls of one actor that wait in each lane. Further calls of that actor are refused with 429. Defaults to half of
    /// `queue_length`.
    #[serde(default)]
    #[schemars(range(max = QUEUE_LENGTH_MAX))]
    pub queue_length_per_actor_max: Option<NonZeroUsize>,
    /// The value of `Retry-After` in responses to calls that are refused because of a full queue.
    #[serde(default)]
    pub retry_after_seconds: Number<1, 3_600, 1>,
    /// Consecutive faults of a function of a component (traps, exceeded deadlines, exceeded memory) in calls of one actor that open
    /// the component's circuit for this actor.
    #[serde(default)]
    pub faults_max: Number<1, 1_000_000, 5>,
    /// Seconds for which the circuit of a component stays open.
    #[serde(default)]
    pub disabled_seconds: Number<1, 3_600, 30>,
}

/// The maximum number of threads of a lane.
pub(crate) const THREADS_PER_LANE_MAX: usize = 256;
/// The maximum number of queued calls of a lane.
const QUEUE_LENGTH_MAX: u64 = 65_536;

impl SandboxConfig {
    /// Returns the defaults with this cache directory.
    pub fn new(cache_directory: PathBuf) -> Self {
        Self {
            cache_directory,
            cache_unused_days_max: Number::default(),
            compile_seconds_max: Number::default(),
            threads_per_lane: None,
            queue_length: Number::default(),
            queue_length_per_actor_max: None,
            retry_after_seconds: Number::default(),
            faults_max: Number::default(),
            disabled_seconds: Number::default(),
        }
    }

    /// Returns the time after which unused files in the cache folder expire.
    pub fn cache_unused_max(&self) -> Duration {
        Duration::from_hours(24 * self.cache_unused_days_max.number())
    }

    pub(crate) fn queue_limits(&self) -> QueueLimits {
        let length_max = self.queue_length.count();
        let half = length_max.div_ceil(2);
        QueueLimits {
            length_max,
            length_per_actor_max: self.queue_length_per_actor_max.map_or(half, usize::from),
            retry_after: self.retry_after_seconds.seconds(),
        }
    }
}

/// A number with the default `DEFAULT`. The check of the configuration against its schema rejects numbers that are not from `MIN`
/// to `MAX`, inclusive.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Number<const MIN: u64, const MAX: u64, const DEFAULT: u64>(u64);

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> Number<MIN, MAX, DEFAULT> {
    /// Returns the number itself.
    pub fn number(self) -> u64 {
        self.0
    }

    /// Returns the number as a count of items or bytes.
    pub fn count(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// Returns the number as a 32-bit count.
    pub fn count_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }

    /// Returns the number as a duration in milliseconds.
    pub fn milliseconds(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// Returns the number as a duration in seconds.
    pub fn seconds(self) -> Duration {
        Duration::from_secs(self.0)
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> Default for Number<MIN, MAX, DEFAULT> {
    fn default() -> Self {
        const { assert!(MIN <= DEFAULT && DEFAULT <= MAX) };
        Self(DEFAULT)
    }
}

/// An integer within the bounds; the schema of each setting adds the default.
impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> JsonSchema for Number<MIN, MAX, DEFAULT> {
    fn schema_name() -> Cow<'static, str> {
        format!("Number from {MIN} to {MAX}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": MIN, "maximum": MAX})
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Grant {
    /// The host's random generator: `wasi:random/random`.
    Random,
    /// Only for generators: signing with the issuers that callers name, `keywright:signing/issuer`.
    Signing,
    /// Only for generators: reading the values of the credentials that callers name as inputs,
    /// `keywright:generator/derived-generator`.
    Inputs,
}

/// The limits of each call of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Maximum total size of the linear memories of a call.
    #[schemars(range(min = MEMORY_BYTES_BOUNDS.0, max = MEMORY_BYTES_BOUNDS.1))]
    pub memory_bytes_max: u64,
    /// Maximum processor time of a call. Calls of functions other than `generate` have at most 3000 milliseconds.
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
        let mut limits = self.each().into_iter();
        let outside = limits.find(|(_, value, (min, max))| !(min..=max).contains(&value));
        outside.map(|(name, _, (min, max))| (name, min, max))
    }

    /// Returns the name, the value and the range of each limit.
    pub(crate) fn each(&self) -> [(&'static str, u64, (u64, u64)); 4] {
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
