//! Generating a credential: the three modes, and concurrent writers of one name.

use std::{iter, sync::Arc};

use serde_json::Value;
use strum::EnumString;

use crate::{
    UseCaseError,
    authorization::{Authorization, Caller, Permit},
    credential::{
        CredentialName, CredentialType, CredentialVersion, Metadata, Parameters,
        RequestedParameters, StoredVersion, VersionStore,
        draft::{EffectiveParameters, Generation},
        inputs::{ActiveInput, PermittedInput, is_derived_from, named_inputs},
        parameters::{
            BaseVersion, DURATION, canonical_parameters, is_generated_from, named_issuer,
        },
        version_store::{ActiveVersions, Draft, StoredCertificate, TransitionalParent},
    },
    permission::Operation,
    ports::{AppendCondition, CredentialKey, Generator, VersionSelection},
};

/// A request to generate a credential.
#[derive(Debug)]
pub struct Generate {
    /// The credential's name.
    pub name: CredentialName,
    /// Its type.
    pub credential_type: CredentialType,
    /// The handling of an existing credential.
    pub mode: WriteMode,
    /// The caller's parameters.
    pub parameters: Option<RequestedParameters>,
    /// The caller's metadata.
    pub metadata: Option<Metadata>,
}

/// The handling of an existing credential by a generate request.
#[derive(Clone, Copy, Debug, EnumString, PartialEq, Eq)]
#[strum(serialize_all = "kebab-case")]
pub enum WriteMode {
    /// Add a version if the existing version was generated from other parameters.
    Converge,
    /// Keep the existing version.
    NoOverwrite,
    /// Add a version.
    Overwrite,
}

/// The result of generating or regenerating a credential.
#[derive(Clone, Debug)]
pub struct Written {
    /// The new version, or the version that was kept.
    pub version: CredentialVersion,
    /// Whether the version is new.
    pub is_new: bool,
    /// The details of the issuance, if it is a certificate.
    pub issuance: Option<Issuance>,
}

/// The details of a certificate's issuance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issuance {
    /// Whether a server-wide minimum raised the duration.
    pub is_duration_overridden: bool,
    /// The duration that was used, in days; 0 if no certificate was issued.
    pub duration_used_days: u32,
    /// The length of the certificate's key, in bits; 0 if unknown.
    pub key_length_bits: u32,
}

/// Generates credentials.
pub struct GenerateCredentials {
    pub(super) authorization: Authorization,
    pub(super) store: VersionStore,
    pub(super) generation: Generation,
}

impl GenerateCredentials {
    /// Generates a credential, or returns the existing version if the mode keeps it.
    ///
    /// The value is generated outside of any transaction. The transaction that adds it checks the state again. If another
    /// writer came first, the mode is evaluated again.
    ///
    /// # Errors
    /// If the type can't be generated or differs from the credential's type, the parameters break a rule, or the plugin
    /// fails.
    pub async fn credential(
        &self,
        caller: &Caller,
        generate: Generate,
    ) -> Result<Written, UseCaseError> {
        let credential_type = &generate.credential_type;
        if credential_type.is_set_only() {
            return Err(UseCaseError::TypeNotGeneratable(credential_type.clone()));
        }
        let generator = self.generation.types.generator(caller, credential_type)?;
        let requested = generate.parameters.as_ref();
        let normalized =
            canonical_parameters(credential_type, requested, generator.as_ref()).await?;
        let effective = self.generation.settings.apply(credential_type, normalized);
        let authorization = &self.authorization;
        let name = generate.name.lookup();
        let permit = authorization
            .permit(caller, Operation::Write, &name)
            .await?;
        caller.reserve_parameters(effective.parameters.memory_bytes())?;
        let issuer_permit = match named_issuer(&effective.parameters, generator.as_ref()) {
            Some(name) => Some(authorization.permit_issuer(caller, &name).await?),
            None => None,
        };
        let inputs = named_inputs(&name, &effective.parameters, generator.as_ref())?;
        let inputs = PermittedInput::request(authorization, caller, inputs).await?;
        let permitted = Permitted {
            caller,
            generate,
            effective,
            generator,
            permit,
            issuer_permit,
            inputs,
        };
        let mut unused_draft = None;
        for _ in 0..GENERATE_ATTEMPTS_MAX {
            if let Some(written) = self.attempt(&permitted, &mut unused_draft).await? {
                return Ok(written);
            }
        }
        Err(UseCaseError::Contended)
    }

