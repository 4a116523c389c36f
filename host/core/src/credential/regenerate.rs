//! Regenerating a credential from the parameters of a stored version, or a certificate by its id: with the transitional flag,
//! signed by a transitional CA version, or with another key length or duration.

use uuid::Uuid;

use crate::{
    Failure,
    authorization::{Caller, Permit},
    certificate::{DURATION_DAYS_MAX, EffectiveParameters, IssuanceFacts, SigningUsages},
    credential::{
        CredentialName, Credentials, LookupName, Metadata, Parameters, PluginIdentity,
        StoredVersion, Written,
        authority::TransitionalParent,
        content::StoredCertificate,
        draft::named_issuer,
        generate::written_response,
        guest_constraints::{self, BaseVersion, DURATION, SetCertificate, current_parameters},
        version_store::{ActiveVersions, OpenVersion, WRITE_ATTEMPTS_MAX},
    },
    permission::Operation,
    ports::{AppendCondition, Generator, PluginCallError, VersionSelection, Violation},
};

/// A request to regenerate a credential.
#[derive(Debug)]
pub struct Regenerate {
    /// The credential's name.
    pub name: LookupName,
    /// The metadata of the new version. It is not inherited.
    pub metadata: Option<Metadata>,
}

/// A request to regenerate a certificate.
#[derive(Debug)]
pub struct RegenerateCertificate {
    /// The id of its credential.
    pub certificate_id: Uuid,
    /// Whether the new version gets the transitional flag.
    pub is_transitional: bool,
    /// Whether a transitional version of its CA may sign.
    pub transitional_parent: TransitionalParent,
    /// The new key length, in bits.
    pub key_length: Option<i64>,
    /// The new duration, in days.
    pub duration: Option<i64>,
    /// The metadata of the new version. It is not inherited.
    pub metadata: Option<Metadata>,
}

impl Credentials {
    /// Regenerates a credential: adds a version generated from the parameters of the newest version, transitional or not.
    ///
    /// # Errors
    /// [`Failure::NotFound`]; [`Failure::NotRegeneratable`] if the value was set and lacks required information, or its type
    /// can only be set; or if the plugin fails.
    pub async fn regenerate(
        &self,
        caller: &Caller,
        regenerate: Regenerate,
    ) -> Result<Written, Failure> {
        let permit = self
            .authorization
            .permit(caller, Operation::Write, &regenerate.name)
            .await?;
        for _ in 0..WRITE_ATTEMPTS_MAX {
            let written = self.try_to_regenerate(caller, &permit, &regenerate).await?;
            if let Some(written) = written {
                return Ok(written);
            }
        }
        Err(Failure::Contended)
    }

    /// Attempts to regenerate a credential. Returns `None` if the CA was changed concurrently.
    async fn try_to_regenerate(
        &self,
        caller: &Caller,
        permit: &Permit<'_>,
        regenerate: &Regenerate,
    ) -> Result<Option<Written>, Failure> {
        let newest = self
            .store
            .repository
            .versions_by_name(&regenerate.name, VersionSelection::Newest(1))
            .await?
            .into_iter()
            .next()
            .ok_or(Failure::NotFound)?;
        if newest.credential_type.is_set_only() {
            let reason = format!(
                "credentials of type {} can only be set",
                newest.credential_type
            );
            return Err(Failure::NotRegeneratable(reason));
        }
        let generator = self.generator(caller, &newest.credential_type)?;
        let base = self.store.open(permit, newest).await?;
        let effective = self
            .effective_parameters_of(&base, generator.as_ref())
            .await?;
        let authority = match named_issuer(&effective.parameters, generator.as_ref()) {
            Some(name) => {
                // If the caller may not read the CA, the error is the same as for a missing credential.
                let permitting = self.authorization.permit(caller, Operation::Read, &name);
                let permit = permitting.await?;
                let authority = self
                    .store
                    .active_authority(&permit, TransitionalParent::MayNotSign);
                Some(authority.await?)
            }
            None => None,
        };
        let mut draft = self
            .generate_draft(
                &base.stored.name,
                &base.stored.credential_type,
                &effective.parameters,
                generator.as_ref(),
                authority.as_ref(),
            )
            .await?;
        draft.content.metadata.clone_from(&regenerate.metadata);
        let condition = AppendCondition::CredentialIs(base.stored.credential_id);
        let appended = self.store.append(permit, draft, condition).await?;
        appended
            .map(|version| Ok(written_response(self.render(permit, version)?, &effective)))
            .transpose()
    }

