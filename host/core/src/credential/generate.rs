//! Generating a credential: the three modes, and the race between writers of one name.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    Failure,
    authorization::{Caller, Permit},
    certificate::EffectiveParameters,
    credential::{
        CredentialName, CredentialType, CredentialVersion, Credentials, Issuance, LookupName,
        Metadata, Parameters, RequestedParameters, StoredVersion, Written,
        asked::{self, SUBJECT},
        make::named_issuer,
        service::{Draft, OpenVersion},
        stored_parameters::{comparable_parameters, is_made_by},
    },
    permission::Operation,
    ports::{
        AppendCondition, Appended, Generator, NewVersion, PluginFailure, VersionSelection,
        Violation,
    },
};

/// A request to generate a credential.
#[derive(Debug)]
pub struct Generate {
    /// The credential's name.
    pub name: CredentialName,
    /// Its type.
    pub credential_type: CredentialType,
    /// What to do when it exists.
    pub mode: WriteMode,
    /// What the caller sent as parameters, if anything.
    pub parameters: Option<RequestedParameters>,
    /// What to keep beside it.
    pub metadata: Option<Metadata>,
}

/// What a generate does with a credential that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// Add a version when the existing one was made from other parameters.
    Converge,
    /// Keep it.
    NoOverwrite,
    /// Add a version.
    Overwrite,
}

impl Credentials {
    /// Generates a credential, or answers with the existing version where the mode says to keep it.
    ///
    /// The value is made outside any transaction; the transaction that adds it looks at the state once more, and where
    /// another writer came first, the mode decides anew.
    ///
    /// # Errors
    /// When the type can't be generated or is not the credential's, the parameters break a rule, or the plugin fails.
    pub async fn generate(&self, caller: &Caller, generate: Generate) -> Result<Written, Failure> {
        if generate.credential_type.is_set_only() {
            return Err(Failure::TypeNotGeneratable(generate.credential_type));
        }
        let generator = self.generator(caller, &generate.credential_type)?;
        let parameters = requested_parameters(&generate, generator.as_ref())?;
        let normalized = asked::normalize(generator.as_ref(), &parameters).await?;
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
        let mut made = None;
        for _ in 0..DECISIONS_MAX {
            if let Some(written) = self.try_to_generate(&permitted, &mut made).await? {
                return Ok(written);
            }
        }
        Err(Failure::Contended)
    }

    /// None: another writer came first. What is made, and can still be used, stays in `made`.
    async fn try_to_generate(
        &self,
        permitted: &Permitted<'_>,
        made: &mut Option<(Draft, NewVersion)>,
    ) -> Result<Option<Written>, Failure> {
        let Permitted {
            generate, permit, ..
        } = permitted;
        let existing = self
            .existing(&generate.name.lookup(), &generate.credential_type)
            .await?;
        if let Some(issuer_permit) = &permitted.issuer_permit {
            self.check_authority(issuer_permit).await?;
        }
        if let Some(kept) = self.kept(permitted, &existing).await? {
            permit.disclosed_version(kept.stored.credential_id, kept.stored.id);
            return Ok(Some(kept_answer(self.presented(permit, kept)?)));
        }
        let (mut draft, version) = match made.take() {
            Some(made) => made,
            None => self.make(permitted).await?,
        };
        let condition = match generate.mode {
            WriteMode::Overwrite => AppendCondition::Always,
            WriteMode::Converge | WriteMode::NoOverwrite => {
                AppendCondition::NewestIs(existing.newest.as_ref().map(|newest| newest.id))
            }
        };
        let appended = self
            .repository
            .append(version.clone(), condition, &draft.unchanged)
            .await?;
        match appended {
            Appended::Written(stored) => {
                let version = OpenVersion {
                    stored: *stored,
                    content: draft.content,
                };
                let version = self.presented(permit, version)?;
                return Ok(Some(written_answer(version, &permitted.effective)));
            }
            Appended::TypeDiffers(existing) => return Err(Failure::TypeDiffers(existing)),
            Appended::TransitionalExists => return Err(Failure::TransitionalExists),
            Appended::Changed => *made = Some((draft, version)),
            Appended::NamedOtherwise(name) => {
                draft.name = name;
                let version = self.seal(permit, &draft).await?;
                *made = Some((draft, version));
            }
            // Others have changed the authority meanwhile: what it signed is made anew.
            Appended::Outdated => {}
        }
        Ok(None)
    }

    /// Makes a value and everything that is stored with it.
    async fn make(&self, permitted: &Permitted<'_>) -> Result<(Draft, NewVersion), Failure> {
        let generate = &permitted.generate;
        let mut draft = self
            .make_draft(
                &generate.name,
                &generate.credential_type,
                &permitted.effective.parameters,
                permitted.generator.as_ref(),
                permitted.issuer_permit.as_ref(),
            )
            .await?;
        draft.content.metadata.clone_from(&generate.metadata);
        let version = self.seal(&permitted.permit, &draft).await?;
        Ok((draft, version))
    }

    /// What there is of a credential, when it is of the type asked for.
    async fn existing(
        &self,
        name: &LookupName,
        credential_type: &CredentialType,
    ) -> Result<Existing, Failure> {
        let current = self
            .repository
            .versions_by_name(name, VersionSelection::Current)
            .await?;
        let newest = current
            .iter()
            .max_by_key(|version| version.sequence)
            .cloned();
        if let Some(newest) = newest
            .as_ref()
            .filter(|newest| newest.credential_type != *credential_type)
        {
            return Err(Failure::TypeDiffers(newest.credential_type.clone()));
        }
        Ok(Existing {
            in_use: current.into_iter().next(),
            newest,
        })
    }

