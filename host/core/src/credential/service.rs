//! The shared base of the use cases: their dependencies, and the steps that several of them need.

use std::sync::Arc;

use chrono::{DateTime, Timelike, Utc};

use crate::{
    Failure,
    authorization::{Authorization, Caller, Permit},
    certificate::{CertificateFacts, CertificateSettings},
    credential::{
        BulkRegenerations, CertificateMarks, CredentialName, CredentialType, CredentialVersion,
        IssuerVersion, PluginIdentity, StoredVersion, content::Content, value,
    },
    ports::{
        AppendCondition, Appended, Certificates, Clock, CredentialRepository, Generator,
        Generators, Identifiers, KeyStanding, NewVersion, PermittedReads, ReadVersions,
        SealedPlace, Sealer,
    },
};

/// The use cases for credentials. Each is a method in a separate file.
#[derive(Clone)]
pub struct Credentials {
    /// Decides which operations callers may perform.
    pub authorization: Authorization,
    /// Stores the credentials.
    pub repository: Arc<dyn CredentialRepository>,
    /// Reads credentials together with the permissions on them.
    pub reads: Arc<dyn PermittedReads>,
    /// Encrypts the values.
    pub sealer: Arc<dyn Sealer>,
    /// The generators.
    pub generators: Arc<dyn Generators>,
    /// Parses certificates and opens issuers.
    pub certificates: Arc<dyn Certificates>,
    /// The settings for all generated certificates.
    pub certificate_settings: CertificateSettings,
    /// The bulk regenerations in progress.
    pub bulk_regenerations: BulkRegenerations,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Fresh ids.
    pub identifiers: Arc<dyn Identifiers>,
}

/// A version to be written.
pub(super) struct Draft {
    pub(super) name: CredentialName,
    pub(super) credential_type: CredentialType,
    pub(super) is_transitional: bool,
    /// Whether the service generated it; unknown for versions that are added unchanged.
    pub(super) is_generated: Option<bool>,
    pub(super) content: Content,
    pub(super) certificate: Option<CertificateFacts>,
    pub(super) signed_by: Option<CredentialName>,
    pub(super) issuer: Option<IssuerVersion>,
    pub(super) provenance: Option<PluginIdentity>,
    /// The versions that it was created from, which must be unchanged when it is written.
    pub(super) unchanged: Vec<ReadVersions>,
}

/// Maximum attempts when a concurrent write invalidates the inputs.
pub(super) const MAKINGS_MAX: usize = 4;

/// A version with its decrypted content.
pub(crate) struct OpenVersion {
    pub(crate) stored: StoredVersion,
    pub(crate) content: Content,
}

impl OpenVersion {
    /// Converts it to the version for the caller.
    pub(super) fn into_version(self, permit: &Permit<'_>) -> CredentialVersion {
        let Self { stored, content } = self;
        permit.touched_version(stored.credential_id, stored.id);
        let certificate = stored
            .credential_type
            .is_certificate()
            .then_some(CertificateMarks {
                is_transitional: stored.is_transitional,
                is_generated: stored.is_generated,
                facts: stored.certificate,
            });
        CredentialVersion {
            id: stored.id,
            name: stored.name,
            credential_type: stored.credential_type,
            created_at: stored.created_at,
            metadata: content.metadata,
            value: content.value,
            certificate,
        }
    }
}

impl Credentials {
    /// Returns the known types: types that can only be set, and types with a generator.
    #[must_use]
    pub fn known_types(&self) -> Vec<String> {
        let generated = self.generators.credential_types();
        [CredentialType::VALUE, CredentialType::JSON]
            .into_iter()
            .map(str::to_owned)
            .chain(
                generated
                    .iter()
                    .map(|credential_type| credential_type.as_str().to_owned()),
            )
            .collect()
    }

