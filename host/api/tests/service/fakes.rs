//! Minimal implementations of ports, and an audit sink in memory that can fail or block.

use std::{
    io::{self, ErrorKind},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicI64, Ordering},
    },
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use keywright_api::audit::{AppendError, AuditSink};
use keywright_core::{
    Secret,
    certificate::{
        CertificateDetails, CertificateFacts, IssuanceFacts, IssuanceRules, SigningUsages,
    },
    credential::{CredentialType, Lifetime, Parameters, PluginIdentity, RequestedParameters},
    permission::Actor,
    ports::{
        CertificateError, CertificateFields, CertificateIssuer, Certificates, CheckedFields, Clock,
        Envelope, Generator, GeneratorDescription, Generators, HostWork, Identifiers, Input,
        KeyStatus, PluginCallError, RecognitionError, Recovered, Reference, Resolver, Resolvers,
        SealContext, SealError, Sealer, SigningError,
    },
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// A clock that only changes when it is set.
pub(crate) struct FixedClock(pub(crate) AtomicI64);

impl Clock for FixedClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp(self.0.load(Ordering::SeqCst), 0).unwrap()
    }
}

pub(crate) struct RandomIdentifiers;

impl Identifiers for RandomIdentifiers {
    fn fresh(&self) -> Uuid {
        Uuid::new_v4()
    }
}

/// A sealer that does not encrypt.
pub(crate) struct OpenSealer;

#[async_trait]
impl Sealer for OpenSealer {
    async fn seal(&self, _: SealContext<'_>, plaintext: &Secret) -> Result<Envelope, SealError> {
        Ok(envelope(plaintext.expose()))
    }

    fn open(&self, _: SealContext<'_>, envelope: &Envelope) -> Result<Secret, SealError> {
        Ok(Secret::new(
            String::from_utf8(envelope.ciphertext.clone()).unwrap(),
        ))
    }

    fn status(&self, _: Uuid) -> KeyStatus {
        KeyStatus::Active
    }

    async fn recognize(&self, _: Uuid) -> Result<(), RecognitionError> {
        Ok(())
    }
}

/// Returns an envelope whose ciphertext is the plaintext.
pub(crate) fn envelope(plaintext: &str) -> Envelope {
    Envelope {
        key_id: Uuid::nil(),
        nonce: vec![0; 12],
        ciphertext: plaintext.as_bytes().to_vec(),
    }
}

/// One generator per type.
pub(crate) struct EchoGenerators;

impl Generators for EchoGenerators {
    fn generator(&self, credential_type: &CredentialType) -> Option<Arc<dyn Generator>> {
        self.credential_types()
            .contains(credential_type)
            .then(|| Arc::new(EchoGenerator(identity(), description())) as Arc<dyn Generator>)
    }

    fn credential_types(&self) -> Vec<CredentialType> {
        ["certificate", "password", "rsa", "ssh", "user", "wireguard"]
            .map(|named| CredentialType::parse(named).unwrap())
            .to_vec()
    }
}

/// Generates a value that repeats the parameters, or panics if the parameter `fault` is set.
///
/// Normalizing and recovering add the parameters in `more`. The parameters of a set value are recovered from its field
/// `certificate`, which contains them as JSON.
struct EchoGenerator(PluginIdentity, GeneratorDescription);

fn identity() -> PluginIdentity {
    PluginIdentity {
        name: "echo".to_owned(),
        version: "0.1.0".to_owned(),
        digest: "00".to_owned(),
        interface_version: "0.1.0".to_owned(),
    }
}

fn description() -> GeneratorDescription {
    GeneratorDescription {
        summary: "Echoes the parameters.".to_owned(),
        parameters_schema: r#"{"type": "object"}"#.to_owned(),
        value_schema: "{ }".to_owned(),
    }
}

#[async_trait]
impl Generator for EchoGenerator {
    fn identity(&self) -> &PluginIdentity {
        &self.0
    }

    fn description(&self) -> &GeneratorDescription {
        &self.1
    }

    fn issuer_parameter(&self) -> Option<&str> {
        Some("ca")
    }

    fn input_parameters(&self) -> &[String] {
        &[]
    }

    fn certificate_field(&self) -> Option<&str> {
        Some("declared_certificate")
    }

    fn generations_at_once(&self) -> usize {
        4
    }

    fn for_actor(&self, _: &Actor) -> Arc<dyn Generator> {
        self.for_bulk_work()
    }

    fn for_bulk_work(&self) -> Arc<dyn Generator> {
        Arc::new(Self(self.0.clone(), self.1.clone()))
    }

    fn read_only_parameters(&self) -> &[String] {
        &[]
    }

    fn known_parameters(&self, parameters: &Parameters) -> Parameters {
        parameters.clone()
    }

