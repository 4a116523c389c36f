//! Ports that keep everything in memory.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use keywright_core::{
    Secret,
    certificate::{CertificateFacts, IssuanceRules},
    credential::{
        CredentialType, Find, FindNames, FoundCredential, LookupName, Parameters, PluginIdentity,
        StoredVersion,
    },
    ports::{
        AppendCondition, Appended, CertificateIssuer, CertificateMembers, CertificateRefused,
        Certificates, Clock, CredentialRepository, Envelope, Generator, Generators, Identifiers,
        NewVersion, PluginFailure, PluginFault, Recovered, Reference, RepositoryFailure, Resolver,
        SealFailure, SealedPlace, Sealer, VersionSelection, Violation,
    },
};
use serde_json::{Value, json};
use uuid::Uuid;

/// A clock that stands until it is set.
pub(crate) struct StandingClock(pub(crate) AtomicI64);

impl Clock for StandingClock {
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

#[derive(Default)]
pub(crate) struct Memory {
    versions: Mutex<Vec<StoredVersion>>,
    /// Whether it answers nothing.
    pub(crate) is_away: AtomicBool,
}

impl Memory {
    fn newest_first(&self) -> Result<Vec<StoredVersion>, RepositoryFailure> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(RepositoryFailure::Unavailable("cause-of-the-outage".into()));
        }
        Ok(self
            .versions
            .lock()
            .unwrap()
            .iter()
            .rev()
            .cloned()
            .collect())
    }
}

#[async_trait]
impl CredentialRepository for Memory {
    async fn version_by_id(&self, id: Uuid) -> Result<Option<StoredVersion>, RepositoryFailure> {
        Ok(self
            .newest_first()?
            .into_iter()
            .find(|stored| stored.id == id))
    }

    async fn versions_by_name(
        &self,
        name: &LookupName,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, RepositoryFailure> {
        let mut versions = self.newest_first()?;
        versions.retain(|stored| stored.name.lookup() == *name);
        match selection {
            VersionSelection::All => {}
            VersionSelection::Current => versions.truncate(1),
            VersionSelection::Newest(count) => versions.truncate(count as usize),
        }
        Ok(versions)
    }

    async fn newest_by_names(
        &self,
        names: &[LookupName],
    ) -> Result<Vec<StoredVersion>, RepositoryFailure> {
        let mut newest = Vec::new();
        for name in names {
            newest.extend(
                self.versions_by_name(name, VersionSelection::Current)
                    .await?,
            );
        }
        Ok(newest)
    }

    async fn find(&self, find: &Find) -> Result<Vec<FoundCredential>, RepositoryFailure> {
        let is_found = |stored: &StoredVersion| {
            let lookup = stored.name.lookup();
            match &find.names {
                FindNames::Below(prefix) => lookup.folded().starts_with(prefix.as_str()),
                FindNames::Containing(part) => lookup.folded().contains(part.as_str()),
            }
        };
        Ok(self
            .newest_first()?
            .into_iter()
            .filter(is_found)
            .map(|stored| FoundCredential {
                name: stored.name,
                version_created_at: stored.created_at,
                expires_at: find.expires_until,
            })
            .collect())
    }

    async fn append(
        &self,
        version: NewVersion,
        _: AppendCondition,
    ) -> Result<Appended, RepositoryFailure> {
        let newest = self
            .versions_by_name(&version.name.lookup(), VersionSelection::Newest(1))
            .await?;
        if let Some(existing) = newest.first()
            && existing.credential_type != version.credential_type
        {
            return Ok(Appended::TypeDiffers(existing.credential_type.clone()));
        }
        let mut versions = self.versions.lock().unwrap();
        let stored = StoredVersion {
            id: version.id,
            sequence: i64::try_from(versions.len()).unwrap(),
            credential_id: Uuid::nil(),
            name: version.name,
            credential_type: version.credential_type,
            created_at: version.created_at,
            is_transitional: version.is_transitional,
            is_generated: version.is_generated,
            certificate: version.certificate,
            signed_by: version.signed_by,
            provenance: version.provenance,
            envelope: version.envelope,
        };
        versions.push(stored.clone());
        Ok(Appended::Written(Box::new(stored)))
    }

    async fn delete(&self, name: &LookupName) -> Result<bool, RepositoryFailure> {
        let mut versions = self.versions.lock().unwrap();
        let before = versions.len();
        versions.retain(|stored| stored.name.lookup() != *name);
        Ok(versions.len() < before)
    }

    async fn ping(&self) -> Result<(), RepositoryFailure> {
        self.newest_first().map(|_| ())
    }
}

/// Seals nothing.
pub(crate) struct OpenSealer;

impl Sealer for OpenSealer {
    fn seal(&self, _: SealedPlace<'_>, plaintext: &Secret) -> Result<Envelope, SealFailure> {
        Ok(Envelope {
            key_id: Uuid::nil(),
            nonce: Vec::new(),
            ciphertext: plaintext.expose().as_bytes().to_vec(),
        })
    }

