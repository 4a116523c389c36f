//! Errors that prevent plugins from loading, with instructions for the operator.

use std::{error::Error, fmt, io, path::PathBuf, process::ExitStatus};

use keywright_core::{
    ports::{PluginCallError, PluginFaultError},
    text::for_log,
};

use crate::{config::Grant, conformance::EntropyError, schema::SchemaError};

/// The error when plugins can't be loaded. `Display` names the plugin, its component and the remedy.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum LoadError {
    #[error("could not use the cache directory {}", .path.display())]
    CacheDirectory { path: PathBuf, source: io::Error },
    #[error("the cache directory {} {rule}", .path.display())]
    CacheDirectoryUnsafe { path: PathBuf, rule: &'static str },
    #[error(
        "could not reserve memory for {calls} simultaneous plugin calls; lower threads_per_lane or the plugins' \
         memory_bytes_max, or raise the limit on the server's address space"
    )]
    Engine { calls: u32, source: wasmtime::Error },
    #[error(transparent)]
    Plugin(#[from] PluginLoadError),
    #[error("could not start the threads for plugin calls")]
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
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum PluginRefusedError {
    #[error(
        "it takes more than {seconds_max} s of processor time to compile; use a smaller component, or raise \
         plugins.compile_seconds_max"
    )]
    CompilationTooLong { seconds_max: u64 },
    #[error("its compiled form is larger than {bytes_max} bytes; use a smaller component")]
    CompiledTooLarge { bytes_max: u64 },
    #[error(
        "the compiler ended ({status}), probably because it needs more than {memory_bytes_max} bytes of memory; use a smaller \
         component"
    )]
    CompilerFailed {
        status: ExitStatus,
        memory_bytes_max: u64,
    },
    #[error("could not run the program that compiles it, {}", .program.display())]
    CompilerNotRun {
        program: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("it is a folder; name a component")]
    ComponentIsFolder,
    #[error("the file does not exist; build the component or correct the path")]
    ComponentMissing,
    #[error("the file is larger than {bytes_max} bytes")]
    ComponentTooLarge { bytes_max: u64 },
    #[error("could not read the file")]
    ComponentUnreadable(#[source] io::Error),
    #[error("invalid type name; use 1 to 63 characters of a-z, 0-9 and -, starting with a letter")]
    CredentialTypeMalformed,
    #[error("credentials of this type can only be set; choose another type name")]
    CredentialTypeSetOnly,
    #[error("it generates credentials of type {described:?}; configure it under that name")]
    CredentialTypeDiffers {
        /// Truncated if it is long.
        described: String,
    },
    #[error(
        "it uses no random numbers, so anyone who knows its parameters, and its inputs if it has any, can compute its values; \
         if you accept that, set derived = true"
    )]
    DerivedNotAllowed,
    #[error("invalid description: {0}; report this to its author")]
    DescriptionMalformed(&'static str),
    #[error("must be 64 lower-case hexadecimal digits")]
    DigestMalformed,
    #[error(
        "its SHA-256 is {found}, but {expected} is configured; restore the pinned component, or correct sha256 if the \
         change is intended"
    )]
    DigestDiffers { expected: String, found: String },
    #[error(
        "its export {0} differs from this server's interface; rebuild it against this server's wit/"
    )]
    ExportDiffers(String),
    #[error(
        "it is not a {role}: it does not export {interface}; use it as a {other_role} if it is one, or rebuild it against this \
         server's wit/",
        role = role_name(*.is_generator),
        other_role = role_name(!*.is_generator)
    )]
    ExportMissing {
        is_generator: bool,
        interface: String,
    },
    #[error(
        "it reads the values of credentials that callers name in its parameters (it exports \
         keywright:generator/derived-generator), which is not granted; if you trust it with these secrets, add \"inputs\" to \
         its grants"
    )]
    InputsNotGranted,
    #[error("its input-parameters are invalid: {0}; report this to its author")]
    InputParametersMalformed(&'static str),
    #[error(
        "the operating system denied memory for its initial memory image; this is not a fault of the component: retry, \
         with more memory if necessary"
    )]
    ImageNotCreated(#[source] wasmtime::Error),
    #[error(
        "its imports differ from this server's interfaces; rebuild it against this server's wit/"
    )]
    ImportDiffers(#[source] wasmtime::Error),
    #[error(
        "it imports {import}, which is not granted; if you trust it with this interface, add {grant:?} to its grants",
        grant = .grant.to_string()
    )]
    ImportNotGranted { import: String, grant: Grant },
    #[error("it imports {0}, which this server does not provide; use a component built without it")]
    ImportUnknown(String),
    #[error(
        "it could not generate a value for the entropy test with the parameters {parameters}: {failure}; its author can \
         put other parameters first in the examples of its parameters schema"
    )]
    ExampleFailed {
        parameters: String,
        failure: Box<PluginCallError>,
    },
    #[error(
        "it was built for {interface} {wanted}, and this server has {offered}; use a component built for this server, or another server",
        offered = .offered.join(" and ")
    )]
    InterfaceVersionDiffers {
        interface: String,
        wanted: String,
        offered: &'static [&'static str],
    },
    #[error(
        "it mixes interfaces of the versions {versions}; a component must use a single version, for this server one of \
         {offered}; report this to its author",
        offered = .offered.join(" and ")
    )]
    InterfaceVersionsMixed {
        versions: String,
        offered: &'static [&'static str],
    },
    #[error(
        "its {function} function failed: it {fault}; raise its limits if they are too low, or report this to its author"
    )]
    FunctionFailed {
        function: &'static str,
        fault: PluginFaultError,
    },
    #[error(
        "instantiating it failed: it {0}; raise its limits if they are too low, or report this to its author"
    )]
    InstantiationFailed(PluginFaultError),
    #[error(
        "it has an issuer parameter but does not export issued-generator; report this to its author"
    )]
    IssuerNotAccepted,
    #[error(
        "it exports more than one of generator, issued-generator and derived-generator; report this to its author"
    )]
    GeneratorsConflict,
    #[error(
        "the file is a core WebAssembly module; convert it to a component (wasm-tools component new)"
    )]
    ModuleNotComponent,
    #[error("the file is not a WebAssembly component that this server can run: {0}")]
    NotAComponent(String),
    #[error("the file is not a WebAssembly component")]
    NotWebAssembly,
    #[error(
        "its values are not random enough: {0}; use another component, and report this to its author"
    )]
    NotRandom(EntropyError),
    #[error("its {which} schema {malformed}; report this to its author")]
    SchemaMalformed {
        which: &'static str,
        malformed: SchemaError,
    },
    /// The rule contains no values.
    #[error("invalid settings: {0}")]
    SettingsRefused(String),
    #[error("its settings are larger than its input_bytes_max")]
    SettingsTooLarge,
    #[error(
        "it has more than {max} {what}, which would take too much time and memory to load; use a smaller component"
    )]
    TooComplex { what: &'static str, max: u64 },
    #[error("it needs more than the sandbox allows: {}", exceeded(.0))]
    TooDemanding(wasmtime::Error),
}

