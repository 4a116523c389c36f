//! Generating a credential: the three modes, and concurrent writers of one name.

use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;

use crate::{
    Failure,
    authorization::{Caller, Permit},
    certificate::EffectiveParameters,
    credential::{
        CredentialName, CredentialType, CredentialVersion, Credentials, Issuance, LookupName,
        Metadata, Parameters, RequestedParameters, StoredVersion, Written,
        authority::TransitionalParent,
        draft::named_issuer,
        guest_constraints::{self, BaseVersion, SUBJECT, comparable_parameters, is_generated_by},
        version_store::{ActiveVersions, Draft, OpenVersion},
    },
    permission::Operation,
    ports::{AppendCondition, Appended, Generator, PluginCallError, VersionSelection, Violation},
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// Add a version if the existing version was generated from other parameters.
    Converge,
    /// Keep the existing version.
    NoOverwrite,
    /// Add a version.
    Overwrite,
}

impl Credentials {
    /// Generates a credential, or returns the existing version if the mode keeps it.
    ///
    /// The value is generated outside of any transaction. The transaction that adds it checks the state again. If another
    /// writer came first, the mode is evaluated again.
    ///
    /// # Errors
    /// If the type can't be generated or differs from the credential's type, the parameters break a rule, or the plugin
    /// fails.
    pub async fn generate(&self, caller: &Caller, generate: Generate) -> Result<Written, Failure> {
        if generate.credential_type.is_set_only() {
            return Err(Failure::TypeNotGeneratable(generate.credential_type));
        }
        let generator = self.generator(caller, &generate.credential_type)?;
        let requested = generate.parameters.as_ref();
        let normalized =
            canonical_parameters(&generate.credential_type, requested, generator.as_ref()).await?;
        let effective = self
            .certificate_settings
            .apply(&generate.credential_type, normalized);
        let permit = self
            .authorization
            .permit(caller, Operation::Write, &generate.name.lookup())
            .await?;
        let issuer_permit = match named_issuer(&effective.parameters, generator.as_ref()) {
            Some(name) => Some(self.permit_issuer(caller, &name).await?),
            None => None,
        };
        let permitted = Permitted {
            generate,
            effective,
            generator,
            permit,
            issuer_permit,
        };
        let mut unused_draft = None;
        for _ in 0..GENERATE_ATTEMPTS_MAX {
            if let Some(written) = self.try_to_generate(&permitted, &mut unused_draft).await? {
                return Ok(written);
            }
        }
        Err(Failure::Contended)
    }

    /// Attempts to generate and add a version. Returns `None` if another writer came first. If the generated value can still be
    /// used, `unused_draft` then contains it.
    async fn try_to_generate(
        &self,
        permitted: &Permitted<'_>,
        unused_draft: &mut Option<Draft>,
    ) -> Result<Option<Written>, Failure> {
        let Permitted {
            generate, permit, ..
        } = permitted;
        let existing = self
            .existing(&generate.name.lookup(), &generate.credential_type)
            .await?;
        let issuer = match &permitted.issuer_permit {
            Some(permit) => Some((permit, self.store.checked_authority(permit).await?)),
            None => None,
        };
        if let Some(version) = self.version_to_keep(permitted, existing.active).await? {
            permit.record_disclosure(version.stored.credential_id, version.stored.id);
            return Ok(Some(written(self.render(permit, version)?, false, 0)));
        }
        let mut draft = match unused_draft.take() {
            Some(draft) => draft,
            None => self.new_draft(permitted, issuer).await?,
        };
        let condition = match generate.mode {
            WriteMode::Overwrite => AppendCondition::Always,
            WriteMode::Converge | WriteMode::NoOverwrite => {
                AppendCondition::NewestIs(existing.newest_id)
            }
        };
        match self.store.append_once(permit, &draft, condition).await? {
            Appended::Written(stored) => {
                let version = OpenVersion {
                    stored: *stored,
                    content: draft.content,
                };
                let version = self.render(permit, version)?;
                return Ok(Some(written_response(version, &permitted.effective)));
            }
            Appended::TypeDiffers(existing) => return Err(Failure::TypeDiffers(existing)),
            Appended::TransitionalExists => return Err(Failure::TransitionalExists),
            Appended::Changed => *unused_draft = Some(draft),
            Appended::NamedOtherwise(name) => {
                draft.name = name;
                *unused_draft = Some(draft);
            }
            // The CA was changed concurrently, so the value is generated again.
            Appended::Outdated => {}
        }
        Ok(None)
    }

