//! Regenerating a credential from the parameters of its newest version.

use serde_json::Value;

use crate::{
    Failure,
    certificate::EffectiveParameters,
    credential::{
        CredentialName, Credentials, LookupName, Metadata, Parameters, StoredVersion, Written,
        generate::written_answer, service::OpenVersion,
    },
    ports::{AppendCondition, Generator, PluginFailure, VersionSelection},
};

/// A request to regenerate a credential.
#[derive(Debug)]
pub struct Regenerate {
    /// The credential's name.
    pub name: LookupName,
    /// What to keep beside the new version; nothing is inherited.
    pub metadata: Option<Metadata>,
}

impl Credentials {
    /// Regenerates a credential: adds a version made from the parameters of the newest one, transitional or not.
    ///
    /// # Errors
    /// [`Failure::NotFound`]; [`Failure::NotRegeneratable`] when the value was set and says too little, or its type is
    /// set only; or when the plugin fails.
    pub async fn regenerate(&self, regenerate: Regenerate) -> Result<Written, Failure> {
        let newest = self
            .repository
            .versions_by_name(&regenerate.name, VersionSelection::Newest(1))
            .await?
            .into_iter()
            .next()
            .ok_or(Failure::NotFound)?;
        if newest.credential_type.is_set_only() {
            let reason = format!(
                "credentials of type {} are only set",
                newest.credential_type
            );
            return Err(Failure::NotRegeneratable(reason));
        }
        let generator = self.generator(&newest.credential_type)?;
        let base = self.open(newest)?;
        let effective = self
            .effective_parameters_of(&base, generator.as_ref())
            .await?;
        let mut draft = self
            .make_draft(
                &base.stored.name,
                &base.stored.credential_type,
                &effective.parameters,
                generator.as_ref(),
            )
            .await?;
        draft.content.metadata = regenerate.metadata;
        let version = self.append_open(draft, AppendCondition::Always).await?;
        Ok(written_answer(self.presented(version)?, &effective))
    }

    /// The parameters with which to make a stored version anew: its own, under the settings of today.
    pub(super) async fn effective_parameters_of(
        &self,
        base: &OpenVersion,
        generator: &dyn Generator,
    ) -> Result<EffectiveParameters, Failure> {
        let parameters = parameters_of(base, generator).await?;
        Ok(self
            .certificate_settings
            .apply(&base.stored.credential_type, parameters))
    }
}

/// The canonical parameters with which to make a stored version anew.
pub(super) async fn parameters_of(
    base: &OpenVersion,
    generator: &dyn Generator,
) -> Result<Parameters, Failure> {
    let recovered = match generator
        .recover(base.content.parameters.as_ref(), &base.content.value)
        .await
    {
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
    if base.content.parameters.is_some() {
        return Ok(recovered);
    }
    let mut parameters = recovered;
    if let Some(signer) = signer_of(&base.stored) {
        parameters.insert(issuer_parameter, Value::String(signer.to_string()));
        // A plugin can tell only by the names who signed with an algorithm that it does not know; the host has checked.
        if parameters.is_true("self_sign") {
            parameters.insert("self_sign", Value::Bool(false));
        }
    } else if !parameters.is_true("self_sign") {
        return Err(Failure::NotRegeneratable(
            "it was set, and the authority that signed it is not known by name".to_owned(),
        ));
    }
    Ok(parameters)
}

/// The name of the credential that signed a version; none for a version that signed itself.
///
/// It is the version's own name where an older version of the same credential signed.
pub(super) fn signer_of(version: &StoredVersion) -> Option<&CredentialName> {
    let signer = version.signed_by.as_ref()?;
    let has_signed_itself = version
        .certificate
        .as_ref()
        .is_none_or(|facts| facts.is_self_signed);
    let is_other = signer.lookup() != version.name.lookup();
    (is_other || !has_signed_itself).then_some(signer)
}
