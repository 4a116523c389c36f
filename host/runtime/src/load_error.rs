//! Errors that prevent plugins from loading, with instructions for the operator.

use std::{error::Error, fmt, io, path::PathBuf};

use keywright_core::ports::{PluginCallError, PluginFaultError};

use crate::{config::Grant, conformance::EntropyError, schema::SchemaError};

/// The error when plugins can't be loaded. `Display` names the plugin, its component and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The cache directory can't be created or read.
    #[error("the cache directory {} can't be used", .path.display())]
    CacheDirectory {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The cache directory has another owner, or a mode that lets others use it.
    #[error("the cache directory {} {rule}", .path.display())]
    CacheDirectoryUnsafe {
        /// The directory.
        path: PathBuf,
        /// The violated rule.
        rule: &'static str,
    },
    /// The engine can't reserve the memory for this number of calls.
    #[error(
        "can't reserve memory for {calls} simultaneous plugin calls; lower threads_per_lane or the plugins' \
         memory_bytes_max, or raise the limit on the server's address space"
    )]
    Engine {
        /// The number of simultaneous calls.
        calls: u32,
        /// The cause.
        source: wasmtime::Error,
    },
    /// A plugin was refused.
    #[error(transparent)]
    Plugin(#[from] PluginLoadError),
    /// A sandbox setting is out of range.
    #[error("the sandbox setting {setting} must be from {min} to {max}")]
    SettingOutOfBounds {
        /// The setting.
        setting: &'static str,
        /// The minimum.
        min: u64,
        /// The maximum.
        max: u64,
    },
    /// The operating system did not start a thread.
    #[error("the threads for plugin calls could not be started")]
    Threads(#[source] io::Error),
}

/// A plugin that was refused.
#[derive(Debug)]
pub struct PluginLoadError {
    /// The configured name.
    pub plugin: String,
    /// Whether it is configured as a generator; otherwise it is the resolver.
    pub is_generator: bool,
    /// The component's file path or registry reference.
    pub component: String,
    /// The reason.
    pub refusal: PluginRefusedError,
}

impl fmt::Display for PluginLoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "the plugin {} (component {}) is refused: {}",
            self.plugin, self.component, self.refusal
        )
    }
}

impl Error for PluginLoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.refusal.source()
    }
}