    /// Attempts to generate and add a version. Returns `None` if another writer came first. If the generated value can still be
    /// used, `unused_draft` then contains it.
    async fn attempt(
        &self,
        permitted: &Permitted<'_>,
        unused_draft: &mut Option<Draft>,
    ) -> Result<Option<Written>, UseCaseError> {
        let Permitted {
            generate,
            effective,
            permit,
            ..
        } = permitted;
        let name = generate.name.lookup();
        let (key, current) = (CredentialKey::Name(&name), VersionSelection::Current);
        let existing = self.store.repository.versions_of(key, current).await?;
        let newest = existing.iter().max_by_key(|version| version.sequence);
        if newest.is_some_and(|newest| !permit.covers(&newest.name)) {
            return Err(UseCaseError::WriteNotPermitted);
        }
        if let Some(newest) = newest
            && newest.credential_type != generate.credential_type
        {
            return Err(UseCaseError::TypeDiffers(newest.credential_type.clone()));
        }
        let condition = match generate.mode {
            WriteMode::Overwrite => AppendCondition::Always,
            WriteMode::Converge | WriteMode::NoOverwrite => {
                AppendCondition::NewestIs(newest.map(|newest| newest.id))
            }
        };
        let issuer = match &permitted.issuer_permit {
            Some(permit) => Some((permit, self.store.checked_authority(permit).await?)),
            None => None,
        };
        let inputs = self.store.active_inputs(&permitted.inputs).await?;
        // The active version, or else the transitional version.
        let active = existing.into_iter().next();
        if let Some(version) = self.version_to_keep(permitted, active, &inputs).await? {
            if generate.mode == WriteMode::Converge {
                // Calls of the plugin to compare the parameters may have waited.
                let confirming = self.authorization.confirm(permitted.caller, [permit]);
                confirming.await?;
            }
            permit.record_version(version.credential_id, version.id);
            return Ok(Some(written(self.store.render(permit, version)?, None)));
        }
        let draft = match unused_draft.take() {
            Some(draft) => draft,
            None => self.new_draft(permitted, issuer, inputs).await?,
        };
        let inputs = permitted.inputs.iter().map(PermittedInput::permit);
        let permits = iter::once(permit).chain(&permitted.issuer_permit);
        let permits = permits.chain(inputs);
        self.authorization
            .confirm(permitted.caller, permits)
            .await?;
        match self.store.append(permit, draft, condition).await? {
            Ok(version) => {
                let version = self.store.render(permit, version)?;
                Ok(Some(written(version, Some(effective))))
            }
            Err(unused) => {
                *unused_draft = unused;
                Ok(None)
            }
        }
    }

