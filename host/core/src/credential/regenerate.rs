//! Regenerating a credential from the parameters of its newest version.

use crate::{
    Failure,
    authorization::{Caller, Permit},
    certificate::{DURATION_DAYS_MAX, EffectiveParameters, IssuanceFacts, SigningUsages},
    credential::{
        CredentialName, Credentials, LookupName, Metadata, Parameters, PluginIdentity,
        StoredVersion, Written,
        asked::{self, SetCertificate},
        authority::TransitionalParent,
        generate::written_answer,
        make::named_issuer,
        service::{MAKINGS_MAX, OpenVersion},
        stored_certificate::StoredCertificate,
        stored_parameters::current_parameters,
    },
    permission::Operation,
    ports::{AppendCondition, Generator, PluginFailure, VersionSelection, Violation},
};

/// A request to regenerate a credential.
#[derive(Debug)]
pub struct Regenerate {
    /// The credential's name.
    pub name: LookupName,
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
        for _ in 0..MAKINGS_MAX {
            let written = self.try_to_regenerate(caller, &permit, &regenerate).await?;
            if let Some(written) = written {
                return Ok(written);
            }
        }
        Err(Failure::Contended)
    }

    /// `None` if the CA was changed concurrently.
    async fn try_to_regenerate(
        &self,
        caller: &Caller,
        permit: &Permit<'_>,
        regenerate: &Regenerate,
    ) -> Result<Option<Written>, Failure> {
        let newest = self
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
        let base = self.open(permit, newest).await?;
        let effective = self
            .effective_parameters_of(&base, generator.as_ref())
            .await?;
        let authority = match named_issuer(&effective.parameters, generator.as_ref()) {
            Some(name) => {
                // If the caller may not read the CA, the error is the same as for a missing credential.
                let permitting = self.authorization.permit(caller, Operation::Read, &name);
                let permit = permitting.await?;
                let authority = self.authority_in_use(&permit, TransitionalParent::MayNotSign);
                Some(authority.await?)
            }
            None => None,
        };
        let mut draft = self
            .make_draft(
                &base.stored.name,
                &base.stored.credential_type,
                &effective.parameters,
                generator.as_ref(),
                authority.as_ref(),
            )
            .await?;
        draft.content.metadata.clone_from(&regenerate.metadata);
        let condition = AppendCondition::CredentialIs(base.stored.credential_id);
        let appended = self.append(permit, draft, condition).await?;
        appended
            .map(|version| Ok(written_answer(self.presented(permit, version)?, &effective)))
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
        let stored = match current_parameters(base, generator).await {
            Err(PluginFailure::ParametersRefused(violation)) => {
                return Err(parameters_outdated(generator, &violation));
            }
            stored => stored?,
        };
        let stored = stored.as_ref();
        let recovered = match generator.recover(stored, &base.content.value).await {
            Ok(Some(recovered)) => recovered.parameters,
            Ok(None) => {
                return Err(Failure::NotRegeneratable(
                    "its value was set, not generated".to_owned(),
                ));
            }
            Err(PluginFailure::ValueRefused(violation)) => {
                return Err(Failure::NotRegeneratable(violation.to_string()));
            }
            Err(failure) => return Err(failure.into()),
        };
        let Some(issuer_parameter) = generator.issuer_parameter() else {
            return Ok(recovered);
        };
        match stored {
            Some(stored) => Ok(asked::as_stored(recovered, stored, issuer_parameter)),
            None => asked::as_set(
                recovered,
                &self.set_certificate_of(base)?,
                generator,
                issuer_parameter,
            ),
        }
    }

    /// Returns the host's facts about a certificate that was set. It has none about other types.
    fn set_certificate_of<'a>(&self, base: &'a OpenVersion) -> Result<SetCertificate<'a>, Failure> {
        let facts = base.stored.certificate.as_ref();
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
}

/// Returns the error for stored parameters of another plugin release that the configured plugin does not accept.
fn parameters_outdated(generator: &dyn Generator, violation: &Violation) -> Failure {
    let PluginIdentity { name, version, .. } = generator.identity();
    Failure::NotRegeneratable(format!(
        "the plugin {name} {version} does not accept its stored parameters: {violation}; generate it again in mode \
         overwrite, with parameters that this version accepts"
    ))
}

/// Returns the name of the credential that signed a version, or `None` if the version is self-signed.
///
/// If an older version of the same credential signed, this is the version's own name.
pub(super) fn signer_of(version: &StoredVersion) -> Option<&CredentialName> {
    let signer = version.signed_by.as_ref()?;
    let has_signed_itself = version
        .certificate
        .as_ref()
        .is_none_or(|facts| facts.is_self_signed);
    let is_other = signer.lookup() != version.name.lookup();
    (is_other || !has_signed_itself).then_some(signer)
}