/// The reason for refusing a plugin, with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum PluginRefusedError {
    /// The component file does not exist.
    #[error("the file does not exist; build the component or correct the path")]
    ComponentMissing,
    /// The component file exceeds the size limit for components.
    #[error("the file is larger than {bytes_max} bytes")]
    ComponentTooLarge {
        /// The maximum size in bytes.
        bytes_max: u64,
    },
    /// The component file can't be read.
    #[error("the file can't be read")]
    ComponentUnreadable(#[source] io::Error),
    /// The configured name is not a valid name of a credential type.
    #[error("invalid type name; use 1 to 63 characters of a-z, 0-9 and -, starting with a letter")]
    CredentialTypeMalformed,
    /// It is configured as the generator of a type whose values can only be set.
    #[error("credentials of this type can only be set; choose another type name")]
    CredentialTypeSetOnly,
    /// It generates another type than the configured one.
    #[error("it generates credentials of type {described:?}; configure it under that name")]
    CredentialTypeDiffers {
        /// The type in its description, truncated if it is long.
        described: String,
    },
    /// Its `describe` function failed.
    #[error(
        "its describe function failed: it {0}; raise its limits if they are too low, or report this to its author"
    )]
    DescribeFailed(PluginFaultError),
    /// Its `describe-settings` function failed.
    #[error(
        "its describe-settings function failed: it {0}; raise its limits if they are too low, or report this to its author"
    )]
    DescribeSettingsFailed(PluginFaultError),
    /// It declares that its values are not random, and its configuration does not allow that.
    #[error(
        "it uses no random numbers, so anyone who knows its parameters, and its inputs if it has any, can compute its values; \
         if you accept that, set derived = true"
    )]
    DerivedNotAllowed,
    /// Its description breaks a rule.
    #[error("invalid description: {0}; report this to its author")]
    DescriptionMalformed(&'static str),
    /// The configured digest is malformed.
    #[error("sha256 must be 64 lower-case hexadecimal digits")]
    DigestMalformed,
    /// The component's digest differs from the configured one.
    #[error(
        "its SHA-256 is {found}, but {expected} is configured; restore the pinned component, or correct sha256 if the \
         change is intended"
    )]
    DigestDiffers {
        /// The configured digest.
        expected: String,
        /// The digest of the file.
        found: String,
    },
    /// It exports an interface with different functions or types.
    #[error(
        "its export {0} differs from this server's interface; rebuild it against this server's wit/"
    )]
    ExportDiffers(String),
    /// It lacks an interface that its role requires.
    #[error(
        "it is not a {role}: it does not export {interface}; use it as a {other_role} if it is one, or rebuild it against this \
         server's wit/",
        role = role_name(*.is_generator),
        other_role = role_name(!*.is_generator)
    )]
    ExportMissing {
        /// Whether a generator is required; otherwise a resolver.
        is_generator: bool,
        /// The missing interface.
        interface: String,
    },
    /// It takes inputs, which its configuration does not grant.
    #[error(
        "it reads the values of credentials that callers name in its parameters (it exports \
         keywright:generator/derived-generator), which is not granted; if you trust it with these secrets, add \"inputs\" to \
         its grants"
    )]
    InputsNotGranted,
    /// Its `input-parameters` function failed.
    #[error(
        "its input-parameters function failed: it {0}; raise its limits if they are too low, or report this to its author"
    )]
    InputParametersFailed(PluginFaultError),
    /// The result of its `input-parameters` function breaks a rule.
    #[error("its input-parameters are invalid: {0}; report this to its author")]
    InputParametersMalformed(&'static str),
    /// The initial memory image of its instances could not be created.
    #[error(
        "the operating system denied memory for its initial memory image; this is not a fault of the component: retry, \
         with more memory if necessary"
    )]
    ImageNotCreated(#[source] wasmtime::Error),
    /// It can't be linked: its imports have other types than the host's functions.
    #[error(
        "its imports differ from this server's interfaces; rebuild it against this server's wit/"
    )]
    ImportDiffers(#[source] wasmtime::Error),
    /// It imports an interface that its configuration does not grant.
    #[error("it imports {import}, which is not granted; if you trust it with that, add {grant:?} to its grants", grant = .grant.to_string())]
    ImportNotGranted {
        /// The imported interface.
        import: String,
        /// The missing grant.
        grant: Grant,
    },
    /// It imports an interface that this server does not provide.
    #[error("it imports {0}, which this server does not provide; use a component built without it")]
    ImportUnknown(String),
    /// It failed to generate a value, so its randomness can't be tested.
    #[error(
        "it failed to generate a value for the entropy test with the parameters {parameters}: {failure}; its author can \
         put other parameters first in the examples of its parameters schema"
    )]
    ExampleFailed {
        /// The parameters, as JSON.
        parameters: String,
        /// The failure of the call.
        failure: Box<PluginCallError>,
    },
    /// It was built for another version of an interface.
    #[error(
        "it was built for {interface} {wanted}, and this server has {offered}; use a component built for this server, or another server",
        offered = .offered.join(" and ")
    )]
    InterfaceVersionDiffers {
        /// The interface.
        interface: String,
        /// The version that the component imports or exports.
        wanted: String,
        /// The versions that this server has.
        offered: &'static [&'static str],
    },
    /// It uses several versions of Keywright's interfaces.
    #[error(
        "it mixes interfaces of the versions {versions}; a component must use a single version, for this server one of \
         {offered}; report this to its author",
        offered = .offered.join(" and ")
    )]
    InterfaceVersionsMixed {
        /// The versions that it uses.
        versions: String,
        /// The versions that this server has.
        offered: &'static [&'static str],
    },
    /// It declares an issuer parameter, but its `generate` function takes no issuer.
    #[error(
        "it has an issuer parameter but does not export issued-generator; report this to its author"
    )]
    IssuerNotAccepted,
    /// A limit is out of range.
    #[error("the limit {limit} must be from {min} to {max}")]
    LimitOutOfBounds {
        /// The limit.
        limit: &'static str,
        /// The minimum.
        min: u64,
        /// The maximum.
        max: u64,
    },
    /// It exports more than one interface that generates values.
    #[error(
        "it exports more than one of generator, issued-generator and derived-generator; report this to its author"
    )]
    GeneratorsConflict,
    /// It is a core module.
    #[error(
        "the file is a core WebAssembly module; convert it to a component (wasm-tools component new)"
    )]
    ModuleNotComponent,
    /// It is not a component that this server can compile.
    #[error("the file is not a WebAssembly component that this server can run")]
    NotAComponent(#[source] wasmtime::Error),
    /// It failed the entropy test.
    #[error(
        "its values are not random enough: {0}; use another component, and report this to its author"
    )]
    NotRandom(EntropyError),
    /// One of its schemas can't be used.
    #[error("its {which} schema {malformed}; report this to its author")]
    SchemaMalformed {
        /// The schema: `parameters`, `value` or `settings`.
        which: &'static str,
        /// The reason.
        malformed: SchemaError,
    },
    /// Its settings do not match its settings schema. The rule contains no values.
    #[error("invalid settings: {0}")]
    SettingsRefused(String),
    /// Its settings alone exceed the input limit.
    #[error("its settings are larger than its input_bytes_max")]
    SettingsTooLarge,
    /// It exceeds a limit on the parts of a component.
    #[error(
        "it has more than {max} {what}, which would take too much time and memory to compile; use a smaller component"
    )]
    TooComplex {
        /// The kind of parts.
        what: &'static str,
        /// The maximum number of these parts.
        max: u64,
    },
    /// It exceeds the sandbox's limits for components.
    #[error(
        "it needs more than the sandbox allows: {}; raise memory_bytes_max or use another component",
        .0.root_cause()
    )]
    TooDemanding(wasmtime::Error),
}

impl PluginRefusedError {
    /// Returns the setting of the plugin that is at fault, or `None` if it is the name of the plugin's section.
    #[must_use]
    pub fn setting(&self) -> Option<&'static str> {
        let setting = match self {
            Self::CredentialTypeMalformed | Self::CredentialTypeSetOnly => return None,
            Self::DerivedNotAllowed => "derived",
            Self::DigestDiffers { .. } | Self::DigestMalformed => "sha256",
            Self::ImportNotGranted { .. } | Self::InputsNotGranted => "grants",
            Self::LimitOutOfBounds { .. } => "limits",
            Self::SettingsRefused(_) | Self::SettingsTooLarge => "settings",
            _ => "component",
        };
        Some(setting)
    }
}

fn role_name(is_generator: bool) -> &'static str {
    if is_generator {
        "generator"
    } else {
        "resolver"
    }
}