    fn open(&self, _: SealedPlace<'_>, envelope: &Envelope) -> Result<Secret, SealFailure> {
        Ok(Secret::new(
            String::from_utf8(envelope.ciphertext.clone()).unwrap(),
        ))
    }
}

/// One generator for each of these types.
pub(crate) struct EchoGenerators;

impl Generators for EchoGenerators {
    fn generator(&self, credential_type: &CredentialType) -> Option<Arc<dyn Generator>> {
        self.credential_types()
            .contains(credential_type)
            .then(|| Arc::new(EchoGenerator(identity())) as Arc<dyn Generator>)
    }

    fn credential_types(&self) -> Vec<CredentialType> {
        ["certificate", "password", "rsa", "ssh", "user", "wireguard"]
            .map(|named| CredentialType::parse(named).unwrap())
            .to_vec()
    }
}

/// Makes a value that repeats the parameters, or does what a parameter `fault` asks for.
struct EchoGenerator(PluginIdentity);

fn identity() -> PluginIdentity {
    PluginIdentity {
        name: "echo".to_owned(),
        version: "0.1.0".to_owned(),
        digest: "00".to_owned(),
        interface_version: "0.1.0".to_owned(),
    }
}

#[async_trait]
impl Generator for EchoGenerator {
    fn identity(&self) -> &PluginIdentity {
        &self.0
    }

    fn issuer_parameter(&self) -> Option<&str> {
        None
    }

    fn read_only_parameters(&self) -> &[String] {
        &[]
    }

    async fn normalize(&self, parameters: &Parameters) -> Result<Parameters, PluginFailure> {
        let faulted = |fault| PluginFailure::Faulted {
            plugin: "echo".to_owned(),
            fault,
        };
        match parameters.text("fault") {
            None => Ok(parameters.clone()),
            Some("full") => Err(PluginFailure::QueueFull {
                retry_after: Duration::from_secs(3),
            }),
            Some("panic") => panic!("canary-of-a-panic"),
            Some("trap") => Err(faulted(PluginFault::Trapped)),
            Some(_) => Err(PluginFailure::ParametersRefused(Violation {
                member: Some("fault".to_owned()),
                rule: "is unknown".to_owned(),
            })),
        }
    }

    async fn generate(
        &self,
        parameters: &Parameters,
        _: DateTime<Utc>,
        _: Option<Arc<dyn CertificateIssuer>>,
    ) -> Result<Secret, PluginFailure> {
        Ok(Secret::new(parameters.to_json()))
    }

    async fn accept(&self, value: &Secret) -> Result<Secret, PluginFailure> {
        let json: Value = serde_json::from_str(value.expose()).unwrap();
        if json.get("bogus").is_some() {
            return Err(PluginFailure::ValueMemberUnknown("bogus".to_owned()));
        }
        Ok(value.clone())
    }

    async fn recover(
        &self,
        parameters: Option<&Parameters>,
        _: &Secret,
    ) -> Result<Option<Recovered>, PluginFailure> {
        Ok(parameters.map(|parameters| Recovered {
            parameters: parameters.clone(),
            is_complete: true,
        }))
    }
}

/// Takes everything for a good certificate.
pub(crate) struct CredulousCertificates;

impl Certificates for CredulousCertificates {
    fn facts(&self, _: &str) -> Result<CertificateFacts, CertificateRefused> {
        Ok(facts())
    }

    fn check_members(
        &self,
        members: CertificateMembers<'_>,
    ) -> Result<Option<CertificateFacts>, CertificateRefused> {
        Ok(members.certificate.map(|_| facts()))
    }

    fn check_generated(
        &self,
        _: CertificateMembers<'_>,
        _: Option<&dyn CertificateIssuer>,
    ) -> Result<CertificateFacts, CertificateRefused> {
        Ok(facts())
    }

    fn issuer(
        &self,
        _: &str,
        _: &Secret,
        _: IssuanceRules,
    ) -> Result<Arc<dyn CertificateIssuer>, CertificateRefused> {
        Err(CertificateRefused {
            member: "certificate",
            rule: "is not one that signs",
        })
    }

    fn is_same_certificate(&self, one: &str, other: &str) -> bool {
        one == other
    }
}

fn facts() -> CertificateFacts {
    CertificateFacts {
        expires_at: "2030-01-01T00:00:00Z".parse().unwrap(),
        is_certificate_authority: true,
        is_self_signed: true,
        key_length_bits: 2048,
    }
}

/// Finds a reference at `/a/0/credentials`, whatever it is called there.
pub(crate) struct FixedResolver;

#[async_trait]
impl Resolver for FixedResolver {
    async fn find_references(&self, document: &str) -> Result<Vec<Reference>, PluginFailure> {
        let document: Value = serde_json::from_str(document).unwrap_or(json!({}));
        let name = document.pointer("/a/0/credentials/ref").cloned();
        Ok(name
            .into_iter()
            .map(|name| Reference {
                pointer: "/a/0/credentials".to_owned(),
                name: name.as_str().unwrap().to_owned(),
            })
            .collect())
    }
}