    fn requested(&self, parameters: &RequestedParameters) -> Result<Parameters, PluginCallError> {
        let parameters = parameters.iter().map(|(name, json)| {
            let value: Value = serde_json::from_str(json).unwrap();
            (name.to_owned(), value)
        });
        Ok(Parameters::new(parameters.collect()))
    }

    async fn normalize(&self, parameters: Parameters) -> Result<Parameters, PluginCallError> {
        assert!(parameters.text("fault").is_none(), "canary-of-a-panic");
        Ok(with_more(&parameters))
    }

    async fn run_for_host(&self, work: HostWork) -> Result<(), PluginCallError> {
        work();
        Ok(())
    }

    fn check_generate(&self, _: &Parameters, _: &[Input]) -> Result<(), PluginCallError> {
        Ok(())
    }

    async fn generate(
        &self,
        parameters: &Parameters,
        _: DateTime<Utc>,
        _: Option<Arc<dyn CertificateIssuer>>,
        _: Vec<Input>,
    ) -> Result<Secret, PluginCallError> {
        Ok(Secret::new(parameters.to_json()))
    }

    async fn accept(&self, value: &Secret) -> Result<Secret, PluginCallError> {
        Ok(value.clone())
    }

    async fn lifetime(
        &self,
        _: Option<&Parameters>,
        _: &Secret,
        _: DateTime<Utc>,
    ) -> Result<Lifetime, PluginCallError> {
        Ok(Lifetime::default())
    }

    async fn recover(
        &self,
        parameters: Option<&Parameters>,
        value: &Secret,
    ) -> Result<Option<Recovered>, PluginCallError> {
        let parameters = match parameters {
            Some(parameters) => Some(with_more(parameters)),
            None => set_parameters(value),
        };
        Ok(parameters.map(|parameters| Recovered {
            parameters,
            is_complete: true,
        }))
    }
}

fn with_more(parameters: &Parameters) -> Parameters {
    let mut fields: Map<String, Value> = serde_json::from_str(&parameters.to_json()).unwrap();
    if let Some(Value::Object(more)) = fields.get("more").cloned() {
        fields.extend(more);
    }
    Parameters::new(fields)
}

fn set_parameters(value: &Secret) -> Option<Parameters> {
    let value: Value = serde_json::from_str(value.expose()).unwrap();
    let fields = serde_json::from_str(value.get("certificate")?.as_str()?);
    fields.ok().map(Parameters::new)
}

/// The validity of every set certificate.
pub(crate) const SET_DURATION_DAYS: u32 = 5_000;

/// Accepts every text except [`MALFORMED_CERTIFICATE`] as a valid certificate.
pub(crate) struct CredulousCertificates;

impl Certificates for CredulousCertificates {
    fn facts(&self, certificate: &str) -> Result<CertificateFacts, CertificateError> {
        match certificate {
            MALFORMED_CERTIFICATE => Err(CertificateError {
                field: "certificate",
                rule: "is malformed".into(),
            }),
            _ => Ok(facts()),
        }
    }

    fn issuance_facts(&self, _: &str) -> Result<IssuanceFacts, CertificateError> {
        Ok(IssuanceFacts {
            duration_days: SET_DURATION_DAYS,
            signing_usages: SigningUsages::default(),
        })
    }

    fn check_fields(
        &self,
        fields: CertificateFields<'_>,
    ) -> Result<CheckedFields, CertificateError> {
        Ok(CheckedFields {
            ca: fields.ca.map(str::to_owned),
            ca_expires_at: fields.ca.map(|_| facts().expires_at),
            certificate: fields.certificate.map(str::to_owned),
            private_key: fields.private_key.cloned(),
            facts: fields.certificate.map(|_| facts()),
            rsa_bits: None,
        })
    }

    fn rsa_bits(&self, _: &str) -> Option<u32> {
        None
    }

    fn check_stored(
        &self,
        fields: CertificateFields<'_>,
    ) -> Result<Option<CertificateFacts>, CertificateError> {
        self.check_fields(fields).map(|checked| checked.facts)
    }

    fn check_generated(
        &self,
        _: CertificateFields<'_>,
        _: Option<&dyn CertificateIssuer>,
    ) -> Result<CertificateFacts, CertificateError> {
        Ok(facts())
    }

    fn issuer(
        &self,
        _: &str,
        _: &Secret,
        _: IssuanceRules,
    ) -> Result<Arc<dyn CertificateIssuer>, CertificateError> {
        Ok(Arc::new(IdleIssuer))
    }

    fn details(&self, _: &str) -> Option<CertificateDetails> {
        None
    }