    /// The existing version, when the mode says to keep it.
    async fn kept(
        &self,
        permitted: &Permitted<'_>,
        existing: &Existing,
    ) -> Result<Option<OpenVersion>, Failure> {
        let Permitted {
            effective,
            generator,
            permit,
            ..
        } = permitted;
        let mode = permitted.generate.mode;
        let Some(in_use) = existing.in_use.clone() else {
            return Ok(None);
        };
        if mode == WriteMode::Overwrite {
            return Ok(None);
        }
        let in_use = self.open(permit, in_use).await?;
        let keep = match mode {
            WriteMode::Converge => {
                !self.has_new_issuer(permit, &in_use).await?
                    && is_made_from(&in_use, &effective.parameters, generator.as_ref()).await?
            }
            WriteMode::NoOverwrite | WriteMode::Overwrite => true,
        };
        Ok(keep.then_some(in_use))
    }
}

/// How often the mode decides until something can be written, when other writers of the same name, or of its authority,
/// come first.
const DECISIONS_MAX: usize = 16;

/// What was asked for, checked and permitted.
struct Permitted<'a> {
    generate: Generate,
    effective: EffectiveParameters,
    generator: Arc<dyn Generator>,
    /// To write the credential.
    permit: Permit<'a>,
    /// To use the authority that the parameters name.
    issuer_permit: Option<Permit<'a>>,
}

/// What there is of a credential.
struct Existing {
    /// The newest version that is not transitional; with none, the transitional one.
    in_use: Option<StoredVersion>,
    /// The newest version of any kind.
    newest: Option<StoredVersion>,
}

/// What the caller sent, with the issuer's name brought into its canonical form.
fn requested_parameters(
    generate: &Generate,
    generator: &dyn Generator,
) -> Result<Parameters, Failure> {
    let mut parameters = match &generate.parameters {
        Some(parameters) => generator.requested(parameters)?,
        None if generate.credential_type.is_certificate() => {
            return Err(Failure::ParametersMissing(generate.credential_type.clone()));
        }
        None => Parameters::new(serde_json::Map::new()),
    };
    let read_only = generator.read_only_parameters();
    if let Some(name) = read_only
        .iter()
        .find(|name| parameters.member(name).is_some())
    {
        return Err(Failure::from(PluginFailure::ParametersRefused(Violation {
            member: Some(name.clone()),
            rule: "is read-only".to_owned(),
        })));
    }
    if let Some(issuer_parameter) = generator.issuer_parameter() {
        match parameters.remove(issuer_parameter) {
            Some(Value::String(name)) if name.is_empty() => {}
            Some(Value::String(name)) => {
                let name = LookupName::new(&name).asked().to_owned();
                parameters.insert(issuer_parameter, Value::String(name));
            }
            Some(other) => parameters.insert(issuer_parameter, other),
            None => {}
        }
    }
    Ok(parameters)
}

/// Whether a version was made from these parameters, or, if it was set, could have been.
async fn is_made_from(
    version: &OpenVersion,
    parameters: &Parameters,
    generator: &dyn Generator,
) -> Result<bool, Failure> {
    let folded: &[&str] = if version.stored.credential_type.is_certificate() {
        &SUBJECT
    } else {
        &[]
    };
    let is_satisfied =
        |stored: &Parameters| stored.satisfies(parameters, generator.issuer_parameter(), folded);
    let read_only = generator.read_only_parameters();
    let is_told = |stored: &Parameters| read_only.iter().all(|name| stored.member(name).is_none());
    if let Some(stored) = version.content.parameters.as_ref()
        && is_told(stored)
    {
        if is_satisfied(stored) {
            return Ok(true);
        }
        if is_made_by(version, generator) {
            return Ok(false);
        }
    }
    let stored = comparable_parameters(version, generator).await?;
    match &stored {
        // The plugin refuses them now: they are no form of any request.
        None if version.content.parameters.is_some() => return Ok(false),
        Some(stored) if is_told(stored) => return Ok(is_satisfied(stored)),
        _ => {}
    }
    match generator
        .recover(stored.as_ref(), &version.content.value)
        .await
    {
        Ok(Some(recovered)) => {
            Ok(recovered.is_complete && is_satisfied(&recovered.parameters.without(read_only)))
        }
        Ok(None) | Err(PluginFailure::ValueRefused(_)) => Ok(false),
        Err(failure) => Err(failure.into()),
    }
}

fn kept_answer(version: CredentialVersion) -> Written {
    let issuance = version.certificate.as_ref().map(|marks| Issuance {
        is_duration_overridden: false,
        duration_used_days: 0,
        key_length_bits: marks
            .facts
            .as_ref()
            .map_or(0, |facts| facts.key_length_bits),
    });
    Written { version, issuance }
}

/// The answer about a version that was made from these parameters.
pub(super) fn written_answer(
    version: CredentialVersion,
    effective: &EffectiveParameters,
) -> Written {
    let duration_days = effective
        .parameters
        .member("duration")
        .and_then(Value::as_u64)
        .unwrap_or(0);
    let issuance = version.certificate.as_ref().map(|marks| Issuance {
        is_duration_overridden: effective.is_duration_overridden,
        duration_used_days: u32::try_from(duration_days).unwrap_or(u32::MAX),
        key_length_bits: marks
            .facts
            .as_ref()
            .map_or(0, |facts| facts.key_length_bits),
    });
    Written { version, issuance }
}