impl PluginRefusedError {
    /// Creates the error for bytes that the parser or the compiler rejected with this message, which may contain names from them.
    pub(crate) fn not_a_component(message: &str) -> Self {
        Self::NotAComponent(for_log(message))
    }

    /// Returns the setting of the plugin that is at fault, or `None` if it is the name of the plugin's section.
    pub fn setting(&self) -> Option<&'static str> {
        let setting = match self {
            Self::CredentialTypeMalformed | Self::CredentialTypeSetOnly => return None,
            Self::DerivedNotAllowed => "derived",
            Self::DigestDiffers { .. } | Self::DigestMalformed => "sha256",
            Self::ImportNotGranted { .. } | Self::InputsNotGranted => "grants",
            Self::SettingsRefused(_) | Self::SettingsTooLarge => "settings",
            _ => "component",
        };
        Some(setting)
    }
}

/// Returns the engine's message and a remedy. Omits the limit, which the message may show in hexadecimal. Only the size of a memory has
/// a setting.
fn exceeded(cause: &wasmtime::Error) -> String {
    let message = cause.root_cause().to_string();
    let needed = message.split(" which exceeds").next().unwrap_or_default();
    let remedy = if needed.starts_with("memory ") {
        "raise memory_bytes_max or use another component"
    } else {
        "use another component"
    };
    format!("{}; {remedy}", needed.trim_end_matches(','))
}

fn role_name(is_generator: bool) -> &'static str {
    if is_generator {
        "generator"
    } else {
        "resolver"
    }
}