    /// Returns the generator of a type, for calls on behalf of a caller.
    pub(super) fn generator(
        &self,
        caller: &Caller,
        credential_type: &CredentialType,
    ) -> Result<Arc<dyn Generator>, Failure> {
        let generator = self.generators.generator(credential_type);
        generator
            .map(|generator| generator.for_actor(caller.actor()))
            .ok_or_else(|| Failure::TypeUnknown {
                known: self.known_types(),
            })
    }

    /// Decrypts a version of the credential that the permit allows to open. Refuses any other as if it did not exist.
    pub(crate) async fn open(
        &self,
        permit: &Permit<'_>,
        stored: StoredVersion,
    ) -> Result<OpenVersion, Failure> {
        if !permit.opens(&stored.name) {
            return Err(Failure::NotFound);
        }
        let place = SealedPlace {
            version_id: stored.id,
            name: &stored.name.lookup(),
        };
        let key_id = stored.envelope.key_id;
        if self.sealer.standing(key_id) == KeyStanding::Unknown {
            self.sealer.recognise(key_id).await?;
        }
        let plaintext = self.sealer.open(place, &stored.envelope)?;
        Ok(OpenVersion {
            content: Content::from_plaintext(&plaintext)?,
            stored,
        })
    }

    /// Encrypts a draft for the credential that the permit allows to write, and returns a version that is ready to be added.
    pub(super) async fn seal(
        &self,
        permit: &Permit<'_>,
        draft: &Draft,
    ) -> Result<NewVersion, Failure> {
        if !permit.seals(&draft.name) {
            return Err(Failure::WriteNotPermitted);
        }
        value::check_size(&draft.content.value)?;
        let plaintext = draft
            .content
            .to_plaintext(&draft.name, &draft.credential_type)?;
        let id = self.identifiers.fresh();
        let place = SealedPlace {
            version_id: id,
            name: &draft.name.lookup(),
        };
        Ok(NewVersion {
            id,
            name: draft.name.clone(),
            credential_type: draft.credential_type.clone(),
            created_at: self.clock.now(),
            is_transitional: draft.is_transitional,
            is_generated: draft.is_generated,
            certificate: draft.certificate.clone(),
            signed_by: draft.signed_by.clone(),
            issuer: draft.issuer,
            provenance: draft.provenance.clone(),
            envelope: self.sealer.seal(place, &plaintext).await?,
        })
    }

    /// Adds a draft if a condition still holds; `None` if one of its inputs has changed.
    pub(super) async fn append(
        &self,
        permit: &Permit<'_>,
        mut draft: Draft,
        condition: AppendCondition,
    ) -> Result<Option<OpenVersion>, Failure> {
        let mut appended = self.append_once(permit, &draft, condition).await?;
        if let Appended::NamedOtherwise(name) = appended {
            draft.name = name;
            appended = self.append_once(permit, &draft, condition).await?;
        }
        match appended {
            Appended::Written(stored) => Ok(Some(OpenVersion {
                stored: *stored,
                content: draft.content,
            })),
            Appended::Outdated => Ok(None),
            Appended::TransitionalExists => Err(Failure::TransitionalExists),
            Appended::TypeDiffers(existing) => Err(Failure::TypeDiffers(existing)),
            // Another caller has since deleted and recreated the credential.
            Appended::NamedOtherwise(_) => Err(Failure::Contended),
            Appended::Changed => match condition {
                AppendCondition::CredentialIs(_) => Err(Failure::NotFound),
                AppendCondition::Always | AppendCondition::NewestIs(_) => Err(Failure::Contended),
            },
        }
    }

    /// Encrypts a draft and adds it if a condition holds.
    pub(super) async fn append_once(
        &self,
        permit: &Permit<'_>,
        draft: &Draft,
        condition: AppendCondition,
    ) -> Result<Appended, Failure> {
        let version = self.seal(permit, draft).await?;
        let appending = self.repository.append(version, condition, &draft.unchanged);
        Ok(appending.await?)
    }

    /// Returns the current time in whole seconds, as it is passed to guests.
    pub(super) fn now_in_seconds(&self) -> DateTime<Utc> {
        let now = self.clock.now();
        now.with_nanosecond(0).unwrap_or(now)
    }
}
