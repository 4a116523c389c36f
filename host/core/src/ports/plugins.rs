//! The ports of plugins: generators and the resolver.

use std::{ops::Range, sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    Secret,
    credential::{
        CredentialName, CredentialType, Lifetime, Parameters, PluginIdentity, RequestedParameters,
    },
    permission::Actor,
    ports::CertificateIssuer,
    text::{for_caller, printable},
};

/// The configured generators, by credential type.
pub trait Generators: Send + Sync {
    /// Returns the generator of this type, or `None`.
    fn generator(&self, credential_type: &CredentialType) -> Option<Arc<dyn Generator>>;

    /// Returns the types that have a generator, in alphabetical order.
    fn credential_types(&self) -> Vec<CredentialType>;
}

/// The loaded plugins of this server, with their states.
pub trait PluginStates: Send + Sync {
    /// Returns the state of each plugin: the generators in alphabetical order, then the resolver. The circuits apply
    /// to calls on behalf of this actor. The numbers reveal no credential and no actor, so every authenticated caller may read them.
    fn states(&self, actor: &Actor) -> Vec<PluginState>;
}

/// The state of a loaded plugin on this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginState {
    /// The identity of the plugin. Resolvers declare no version, so it is empty.
    pub identity: PluginIdentity,
    /// The type that it generates; `None` for the resolver.
    pub credential_type: Option<CredentialType>,
    /// The minimum number of random bits in each value, which the entropy test confirmed. `None` for a generator that derives its
    /// values, and for the resolver.
    pub entropy_bits_min: Option<u32>,
    /// The number of calls since it was loaded.
    pub calls: u64,
    /// The number of calls in which the plugin failed.
    pub faults: u64,
    /// The time until the plugin is called again for the actor, if it is temporarily disabled because it kept failing.
    pub circuit_open_for: Option<Duration>,
}

/// A configured generator.
///
/// Each call of the guest uses a fresh instance in the plugins' own thread pool and is limited by the plugin's deadline.
#[async_trait]
pub trait Generator: Send + Sync {
    /// Returns the identity of the plugin.
    fn identity(&self) -> &PluginIdentity;

    /// Returns the plugin's description.
    fn description(&self) -> &GeneratorDescription;

    /// Returns the name of the parameter that names the issuer's credential, if the plugin has one.
    fn issuer_parameter(&self) -> Option<&str>;

    /// Returns the names of the parameters that name the inputs of a value, if the plugin derives values from other credentials.
    fn input_parameters(&self) -> &[String];

    /// Returns the name of the field of a value that contains the value's certificate (PEM), if the plugin's value schema declares
    /// one.
    fn certificate_field(&self) -> Option<&str>;

    /// Returns the maximum number of concurrent generations, at least one. Further calls wait.
    fn generations_at_once(&self) -> usize;

    /// Returns the same generator for calls on behalf of an actor: they share the threads fairly with calls of other actors,
    /// and their faults count against this actor.
    fn for_actor(&self, actor: &Actor) -> Arc<dyn Generator>;

    /// Returns the same generator for bulk work. If the queue is full, its calls wait instead of failing. All such
    /// calls together occupy at most as many slots as there are threads.
    fn for_bulk_work(&self) -> Arc<dyn Generator>;

    /// Runs work of the host on one of the threads for short calls, scheduled fairly by actor. Use it for work that may be
    /// too slow for the threads that serve requests.
    ///
    /// # Errors
    /// If the queue is full, or the work panicked.
    async fn run_for_host(&self, work: HostWork) -> Result<(), PluginCallError>;

    /// Returns the read-only parameters. Only the plugin sets them, when it recovers parameters, so callers may not send
    /// them. If a value was generated with any of them, requests are compared with the parameters from [`Self::recover`]
    /// instead of the stored parameters.
    fn read_only_parameters(&self) -> &[String];

    /// Returns the parameters that are properties in the schema, or all parameters if the schema lists no properties.
    fn known_parameters(&self, parameters: &Parameters) -> Parameters;

    /// Reads the parameters of a request. Converts a number, a boolean or a string to the type that the schema declares if
    /// the conversion is lossless. Other values stay unchanged, and [`Self::normalize`] rejects them.
    fn requested(&self, parameters: &RequestedParameters) -> Result<Parameters, PluginCallError>;

