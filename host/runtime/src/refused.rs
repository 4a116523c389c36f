//! Why the plugins could not be loaded, in words that tell an operator what to do.

use std::{error::Error, fmt, io, path::PathBuf};

use keywright_core::ports::{PluginFailure, PluginFault};

use crate::{config::Grant, conformance::EntropyFault, schema::SchemaMalformed};

/// Why the plugins could not be loaded. `Display` names the plugin, its component and what to do.
#[derive(Debug, thiserror::Error)]
pub enum LoadRefused {
    /// The cache directory can't be made or looked at.
    #[error("the cache directory {} can't be used", .path.display())]
    CacheDirectory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The cache directory is no directory, or is not the server's alone.
    #[error("the cache directory {} {rule}", .path.display())]
    CacheDirectoryUnsafe {
        /// The directory.
        path: PathBuf,
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// The engine could not be made for so many calls.
    #[error(
        "there is no room for {calls} simultaneous plugin calls: lower threads_per_lane or the plugins' \
         memory_bytes_max, or raise the limit on the server's address space"
    )]
    Engine {
        /// How many calls there should be room for.
        calls: u32,
        /// Why.
        source: wasmtime::Error,
    },
    /// A plugin was refused.
    #[error(transparent)]
    Plugin(#[from] PluginRefused),
    /// A setting of the sandbox is outside its bounds.
    #[error("the sandbox setting {setting} must be from {min} to {max}")]
    SettingOutOfBounds {
        /// The setting.
        setting: &'static str,
        /// The least that it may be.
        min: u64,
        /// The most that it may be.
        max: u64,
    },
    /// The system gives no thread.
    #[error("the threads for plugin calls could not be started")]
    Threads(#[source] io::Error),
}

/// A plugin that was refused.
#[derive(Debug)]
pub struct PluginRefused {
    /// The name under which it is configured.
    pub plugin: String,
    /// Whether it is configured as a generator; the resolver otherwise.
    pub is_generator: bool,
    /// What its component is called: the path of the file, where it is one.
    pub component: String,
    /// Why.
    pub refusal: Refusal,
}

impl fmt::Display for PluginRefused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "the plugin {} (component {}) is refused: {}",
            self.plugin, self.component, self.refusal
        )
    }
}

impl Error for PluginRefused {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.refusal.source()
    }
}