    fn certificates_in(&self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn first_certificate(&self, pem: &str) -> Option<Vec<u8>> {
        Some(pem.as_bytes().to_vec())
    }
}

/// An issuer that can't sign.
struct IdleIssuer;

impl CertificateIssuer for IdleIssuer {
    fn certificate(&self) -> &[u8] {
        &[]
    }

    fn subject(&self) -> &[u8] {
        &[]
    }

    fn subject_key_identifier(&self) -> Option<&[u8]> {
        None
    }

    fn signature_algorithm(&self) -> &[u8] {
        &[]
    }

    fn sign_certificate(&self, _: &[u8]) -> Result<Vec<u8>, SigningError> {
        Err(SigningError("this issuer can't sign"))
    }

    fn signed(&self) -> Option<(&[u8], &CertificateFacts)> {
        None
    }
}

/// The only text that [`CredulousCertificates`] refuses.
pub(crate) const MALFORMED_CERTIFICATE: &str = "hunter2";

pub(crate) fn facts() -> CertificateFacts {
    CertificateFacts {
        expires_at: "2030-01-01T00:00:00Z".parse().unwrap(),
        is_certificate_authority: true,
        is_self_signed: true,
        key_length_bits: 2048,
        serial_number: None,
    }
}

/// Provides [`FixedResolver`].
pub(crate) struct FixedResolvers;

impl Resolvers for FixedResolvers {
    fn resolver(&self) -> Option<Arc<dyn Resolver>> {
        Some(Arc::new(FixedResolver))
    }
}

/// Finds the references at `/a/*/credentials/ref`.
struct FixedResolver;

#[async_trait]
impl Resolver for FixedResolver {
    async fn find_references(
        &self,
        _: &Actor,
        document: &str,
    ) -> Result<Vec<Reference>, PluginCallError> {
        let document: Value = serde_json::from_str(document).unwrap_or(json!({}));
        let bindings = document["a"].as_array().into_iter().flatten().enumerate();
        Ok(bindings
            .map(|(index, binding)| Reference {
                pointer: format!("/a/{index}/credentials"),
                name: binding["credentials"]["ref"].as_str().unwrap().to_owned(),
                ..Reference::default()
            })
            .collect())
    }
}

/// An audit sink whose clones share their state.
#[derive(Clone, Default)]
pub(crate) struct MemorySink {
    shared: Arc<SharedSink>,
    is_prompt: bool,
}

#[derive(Default)]
struct SharedSink {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    appends: usize,
    begun: usize,
    is_held: bool,
    /// The number of bytes that can still be written; `None` if unlimited.
    room: Option<usize>,
}

impl MemorySink {
    /// Returns a sink that requests write to on their own threads.
    pub(crate) fn prompt() -> Self {
        Self {
            is_prompt: true,
            ..Self::default()
        }
    }

    /// Returns the events that were written, oldest first.
    pub(crate) fn events(&self) -> Vec<Value> {
        let lines = self.shared.state.lock().unwrap().lines.clone();
        let lines = String::from_utf8(lines).unwrap();
        assert!(lines.is_empty() || lines.ends_with('\n'));
        lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Returns the number of writes.
    pub(crate) fn appends(&self) -> usize {
        self.shared.state.lock().unwrap().appends
    }

    /// Returns the number of started writes.
    pub(crate) fn begun(&self) -> usize {
        self.shared.state.lock().unwrap().begun
    }

    /// Makes writes fail after this many bytes.
    pub(crate) fn break_after(&self, bytes: usize) {
        self.shared.state.lock().unwrap().room = Some(bytes);
    }

    /// Makes all writes succeed again.
    pub(crate) fn repair(&self) {
        self.shared.state.lock().unwrap().room = None;
    }

    /// Blocks writers until [`MemorySink::release`].
    pub(crate) fn hold(&self) {
        self.shared.state.lock().unwrap().is_held = true;
    }

    /// Releases blocked writers.
    pub(crate) fn release(&self) {
        self.shared.state.lock().unwrap().is_held = false;
        self.shared.changed.notify_all();
    }
}

impl AuditSink for MemorySink {
    fn append(&mut self, lines: &[u8]) -> Result<(), AppendError> {
        let mut state = self.shared.state.lock().unwrap();
        state.begun += 1;
        let mut state = self
            .shared
            .changed
            .wait_while(state, |state| state.is_held)
            .unwrap();
        let room = state.room.unwrap_or(lines.len()).min(lines.len());
        let whole = lines[..room]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        state.lines.extend_from_slice(&lines[..whole]);
        if state.room.is_some() {
            return Err(AppendError {
                bytes_written: whole,
                cause: ErrorKind::StorageFull.into(),
            });
        }
        state.appends += usize::from(!lines.is_empty());
        Ok(())
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.repair();
        Ok(())
    }

    fn is_prompt(&self) -> bool {
        self.is_prompt
    }
}