    /// Generates a value and the data to store with it. The active version of the issuer signs.
    async fn new_draft(
        &self,
        permitted: &Permitted<'_>,
        issuer: Option<(&Permit<'_>, ActiveVersions)>,
    ) -> Result<Draft, Failure> {
        let generate = &permitted.generate;
        let authority = match issuer {
            Some((permit, current)) => Some(
                self.store
                    .authority_of(permit, current, TransitionalParent::MayNotSign)
                    .await?,
            ),
            None => None,
        };
        let mut draft = self
            .generate_draft(
                &generate.name,
                &generate.credential_type,
                &permitted.effective.parameters,
                permitted.generator.as_ref(),
                authority.as_ref(),
            )
            .await?;
        draft.content.metadata.clone_from(&generate.metadata);
        Ok(draft)
    }

    /// Returns the existing versions of a credential if it has the requested type.
    async fn existing(
        &self,
        name: &LookupName,
        credential_type: &CredentialType,
    ) -> Result<Existing, Failure> {
        let current = self
            .store
            .repository
            .versions_by_name(name, VersionSelection::Current)
            .await?;
        let newest = current.iter().max_by_key(|version| version.sequence);
        if let Some(newest) = newest.filter(|newest| newest.credential_type != *credential_type) {
            return Err(Failure::TypeDiffers(newest.credential_type.clone()));
        }
        Ok(Existing {
            newest_id: newest.map(|newest| newest.id),
            active: current.into_iter().next(),
        })
    }

    /// Returns the existing version if the mode keeps it.
    async fn version_to_keep(
        &self,
        permitted: &Permitted<'_>,
        active: Option<StoredVersion>,
    ) -> Result<Option<OpenVersion>, Failure> {
        let Permitted {
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
        let keep = match mode {
            WriteMode::Converge => {
                !self.has_new_issuer(permit, &active).await?
                    && is_generated_from(
                        BaseVersion::from(&active),
                        &effective.parameters,
                        generator.as_ref(),
                    )
                    .await?
            }
            WriteMode::NoOverwrite | WriteMode::Overwrite => true,
        };
        Ok(keep.then_some(active))
    }
}

/// Maximum attempts when concurrent writers of the same name, or of its CA, come first.
const GENERATE_ATTEMPTS_MAX: usize = 16;

/// A checked and authorized request.
struct Permitted<'a> {
    generate: Generate,
    effective: EffectiveParameters,
    generator: Arc<dyn Generator>,
    /// The permit to write the credential.
    permit: Permit<'a>,
    /// The permit to use the CA that the parameters name.
    issuer_permit: Option<Permit<'a>>,
}

/// The existing versions of a credential.
struct Existing {
    /// The active version, or else the transitional version.
    active: Option<StoredVersion>,
    /// The id of the newest version, transitional or not.
    newest_id: Option<Uuid>,
}

/// Returns the canonical form of the parameters in a request to generate a credential.
pub async fn canonical_parameters(
    credential_type: &CredentialType,
    requested: Option<&RequestedParameters>,
    generator: &dyn Generator,
) -> Result<Parameters, Failure> {
    let parameters = requested_parameters(credential_type, requested, generator)?;
    guest_constraints::normalize(generator, parameters).await
}

/// Returns the caller's parameters, with the issuer's name in canonical form.
fn requested_parameters(
    credential_type: &CredentialType,
    requested: Option<&RequestedParameters>,
    generator: &dyn Generator,
) -> Result<Parameters, Failure> {
    let mut parameters = match requested {
        Some(parameters) => generator.requested(parameters)?,
        None if credential_type.is_certificate() => {
            return Err(Failure::ParametersMissing(credential_type.clone()));
        }
        None => Parameters::new(serde_json::Map::new()),
    };
    let read_only = generator.read_only_parameters();
    if let Some(name) = read_only
        .iter()
        .find(|name| parameters.field(name).is_some())
    {
        return Err(Failure::from(PluginCallError::ParametersRefused(
            Violation {
                field: Some(name.clone()),
                rule: "is read-only".to_owned(),
            },
        )));
    }
    if let Some(issuer_parameter) = generator.issuer_parameter() {
        match parameters.remove(issuer_parameter) {
            Some(Value::String(name)) if name.is_empty() => {}
            Some(Value::String(name)) => {
                let name = LookupName::new(&name).requested().to_owned();
                parameters.insert(issuer_parameter, Value::String(name));
            }
            Some(other) => parameters.insert(issuer_parameter, other),
            None => {}
        }
    }
    Ok(parameters)
}

/// Returns whether a version was generated from these canonical parameters or, if it was set, could have been. If so, a
/// converging request keeps it.
pub async fn is_generated_from(
    version: BaseVersion<'_>,
    parameters: &Parameters,
    generator: &dyn Generator,
) -> Result<bool, Failure> {
    let folded: &[&str] = if version.credential_type.is_certificate() {
        &SUBJECT
    } else {
        &[]
    };
    let is_satisfied =
        |stored: &Parameters| stored.satisfies(parameters, generator.issuer_parameter(), folded);
    let read_only = generator.read_only_parameters();
    let is_comparable =
        |stored: &Parameters| read_only.iter().all(|name| stored.field(name).is_none());
    if let Some(stored) = version.parameters
        && is_comparable(stored)
    {
        if is_satisfied(stored) {
            return Ok(true);
        }
        if is_generated_by(version, generator) {
            return Ok(false);
        }
    }
    let stored = comparable_parameters(version, generator).await?;
    match &stored {
        // The configured plugin refuses the stored parameters, so they match no request.
        None if version.parameters.is_some() => return Ok(false),
        Some(stored) if is_comparable(stored) => return Ok(is_satisfied(stored)),
        _ => {}
    }
    match generator.recover(stored.as_ref(), version.value).await {
        Ok(Some(recovered)) => {
            Ok(recovered.is_complete && is_satisfied(&recovered.parameters.without(read_only)))
        }
        Ok(None) | Err(PluginCallError::ValueRefused(_)) => Ok(false),
        Err(failure) => Err(failure.into()),
    }
}

/// Returns the response for a version that was generated from these parameters.
pub(super) fn written_response(
    version: CredentialVersion,
    effective: &EffectiveParameters,
) -> Written {
    let duration_days = effective
        .parameters
        .field("duration")
        .and_then(Value::as_u64)
        .unwrap_or(0);
    let duration_used_days = u32::try_from(duration_days).unwrap_or(u32::MAX);
    written(
        version,
        effective.is_duration_overridden,
        duration_used_days,
    )
}

fn written(
    version: CredentialVersion,
    is_duration_overridden: bool,
    duration_used_days: u32,
) -> Written {
    let facts = version.attributes.certificate.as_ref();
    let issuance = version
        .credential_type
        .is_certificate()
        .then_some(Issuance {
            is_duration_overridden,
            duration_used_days,
            key_length_bits: facts.map_or(0, |facts| facts.key_length_bits),
        });
    Written { version, issuance }
}
