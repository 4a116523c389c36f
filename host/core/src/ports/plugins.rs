//! Generators and the resolver.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::{
    Secret,
    credential::{CredentialType, Parameters, PluginIdentity, RequestedParameters},
    permission::Actor,
    ports::CertificateIssuer,
};

/// The configured generators, by the type that each makes.
pub trait Generators: Send + Sync {
    /// The generator of this type, if one is configured.
    fn generator(&self, credential_type: &CredentialType) -> Option<Arc<dyn Generator>>;

    /// The types that have a generator, in alphabetical order.
    fn credential_types(&self) -> Vec<CredentialType>;
}

/// One configured generator.
///
/// Each method that calls the guest does so in a fresh instance on the plugins' own pool, and ends within the plugin's
/// deadline.
#[async_trait]
pub trait Generator: Send + Sync {
    /// Which plugin this is.
    fn identity(&self) -> &PluginIdentity;

    /// What the plugin says of itself.
    fn description(&self) -> &GeneratorDescription;

    /// The parameter that names the issuer's credential, if the plugin has one.
    fn issuer_parameter(&self) -> Option<&str>;

    /// How many values are made at the same time at the most, at least one: more at once only wait for each other.
    fn generations_at_once(&self) -> usize;

    /// The same generator for calls on behalf of an actor: they share the threads fairly with those of other actors, and
    /// their faults count against this actor.
    fn for_actor(&self, actor: &Actor) -> Arc<dyn Generator>;

    /// The same generator for work that has many parts: its calls wait for their turn where those of others are refused
    /// for a full queue, and all such calls together never take more places than there are threads.
    fn in_turn(&self) -> Arc<dyn Generator>;

    /// Runs work of the host on one of the threads of short calls, in the turn of the actor: work that takes long enough, for
    /// some input, to be kept off the threads that serve requests.
    ///
    /// # Errors
    /// When the queue is full, or the work panicked.
    async fn run_for_host(&self, work: HostWork) -> Result<(), PluginFailure>;

    /// The parameters that no caller may send, since the plugin sets them itself when it recovers parameters. A value made
    /// with any of them is held against what a caller asks for by what [`Self::recover`] says of it.
    fn read_only_parameters(&self) -> &[String];

    /// Returns the parameters without those that the properties of its schema do not list; unchanged if the schema lists
    /// no properties.
    fn known_parameters(&self, parameters: &Parameters) -> Parameters;

    /// Reads the parameters of a request. Converts a number, a boolean or a string to the type that the schema of the
    /// parameters declares for it where that loses nothing; any other value stays as it is, for [`Self::normalize`] to refuse.
    ///
    /// # Errors
    /// If the schema allows no parameter of that name.
    fn requested(&self, parameters: &RequestedParameters) -> Result<Parameters, PluginFailure>;

    /// The canonical form of what a caller sent, of parameters that were canonical before one of them was changed, or of
    /// parameters that another release of the plugin made canonical.
    ///
    /// # Errors
    /// When the parameters break a rule, or the guest fails.
    async fn normalize(&self, parameters: &Parameters) -> Result<Parameters, PluginFailure>;

    /// Makes a value; JSON text that keeps the plugin's value schema.
    ///
    /// # Errors
    /// When the guest refuses or fails, or its output is not of the declared shape.
    async fn generate(
        &self,
        parameters: &Parameters,
        now: DateTime<Utc>,
        issuer: Option<Arc<dyn CertificateIssuer>>,
    ) -> Result<Secret, PluginFailure>;

    /// Checks and completes a value that a caller sets, JSON text; the result keeps the plugin's value schema.
    ///
    /// # Errors
    /// When the value breaks a rule, or the guest fails.
    async fn accept(&self, value: &Secret) -> Result<Secret, PluginFailure>;

    /// The parameters with which a stored value can be made anew: by the guest's `recover` where it has one, else those
    /// that were stored. `None` when there are none.
    ///
    /// `value` is the whole stored value; the secret members are withheld from the guest here.
    ///
    /// # Errors
    /// [`PluginFailure::ValueRefused`] when the guest says that it can't be regenerated, or the guest fails.
    async fn recover(
        &self,
        parameters: Option<&Parameters>,
        value: &Secret,
    ) -> Result<Option<Recovered>, PluginFailure>;
}

/// Work of the host that leaves its result where its caller finds it.
pub type HostWork = Box<dyn FnOnce() + Send>;

