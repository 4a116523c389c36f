//! Regenerating a certificate by its id: with the transitional flag, signed by a transitional CA version, or with another
//! key length or duration.

use uuid::Uuid;

use crate::{
    Failure,
    authorization::Caller,
    certificate::DURATION_DAYS_MAX,
    credential::{
        Credentials, Metadata, Parameters, TransitionalParent, Written,
        asked::{self, DURATION},
        current::CurrentVersions,
        generate::written_answer,
        make::named_issuer,
        service::MAKINGS_MAX,
    },
    permission::Operation,
    ports::{Generator, PluginFailure, VersionSelection, Violation},
};

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

impl RegenerateCertificate {
    /// Checks the caller's changes without the stored certificate. The plugin checks the key length, because the allowed
    /// lengths depend on the stored key's type.
    fn check_alone(&self) -> Result<(), Failure> {
        for (member, value, max, rule) in [
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
                return Err(Failure::from(PluginFailure::ParametersRefused(Violation {
                    member: Some(member.to_owned()),
                    rule: rule.to_owned(),
                })));
            }
        }
        Ok(())
    }
}

impl Credentials {
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
        regenerate.check_alone()?;
        for _ in 0..MAKINGS_MAX {
            let written = self
                .try_to_regenerate_certificate(caller, &regenerate)
                .await?;
            if let Some(written) = written {
                return Ok(written);
            }
        }
        Err(Failure::Contended)
    }

    /// `None` if the CA was changed concurrently.
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
        let current = CurrentVersions::new(current);
        let base = current.in_use.ok_or_else(|| {
            Failure::NotRegeneratable("its only version is transitional".to_owned())
        })?;
        // Checked here to avoid generating an unused key, and again when the version is added.
        if regenerate.is_transitional && current.transitional.is_some() {
            return Err(Failure::TransitionalExists);
        }
        let generator = self.generator(caller, &base.credential_type)?;
        let base = self.open(&permit, base).await?;
        let parameters = self.parameters_of(&base, generator.as_ref()).await?;
        let parameters = changed(parameters, regenerate, generator.as_ref()).await?;
        let effective = self
            .certificate_settings
            .apply(&base.stored.credential_type, parameters);
        let authority = match named_issuer(&effective.parameters, generator.as_ref()) {
            // In this use case, the CA that signed before signs again without a permission on it.
            Some(name) => {
                let permit = permit.extended_to(Operation::Read, &name);
                let transitional_parent = regenerate.transitional_parent;
                Some(self.authority_in_use(&permit, transitional_parent).await?)
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
        draft.is_transitional = regenerate.is_transitional;
        draft.content.metadata.clone_from(&regenerate.metadata);
        let appended = self
            .append_to_certificate(&permit, draft, certificate_id)
            .await?;
        appended
            .map(|version| {
                Ok(written_answer(
                    self.presented(&permit, version)?,
                    &effective,
                ))
            })
            .transpose()
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
    // A certificate that was set keeps its duration, even if no request may have it. So the plugin must not see it.
    let kept_duration = match regenerate.duration {
        Some(duration) => {
            parameters.insert(DURATION, duration.into());
            None
        }
        None => parameters.remove(DURATION),
    };
    let mut parameters = asked::normalize(generator, &parameters).await?;
    if let Some(duration) = kept_duration {
        parameters.insert(DURATION, duration);
    }
    Ok(parameters)
}

const KEY_LENGTH: &str = "key_length";