    /// Returns the canonical form of parameters. The parameters come from a request, are canonical parameters with
    /// changes, or were stored by another release of the plugin.
    ///
    /// Takes the parameters, so that a call that waits keeps only their text: parsed, they can take a hundred times as much
    /// memory.
    async fn normalize(&self, parameters: Parameters) -> Result<Parameters, PluginCallError>;

    /// Checks whether [`Self::generate`] would call the guest with these parameters and inputs, without calling it.
    ///
    /// # Errors
    /// If the circuit is open, or the parameters and inputs exceed the limit of the guest's input.
    fn check_generate(
        &self,
        parameters: &Parameters,
        inputs: &[Input],
    ) -> Result<(), PluginCallError>;

    /// Generates a value: JSON text that is valid against the plugin's value schema.
    async fn generate(
        &self,
        parameters: &Parameters,
        now: DateTime<Utc>,
        issuer: Option<Arc<dyn CertificateIssuer>>,
        inputs: Vec<Input>,
    ) -> Result<Secret, PluginCallError>;

    /// Checks and completes a value to set, JSON text. The result is valid against the plugin's value schema.
    async fn accept(&self, value: &Secret) -> Result<Secret, PluginCallError>;

    /// Returns when a new value expires and when it should be rotated: the result of the guest's `expires` if the guest
    /// exports it, otherwise neither. `parameters` generated the value, unless it was set. The times are not before `now`
    /// and not after the year 9999, and the rotation is not after the expiry.
    ///
    /// `value` is the whole value. This method withholds its secret fields from the guest.
    async fn lifetime(
        &self,
        parameters: Option<&Parameters>,
        value: &Secret,
        now: DateTime<Utc>,
    ) -> Result<Lifetime, PluginCallError>;

    /// Returns the parameters to regenerate a stored value: the result of the guest's `recover` if the guest exports it,
    /// otherwise the stored parameters, if any.
    ///
    /// `value` is the whole stored value. This method withholds its secret fields from the guest.
    ///
    /// # Errors
    /// [`PluginCallError::ValueRefused`] if the guest reports that the value can't be regenerated; or if the guest fails.
    async fn recover(
        &self,
        parameters: Option<&Parameters>,
        value: &Secret,
    ) -> Result<Option<Recovered>, PluginCallError>;
}

/// A credential from which a generator derives a value, with the value of its active version.
#[derive(Clone, Debug)]
pub struct Input {
    /// The JSON Pointer of its name in the parameters.
    pub pointer: String,
    /// Its name.
    pub name: CredentialName,
    /// The id of the version.
    pub version_id: Uuid,
    /// Its type.
    pub credential_type: CredentialType,
    /// The value, as JSON text.
    pub value: Secret,
}

/// Work of the host, without a return value: the closure must deliver its result itself.
pub type HostWork = Box<dyn FnOnce() + Send>;

/// The description of a generator for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratorDescription {
    /// A one-line summary of the generated values.
    pub summary: String,
    /// The JSON Schema (draft 2020-12) of its parameters, JSON text, of type `object`. Callers may not send `readOnly`
    /// properties.
    pub parameters_schema: String,
    /// The JSON Schema of its values, JSON text. `writeOnly` properties are secret.
    pub value_schema: String,
}

/// The parameters to regenerate a stored value.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// The canonical parameters.
    pub parameters: Parameters,
    /// Whether the stored value determines all of them.
    pub is_complete: bool,
}

/// The configured resolver, if any.
pub trait Resolvers: Send + Sync {
    /// Returns the current resolver, or `None`.
    fn resolver(&self) -> Option<Arc<dyn Resolver>>;
}

/// A resolver, which finds references in documents.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// Returns the references in an actor's JSON document, in document order. References are not nested, and their pointers
    /// have at most [`POINTER_SEGMENTS_MAX`] segments. Only references with ranges have equal pointers. These ranges are not
    /// empty, ascend and do not overlap.
    async fn find_references(
        &self,
        actor: &Actor,
        document: &str,
    ) -> Result<Vec<Reference>, PluginCallError>;
}

/// The maximum number of segments in a reference's pointer: the maximum nesting depth of a document.
pub const POINTER_SEGMENTS_MAX: usize = keywright_json::DEPTH_MAX;