/// What a generator says of itself to those who use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratorDescription {
    /// What it makes, in one line.
    pub summary: String,
    /// The JSON Schema (draft 2020-12) of its parameters, JSON text: of type `object`. What is `readOnly` in it, no caller
    /// may send.
    pub parameters_schema: String,
    /// The JSON Schema of its values, JSON text. What is `writeOnly` in it is secret.
    pub value_schema: String,
}

/// Parameters found for a stored value.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// The canonical parameters.
    pub parameters: Parameters,
    /// Whether the stored value determined them all.
    pub is_complete: bool,
}

/// The configured resolver, where there is one.
pub trait Resolvers: Send + Sync {
    /// The resolver that is in use at this moment.
    fn resolver(&self) -> Option<Arc<dyn Resolver>>;
}

/// A resolver, which finds references in documents.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// The references in a JSON document of an actor, in its order. No place is within another; each has at most
    /// [`POINTER_SEGMENTS_MAX`] segments.
    ///
    /// # Errors
    /// When the guest refuses the document or fails.
    async fn find_references(
        &self,
        actor: &Actor,
        document: &str,
    ) -> Result<Vec<Reference>, PluginFailure>;
}

/// The most segments that the pointer of a reference may have: as deep as a document may be nested.
pub const POINTER_SEGMENTS_MAX: usize = keywright_json::DEPTH_MAX;

/// One place in a document and the credential that belongs there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// A JSON Pointer (RFC 6901) to the place.
    pub pointer: String,
    /// The credential's name, as the document has it.
    pub name: String,
}

/// The error of a plugin call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginFailure {
    /// The maximum number of guest calls of this actor is waiting.
    #[error("too many of your plugin calls are waiting")]
    ActorQueueFull {
        /// The time until the next attempt.
        retry_after: Duration,
    },
    /// The resolver rejected the document, with a message for the caller.
    #[error("the document was refused: {0}")]
    DocumentRefused(String),
    /// The guest failed. Contains the plugin's name and the fault, never its data.
    #[error("the plugin {plugin} {fault}")]
    Faulted {
        /// The plugin's configured name.
        plugin: String,
        /// The fault.
        fault: PluginFault,
    },
    /// The parameters break a rule of the plugin, with a message for the caller.
    #[error("invalid parameters: {0}")]
    ParametersRefused(Violation),
    /// The queue for guest calls is full.
    #[error("too many plugin calls are waiting")]
    QueueFull {
        /// The time until the next attempt.
        retry_after: Duration,
    },
    /// The component failed too often in a row and is temporarily disabled.
    #[error("the plugin {plugin} failed too often and is not called for a while")]
    Resting {
        /// The plugin's configured name.
        plugin: String,
        /// The time until the next attempt.
        retry_after: Duration,
    },
    /// The value has a field that the plugin does not know.
    #[error("the value has an unknown field")]
    ValueMemberUnknown(String),
    /// The value breaks a rule of the plugin, with a message for the caller.
    #[error("invalid value: {0}")]
    ValueRefused(Violation),
}

/// The way in which a guest failed. `Display` completes the sentence "the plugin password …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginFault {
    /// The input exceeds its limit.
    #[error("received more input than its limit")]
    InputTooLarge,
    /// The guest allocated more memory than its limit.
    #[error("exceeded its memory limit")]
    MemoryExceeded,
    /// The guest reported that its settings are invalid.
    #[error("reported that its settings are invalid")]
    Misconfigured,
    /// The operating system denied a resource that an instance needs. This is not a fault of the plugin.
    #[error("could not be instantiated: the operating system denied a resource")]
    NotInstantiated,
    /// The output is not JSON, or does not have the declared form.
    #[error("returned output that does not have the declared form")]
    OutputMalformed,
    /// The output exceeds its limit.
    #[error("returned more output than its limit")]
    OutputTooLarge,
    /// The guest reported an internal error.
    #[error("reported an internal error")]
    Reported,
    /// The guest recursed too deeply.
    #[error("used up its stack")]
    StackExhausted,
    /// The guest exceeded its deadline.
    #[error("did not end within its deadline")]
    TimedOut,
    /// The guest trapped: it panicked or executed an illegal operation.
    #[error("trapped")]
    Trapped,
}

/// A violated rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The parameter or the field that violates it, if it is a single one.
    pub member: Option<String>,
    /// The rule, as a message for the caller.
    pub rule: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.member {
            Some(member) => write!(formatter, "{member}: {}", self.rule),
            None => formatter.write_str(&self.rule),
        }
    }
}