    /// Returns the parameters to regenerate a stored version, with the current settings applied.
    pub(super) async fn effective_parameters_of(
        &self,
        base: &OpenVersion,
        generator: &dyn Generator,
    ) -> Result<EffectiveParameters, Failure> {
        let parameters = self.parameters_of(base, generator).await?;
        Ok(self
            .certificate_settings
            .apply(&base.stored.credential_type, parameters))
    }

    /// Returns the canonical parameters to regenerate a stored version.
    pub(super) async fn parameters_of(
        &self,
        base: &OpenVersion,
        generator: &dyn Generator,
    ) -> Result<Parameters, Failure> {
        let parameters = regeneration_parameters(BaseVersion::from(base), generator).await?;
        match (generator.issuer_parameter(), &base.content.parameters) {
            (Some(issuer_parameter), None) => guest_constraints::as_set(
                parameters,
                &self.set_certificate_of(base)?,
                generator,
                issuer_parameter,
            ),
            _ => Ok(parameters),
        }
    }

    /// Returns the host's facts about a certificate that was set, or defaults for a value of another type.
    fn set_certificate_of<'a>(&self, base: &'a OpenVersion) -> Result<SetCertificate<'a>, Failure> {
        let is_certificate = base.stored.credential_type.is_certificate();
        let facts = base.stored.attributes.certificate.as_ref();
        let facts = facts.filter(|_| is_certificate);
        let issuance = match facts {
            Some(_) => {
                let value = StoredCertificate::parse(&base.content.value)?;
                let certificate = value.certificate.ok_or(Failure::StoredValueMalformed)?;
                self.certificates
                    .issuance_facts(&certificate)
                    .map_err(|_| Failure::StoredValueMalformed)?
            }
            None => IssuanceFacts {
                duration_days: DURATION_DAYS_MAX,
                signing_usages: SigningUsages::default(),
            },
        };
        Ok(SetCertificate {
            signer: signer_of(&base.stored),
            is_authority: facts.is_some_and(|facts| facts.is_certificate_authority),
            issuance,
        })
    }

    /// Regenerates a certificate: adds a version generated from the parameters of the active version.
    ///
    /// # Errors
    /// [`Failure::NotFound`]; [`Failure::NotRegeneratable`] if its only version is transitional, or was set and lacks
    /// required information; [`Failure::TransitionalExists`]; or if the plugin refuses the caller's changes, or fails.
    pub async fn regenerate_certificate(
        &self,
        caller: &Caller,
        regenerate: RegenerateCertificate,
    ) -> Result<Written, Failure> {
        regenerate.check_ranges()?;
        for _ in 0..WRITE_ATTEMPTS_MAX {
            let written = self
                .try_to_regenerate_certificate(caller, &regenerate)
                .await?;
            if let Some(written) = written {
                return Ok(written);
            }
        }
        Err(Failure::Contended)
    }

    /// Attempts to regenerate a certificate. Returns `None` if the CA was changed concurrently.
    async fn try_to_regenerate_certificate(
        &self,
        caller: &Caller,
        regenerate: &RegenerateCertificate,
    ) -> Result<Option<Written>, Failure> {
        let certificate_id = regenerate.certificate_id;
        let current = VersionSelection::Current;
        let (permit, current) = self
            .permitted_certificate_versions(caller, Operation::Write, certificate_id, current)
            .await?;
        let current = ActiveVersions::new(current);
        let base = current.active.ok_or_else(|| {
            Failure::NotRegeneratable("its only version is transitional".to_owned())
        })?;
        // Checked here to avoid generating an unused key, and again when the version is added.
        if regenerate.is_transitional && current.transitional.is_some() {
            return Err(Failure::TransitionalExists);
        }
        let generator = self.generator(caller, &base.credential_type)?;
        let base = self.store.open(&permit, base).await?;
        let parameters = self.parameters_of(&base, generator.as_ref()).await?;
        let parameters = changed(parameters, regenerate, generator.as_ref()).await?;
        let effective = self
            .certificate_settings
            .apply(&base.stored.credential_type, parameters);
        let authority = match named_issuer(&effective.parameters, generator.as_ref()) {
            // The same CA signs again. In this use case, the caller needs no permission on it.
            Some(name) => {
                let permit = permit.extended_to(Operation::Read, &name);
                let transitional_parent = regenerate.transitional_parent;
                Some(
                    self.store
                        .active_authority(&permit, transitional_parent)
                        .await?,
                )
            }
            None => None,
        };
        let mut draft = self
            .generate_draft(
                &base.stored.name,
                &base.stored.credential_type,
                &effective.parameters,
                generator.as_ref(),
                authority.as_ref(),
            )
            .await?;
        draft.attributes.is_transitional = regenerate.is_transitional;
        draft.content.metadata.clone_from(&regenerate.metadata);
        let appended = self
            .append_to_certificate(&permit, draft, certificate_id)
            .await?;
        appended
            .map(|version| Ok(written_response(self.render(&permit, version)?, &effective)))
            .transpose()
    }
}

