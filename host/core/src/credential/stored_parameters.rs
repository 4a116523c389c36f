//! Converting stored parameters to the canonical form of the configured plugin.
//!
//! A release of a plugin may add a parameter with a default, or remove a parameter. So stored parameters of another release
//! are normalized again before they are compared with a request or used to generate a value.

use crate::{
    credential::{
        CredentialType, Parameters,
        asked::{self, DURATION},
        service::OpenVersion,
    },
    ports::{Generator, PluginFailure},
};

/// Returns the stored parameters of a version as the configured plugin would store them; `None` if the value was set.
///
/// Calls the guest only if another component generated the version.
///
/// # Errors
/// [`PluginFailure::ParametersRefused`] if the configured plugin does not accept one of them; or if the guest fails.
pub(super) async fn current_parameters(
    version: &OpenVersion,
    generator: &dyn Generator,
) -> Result<Option<Parameters>, PluginFailure> {
    let Some(stored) = &version.content.parameters else {
        return Ok(None);
    };
    if is_made_by(version, generator) {
        return Ok(Some(stored.clone()));
    }
    let credential_type = &version.stored.credential_type;
    normalized(stored, credential_type, generator)
        .await
        .map(Some)
}

/// Like [`current_parameters`], for comparisons: omits parameters that the configured plugin does not know, since no request
/// can name them. Also returns `None` if the plugin refuses the others.
///
/// # Errors
/// If the guest fails.
pub(super) async fn comparable_parameters(
    version: &OpenVersion,
    generator: &dyn Generator,
) -> Result<Option<Parameters>, PluginFailure> {
    let refused = match current_parameters(version, generator).await {
        Err(PluginFailure::ParametersRefused(_)) => version.content.parameters.as_ref(),
        found => return found,
    };
    let Some(stored) = refused else {
        return Ok(None);
    };
    let known = generator.known_parameters(stored);
    if known == *stored {
        return Ok(None);
    }
    let credential_type = &version.stored.credential_type;
    match normalized(&known, credential_type, generator).await {
        Ok(parameters) => Ok(Some(parameters)),
        Err(PluginFailure::ParametersRefused(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Returns whether the configured component generated a version.
pub(super) fn is_made_by(version: &OpenVersion, generator: &dyn Generator) -> bool {
    let provenance = version.stored.provenance.as_ref();
    provenance.is_some_and(|plugin| plugin.digest == generator.identity().digest)
}

/// Normalizes stored parameters. The issuer, and the parameters that limit it, stay as they were stored.
async fn normalized(
    stored: &Parameters,
    credential_type: &CredentialType,
    generator: &dyn Generator,
) -> Result<Parameters, PluginFailure> {
    let mut given = stored.clone();
    if credential_type.is_certificate() {
        // A certificate that was set may have a duration that no request may have.
        given.remove(DURATION);
    }
    let normalized = generator.normalize(&given).await?;
    Ok(match generator.issuer_parameter() {
        Some(issuer_parameter) => asked::as_stored(normalized, stored, issuer_parameter),
        None => normalized,
    })
}