/// Why a plugin is refused, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// There is no component file.
    #[error("the file does not exist; build the component or correct the path")]
    ComponentMissing,
    /// The component file is larger than any component may be.
    #[error("the file is larger than {bytes_max} bytes")]
    ComponentTooLarge {
        /// The most that a component may have.
        bytes_max: u64,
    },
    /// The component file can't be read.
    #[error("the file can't be read")]
    ComponentUnreadable(#[source] io::Error),
    /// It is configured as the generator of something that is no name of a credential type.
    #[error("its name is no credential type: 1 to 63 of a-z, 0-9 and -, beginning with a letter")]
    CredentialTypeMalformed,
    /// It is configured as the generator of a type whose values are only ever set.
    #[error("credentials of this type can only be set; choose another type name")]
    CredentialTypeSetOnly,
    /// It makes another type than it is configured for.
    #[error("it makes credentials of type {described:?}; configure it under that name")]
    CredentialTypeDiffers {
        /// The type that it describes, shortened if it is long.
        described: String,
    },
    /// It failed to describe itself.
    #[error("asked to describe itself, it {0}; tell its author")]
    DescribeFailed(PluginFault),
    /// It says that its values are not random, which its configuration does not allow.
    #[error(
        "it derives its values from its parameters alone, as it says, so whoever knows these knows the values; if that is \
         meant, set derived = true"
    )]
    DerivedNotAllowed,
    /// Its description breaks a rule.
    #[error("its description is wrong: {0}; tell its author")]
    DescriptionMalformed(&'static str),
    /// The digest in the configuration is none.
    #[error("the configured sha256 is not 64 lower-case hexadecimal digits")]
    DigestMalformed,
    /// The component is not the one that was pinned.
    #[error(
        "its SHA-256 is {found}, but {expected} is configured; restore the pinned component, or correct sha256 if the \
         change is meant"
    )]
    DigestDiffers {
        /// The configured digest.
        expected: String,
        /// The digest of the file.
        found: String,
    },
    /// It exports an interface with other functions or types.
    #[error(
        "its export {0} differs from the interface of that name; rebuild it against this server's wit/"
    )]
    ExportDiffers(String),
    /// It lacks an interface that its role needs.
    #[error(
        "it does not export {0}; rebuild it against this server's wit/, or use another component"
    )]
    ExportMissing(String),
    /// What its instances begin with could not be put in place.
    #[error(
        "the system denied the memory that its instances begin with; the component is not to blame: try again, with more \
         memory if that is short"
    )]
    ImageNotMade(#[source] wasmtime::Error),
    /// It can't be linked: it uses what it imports otherwise than that is defined.
    #[error("it does not fit what it imports; rebuild it against this server's wit/")]
    ImportDiffers(#[source] wasmtime::Error),
    /// It imports something that its configuration does not grant.
    #[error("it imports {import}, which is not granted; if you trust it with that, add {grant:?} to its grants", grant = .grant.to_string())]
    ImportNotGranted {
        /// What it imports.
        import: String,
        /// The grant that allows it.
        grant: Grant,
    },
    /// It imports something that this server does not offer to any plugin.
    #[error(
        "it imports {0}, which this server offers to no plugin; use a component built without it"
    )]
    ImportUnknown(String),
    /// It could not be made to generate, so nothing is known of the randomness of its values.
    #[error(
        "it made no value of {parameters}, so that its randomness can't be looked at: {failure}; its author can give other \
         parameters as the first of the examples in its parameters schema"
    )]
    ExampleFailed {
        /// The parameters, JSON.
        parameters: String,
        /// What it gave in the place of a value.
        failure: Box<PluginFailure>,
    },
    /// It was built for another version of an interface.
    #[error(
        "it was built for {interface} {wanted}, and this server has {offered}; use a component built for what it has, or another server",
        offered = .offered.join(" and ")
    )]
    InterfaceVersionDiffers {
        /// The interface.
        interface: String,
        /// The version that the component wants.
        wanted: String,
        /// The versions that this server has.
        offered: &'static [&'static str],
    },
    /// It names our interfaces in several versions.
    #[error(
        "it mixes interfaces of the versions {versions}; a component is built for one version alone, for this server one of \
         {offered}; tell its author",
        offered = .offered.join(" and ")
    )]
    InterfaceVersionsMixed {
        /// The versions that it names.
        versions: String,
        /// The versions that this server has.
        offered: &'static [&'static str],
    },
    /// It names an issuer parameter but can't be lent an issuer.
    #[error(
        "it has an issuer parameter but exports generator in the place of issued-generator; tell its author"
    )]
    IssuerNotTaken,
    /// A limit is outside its bounds.
    #[error("its limit {limit} must be from {min} to {max}")]
    LimitOutOfBounds {
        /// The limit.
        limit: &'static str,
        /// The least that it may be.
        min: u64,
        /// The most that it may be.
        max: u64,
    },
    /// It exports both `generator` and `issued-generator`.
    #[error("it exports both generator and issued-generator; tell its author")]
    MakesTwice,
    /// It is a core module.
    #[error(
        "the file is a core WebAssembly module; make a component of it (wasm-tools component new)"
    )]
    ModuleNotComponent,
    /// It is no component that this server can compile.
    #[error("the file is not a WebAssembly component that this server can run")]
    NotAComponent(#[source] wasmtime::Error),
    /// Its values are not as random as they must be.
    #[error("its values are not as random as they must be: {0}; use another component")]
    NotRandom(EntropyFault),
    /// Its parameters schema or value schema can't be used.
    #[error("its {which} schema {malformed}; tell its author")]
    SchemaMalformed {
        /// Which schema: `parameters` or `value`.
        which: &'static str,
        /// Why.
        malformed: SchemaMalformed,
    },
    /// Its settings leave no room for anything else.
    #[error("its settings are larger than its input_bytes_max")]
    SettingsTooLarge,
    /// It has more of something than any component may have.
    #[error(
        "it has more than {max} {what}, which would take too much time and memory to compile; use a smaller component"
    )]
    TooComplex {
        /// What it has too much of.
        what: &'static str,
        /// The most of it that a component may have.
        max: u64,
    },
    /// It needs more than the sandbox has for any component.
    #[error(
        "it needs more instances, tables or memory than the sandbox gives; raise memory_bytes_max or use another component"
    )]
    TooDemanding(#[source] wasmtime::Error),
}

impl Refusal {
    /// The setting of the plugin that is to be put right.
    #[must_use]
    pub fn setting(&self) -> &'static str {
        match self {
            Self::DerivedNotAllowed => "derived",
            Self::DigestDiffers { .. } | Self::DigestMalformed => "sha256",
            Self::ImportNotGranted { .. } => "grants",
            Self::LimitOutOfBounds { .. } => "limits",
            Self::SettingsTooLarge => "settings",
            _ => "component",
        }
    }
}