/// Returns the canonical parameters to regenerate a stored version. For a value that was set, these are the recovered
/// parameters, which may exceed the limits of the issuer.
///
/// # Errors
/// [`Failure::NotRegeneratable`], or if the plugin fails.
pub async fn regeneration_parameters(
    base: BaseVersion<'_>,
    generator: &dyn Generator,
) -> Result<Parameters, Failure> {
    let stored = match current_parameters(base, generator).await {
        Err(PluginCallError::ParametersRefused(violation)) => {
            return Err(parameters_outdated(generator, &violation));
        }
        stored => stored?,
    };
    let recovered = match generator.recover(stored.as_ref(), base.value).await {
        Ok(Some(recovered)) => recovered.parameters,
        Ok(None) => {
            return Err(Failure::NotRegeneratable(
                "its value was set, not generated".to_owned(),
            ));
        }
        Err(PluginCallError::ValueRefused(violation)) => {
            return Err(Failure::NotRegeneratable(violation.to_string()));
        }
        Err(failure) => return Err(failure.into()),
    };
    Ok(match (generator.issuer_parameter(), &stored) {
        (Some(issuer_parameter), Some(stored)) => {
            guest_constraints::as_stored(recovered, stored, issuer_parameter)
        }
        _ => recovered,
    })
}

/// Returns the error for stored parameters of another plugin release that the configured plugin does not accept.
fn parameters_outdated(generator: &dyn Generator, violation: &Violation) -> Failure {
    let PluginIdentity { name, version, .. } = generator.identity();
    Failure::NotRegeneratable(format!(
        "the plugin {name} {version} does not accept the stored parameters: {violation}; generate the credential \
         again in mode overwrite, with parameters that the plugin accepts"
    ))
}

/// Returns the name of the credential that signed a version, or `None` if the version is self-signed.
///
/// If an older version of the same credential signed it, returns the credential's own name.
pub(super) fn signer_of(version: &StoredVersion) -> Option<&CredentialName> {
    let signer = version.attributes.signed_by.as_ref()?;
    let has_signed_itself = version
        .attributes
        .certificate
        .as_ref()
        .is_none_or(|facts| facts.is_self_signed);
    let is_other = signer.lookup() != version.name.lookup();
    (is_other || !has_signed_itself).then_some(signer)
}

impl RegenerateCertificate {
    /// Checks the caller's changes without the stored certificate. The plugin checks the key length, because the allowed
    /// lengths depend on the stored key's type.
    fn check_ranges(&self) -> Result<(), Failure> {
        for (field, value, max, rule) in [
            (
                KEY_LENGTH,
                self.key_length,
                i64::from(u32::MAX),
                "must be a number of bits",
            ),
            (
                DURATION,
                self.duration,
                i64::from(DURATION_DAYS_MAX),
                "must be a number of days from 1 to 3650",
            ),
        ] {
            if value.is_some_and(|number| !(1..=max).contains(&number)) {
                return Err(Failure::from(PluginCallError::ParametersRefused(
                    Violation {
                        field: Some(field.to_owned()),
                        rule: rule.to_owned(),
                    },
                )));
            }
        }
        Ok(())
    }
}

/// Applies the caller's changes to the parameters. The plugin checks them as for a generate request.
async fn changed(
    mut parameters: Parameters,
    regenerate: &RegenerateCertificate,
    generator: &dyn Generator,
) -> Result<Parameters, Failure> {
    if regenerate.key_length.is_none() && regenerate.duration.is_none() {
        return Ok(parameters);
    }
    if let Some(key_length) = regenerate.key_length {
        parameters.insert(KEY_LENGTH, key_length.into());
    }
    // A certificate that was set may have a duration that is not allowed in a request. It is kept, and not passed to the plugin.
    let kept_duration = match regenerate.duration {
        Some(duration) => {
            parameters.insert(DURATION, duration.into());
            None
        }
        None => parameters.remove(DURATION),
    };
    let mut parameters = guest_constraints::normalize(generator, parameters).await?;
    if let Some(duration) = kept_duration {
        parameters.insert(DURATION, duration);
    }
    Ok(parameters)
}

const KEY_LENGTH: &str = "key_length";