    /// Generates a value and the data to store with it. The active version of the issuer signs.
    async fn new_draft(
        &self,
        permitted: &Permitted<'_>,
        issuer: Option<(&Permit<'_>, ActiveVersions)>,
        inputs: Vec<ActiveInput<'_, '_>>,
    ) -> Result<Draft, UseCaseError> {
        let generate = &permitted.generate;
        let authority = match issuer {
            Some((permit, current)) => {
                let parent = TransitionalParent::MayNotSign;
                Some(self.store.authority(permit, current, parent).await?)
            }
            None => None,
        };
        let chosen_by = Some(permitted.caller.actor());
        let inputs = self.store.open_inputs(inputs, chosen_by).await?;
        let of = (&generate.name, &generate.credential_type);
        let (generator, authority) = (permitted.generator.as_ref(), authority.as_ref());
        let parameters = &permitted.effective.parameters;
        let generating = self
            .generation
            .draft(of, parameters, generator, authority, inputs);
        let mut draft = generating.await?;
        draft.content.metadata.clone_from(&generate.metadata);
        Ok(draft)
    }

    async fn version_to_keep(
        &self,
        permitted: &Permitted<'_>,
        active: Option<StoredVersion>,
        inputs: &[ActiveInput<'_, '_>],
    ) -> Result<Option<CredentialVersion>, UseCaseError> {
        let Permitted {
            caller,
            effective,
            generator,
            permit,
            ..
        } = permitted;
        let mode = permitted.generate.mode;
        let Some(active) = active.filter(|_| mode != WriteMode::Overwrite) else {
            return Ok(None);
        };
        let active = self.store.open(permit, active).await?;
        if mode != WriteMode::Converge {
            return Ok(Some(active));
        }
        let stored = active.content.parsed_parameters()?;
        // The plugin may normalize a copy of the stored parameters.
        let stored_bytes = stored.as_ref().map_or(0, Parameters::memory_bytes);
        caller.reserve_parameters(effective.parameters.memory_bytes() + 2 * stored_bytes)?;
        let base = BaseVersion::of(&active, stored.as_ref());
        let is_kept = is_signed_as_requested(&active, &effective.parameters, generator.as_ref())
            && is_derived_from(&active.content.inputs, inputs)
            && !self.has_new_issuer(permit, &active).await?
            && is_generated_from(base, &effective.parameters, generator.as_ref()).await?;
        Ok(is_kept.then_some(active))
    }

    /// Returns whether the CA that signed a version now has another active certificate.
    async fn has_new_issuer(
        &self,
        permit: &Permit<'_>,
        version: &CredentialVersion,
    ) -> Result<bool, UseCaseError> {
        let signer = version.attributes.signed_by.as_ref();
        let signer = signer.map(CredentialName::lookup);
        let Some(signer) = signer.filter(|signer| !signer.is(&version.name)) else {
            return Ok(false);
        };
        let current = self.store.active_versions(&signer).await?;
        // The name may be a credential of another type now.
        let Ok(active) = current.active_certificate().cloned() else {
            return Ok(false);
        };
        // The caller needs no permission to read the CA: the result only reveals that the CA has changed.
        let permit = permit.extended_to(Operation::Read, &signer);
        let is_certificate = version.credential_type.is_certificate();
        let signed_with = if is_certificate {
            StoredCertificate::parse(&version.content.value)?.ca
        } else {
            let recorded = version
                .attributes
                .issuer
                .and_then(|issuer| issuer.version_id);
            let Some(id) = recorded.filter(|id| *id != active.id) else {
                return Ok(false);
            };
            let Some(signed_with) = self.store.repository.version_by_id(id).await? else {
                return Ok(true);
            };
            self.store
                .certificate_of(&permit, signed_with)
                .await?
                .certificate
        };
        let active = self
            .store
            .certificate_of(&permit, active)
            .await?
            .certificate;
        let certificates = &self.generation.certificates;
        Ok(match (signed_with, active) {
            (Some(one), Some(other)) => !certificates.is_same_certificate(&one, &other),
            _ => !is_certificate,
        })
    }
}

/// Returns whether the requested CA signed a version, as far as is known. The parameters of a value that was set don't name its CA.
fn is_signed_as_requested(
    version: &CredentialVersion,
    requested: &Parameters,
    generator: &dyn Generator,
) -> bool {
    let requested = named_issuer(requested, generator);
    let signer = version.attributes.signed_by.as_ref();
    requested
        .zip(signer)
        .is_none_or(|(requested, signer)| requested.is(signer))
}

/// Maximum attempts when concurrent writers of the same name, or of its CA, come first.
pub(super) const GENERATE_ATTEMPTS_MAX: usize = 16;

/// A checked and authorized request.
struct Permitted<'a> {
    caller: &'a Caller,
    generate: Generate,
    effective: EffectiveParameters,
    generator: Arc<dyn Generator>,
    permit: Permit<'a>,
    /// The permit to use the CA that the parameters name.
    issuer_permit: Option<Permit<'a>>,
    /// The inputs that the parameters name.
    inputs: Vec<PermittedInput<'a>>,
}

/// Returns the result for a new version with its effective parameters, or for a version that was kept.
pub(super) fn written(version: CredentialVersion, new: Option<&EffectiveParameters>) -> Written {
    let duration = new.and_then(|effective| effective.parameters.field(DURATION));
    let duration_days = duration.and_then(Value::as_u64).unwrap_or(0);
    let facts = version.attributes.certificate.as_ref();
    let issuance = version
        .credential_type
        .is_certificate()
        .then_some(Issuance {
            is_duration_overridden: new.is_some_and(|effective| effective.is_duration_overridden),
            duration_used_days: u32::try_from(duration_days).unwrap_or(u32::MAX),
            key_length_bits: facts.map_or(0, |facts| facts.key_length_bits),
        });
    Written {
        version,
        is_new: new.is_some(),
        issuance,
    }
}
