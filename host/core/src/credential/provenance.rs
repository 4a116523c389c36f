//! The provenance of a value: the plugin that generated it, and the parameters.
//!
//! A caller who sets a value can import its provenance from another server. This is a claim of the caller. So its parameters
//! get the checks of a request to generate, and the version is stored as set, not generated.

use crate::{
    Failure,
    authorization::Caller,
    credential::{
        CredentialName, CredentialType, Credentials, Parameters, PluginDigest, PluginIdentity,
        RequestedParameters, draft::named_issuer, generate::canonical_parameters,
        version_store::Draft,
    },
    ports::{PluginCallError, Violation},
};

/// The provenance of a value that a caller sets, according to this caller.
#[derive(Debug)]
pub struct ImportedProvenance {
    /// The digest of the component that generated the value.
    pub generated_by: PluginDigest,
    /// The parameters, as another server returned them.
    pub parameters: RequestedParameters,
}

/// An imported provenance whose parameters the caller could have used to generate the credential on this server.
pub(super) struct CheckedProvenance {
    plugin: PluginIdentity,
    parameters: Parameters,
    /// The CA that the parameters name.
    issuer: Option<CredentialName>,
    issuer_parameter: Option<String>,
}

impl Credentials {
    /// Checks an imported provenance like a request to generate the credential, including the permission to use the CA.
    ///
    /// # Errors
    /// If the type can't be generated, the configured plugin does not accept the parameters, or the CA can't be used.
    pub(super) async fn check_provenance(
        &self,
        caller: &Caller,
        credential_type: &CredentialType,
        imported: Option<ImportedProvenance>,
    ) -> Result<Option<CheckedProvenance>, Failure> {
        let Some(imported) = imported else {
            return Ok(None);
        };
        if credential_type.is_set_only() {
            return Err(Failure::TypeNotGeneratable(credential_type.clone()));
        }
        let generator = self.generator(caller, credential_type)?;
        let requested = Some(&imported.parameters);
        let parameters =
            canonical_parameters(credential_type, requested, generator.as_ref()).await?;
        let issuer = match named_issuer(&parameters, generator.as_ref()) {
            Some(name) => {
                let permit = self.permit_issuer(caller, &name).await?;
                let authority = self.store.checked_authority(&permit).await?.active;
                Some(authority.ok_or(Failure::IssuerNotFound)?.name)
            }
            None => None,
        };
        Ok(Some(CheckedProvenance {
            plugin: PluginIdentity::of_digest(imported.generated_by),
            parameters,
            issuer,
            issuer_parameter: generator.issuer_parameter().map(str::to_owned),
        }))
    }
}

impl CheckedProvenance {
    /// Adds the provenance to the draft of a set value.
    ///
    /// # Errors
    /// If the value is a certificate that another CA signed.
    pub(super) fn add_to(&self, draft: &mut Draft) -> Result<(), Failure> {
        if draft.credential_type.is_certificate() {
            let signer = draft
                .attributes
                .signed_by
                .as_ref()
                .map(CredentialName::lookup);
            let signer = signer.filter(|signer| *signer != draft.name.lookup());
            if signer != self.issuer.as_ref().map(CredentialName::lookup) {
                let violation = Violation {
                    field: self.issuer_parameter.clone(),
                    rule: "must equal the ca_name of the value".to_owned(),
                };
                return Err(PluginCallError::ParametersRefused(violation).into());
            }
        } else {
            draft.attributes.signed_by.clone_from(&self.issuer);
        }
        draft.content.parameters = Some(self.parameters.clone());
        draft.attributes.provenance = Some(self.plugin.clone());
        Ok(())
    }
}