/// The maximum number of fields in a reference. The host parses the value again at each.
pub const REFERENCE_FIELDS_MAX: usize = 8;

/// A reference in a document to a credential.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// A JSON Pointer (RFC 6901) to the reference.
    pub pointer: String,
    /// The part of the string at `pointer` to replace, in bytes; `None` to replace the whole value at `pointer`.
    pub range: Option<Range<usize>>,
    /// The credential's name, as written in the document.
    pub name: String,
    /// The keys that lead to the part of the credential's value to substitute, at most [`REFERENCE_FIELDS_MAX`].
    pub fields: Vec<String>,
    /// Whether the credential may have a type other than json.
    pub is_any_type: bool,
}

/// The error of a plugin call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginCallError {
    /// The actor already has the maximum number of waiting guest calls.
    #[error("too many of your plugin calls are waiting; try again later")]
    ActorQueueFull {
        /// The time to wait before a retry.
        retry_after: Duration,
    },
    /// The resolver rejected the document, with a message for the caller, which may be empty.
    #[error("invalid document{}{text}", if .0.is_empty() { "" } else { ": " }, text = .0)]
    DocumentRefused(String),
    /// The guest failed. The error contains no data from the guest, only the plugin's name and the fault.
    #[error("the plugin {plugin} {fault}")]
    Faulted {
        /// The plugin's configured name.
        plugin: String,
        /// The fault.
        fault: PluginFaultError,
    },
    /// The parameters break a rule of the plugin, with a message for the caller.
    #[error("invalid parameters: {0}")]
    ParametersRefused(Violation),
    /// The queue for guest calls is full.
    #[error("too many plugin calls are waiting; try again later")]
    QueueFull {
        /// The time to wait before a retry.
        retry_after: Duration,
    },
    /// The component failed too often in a row in calls of the actor, and is temporarily disabled for the actor.
    #[error("the plugin {plugin} keeps failing and is temporarily disabled")]
    CircuitOpen {
        /// The plugin's configured name.
        plugin: String,
        /// The time to wait before a retry.
        retry_after: Duration,
    },
    /// The value has this field, which is not in the plugin's schema.
    #[error("the value has an unknown field")]
    ValueFieldUnknown(String),
    /// The value breaks a rule of the plugin, with a message for the caller.
    #[error("invalid value: {0}")]
    ValueRefused(Violation),
}

/// The way in which a guest failed. `Display` is a predicate with the plugin as its subject: "overflowed its stack".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum PluginFaultError {
    #[error("received more input than its limit of {0} bytes (input_bytes_max)")]
    InputTooLarge(usize),
    #[error("exceeded its memory limit of {0} bytes (memory_bytes_max)")]
    MemoryExceeded(u64),
    #[error("reported that its settings are invalid")]
    Misconfigured,
    /// The operating system denied a resource that an instance needs. This is not a fault of the plugin.
    #[error("could not be instantiated: the operating system denied a resource")]
    NotInstantiated,
    #[error("returned output that does not have the declared form")]
    OutputMalformed,
    #[error("returned more output than its limit of {0} bytes (output_bytes_max)")]
    OutputTooLarge(usize),
    #[error("reported an internal error")]
    Reported,
    #[error("overflowed its stack")]
    StackExhausted,
    #[error("exceeded its deadline of {0} ms (deadline_ms)")]
    TimedOut(u64),
    #[error("trapped")]
    Trapped,
}

/// A violated rule. `Display` joins the field and the rule: "length must be at most 9".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The parameter or field that violates the rule; `None` if the violation concerns more than one.
    pub field: Option<String>,
    /// The rule, a predicate with the field as its subject: "must be at most 9".
    pub rule: String,
}

impl Violation {
    /// Creates a violation from a field name and a rule that may come from a guest or a caller.
    pub fn new(field: Option<&str>, rule: &str) -> Self {
        Self {
            field: field.map(|name| printable(name, FIELD_BYTES_MAX)),
            rule: for_caller(rule),
        }
    }
}

/// The maximum length of a field name, in bytes. Longer names are truncated.
const FIELD_BYTES_MAX: usize = 256;

impl std::fmt::Display for Violation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.field {
            Some(field) => write!(formatter, "{field} {}", self.rule),
            None => formatter.write_str(&self.rule),
        }
    }
}
