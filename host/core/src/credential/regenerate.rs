//! Regenerating a credential from the parameters of a stored version, or a certificate by its id: with the transitional flag,
//! signed by a transitional CA version, or with another key length or duration.

use std::iter;

use uuid::Uuid;
use zeroize::Zeroizing;

use crate::{
    Secret, UseCaseError,
    authorization::{Authorization, Caller, Permit},
    certificate::{DURATION_DAYS_MAX, SigningUsages},
    credential::{
        CredentialName, CredentialType, CredentialVersion, LookupName, Metadata, Parameters,
        PluginIdentity, StoredVersion, VersionAttributes, VersionStore, Written,
        certificates::permit_to_write,
        child_versions::ChildVersions,
        draft::{EffectiveParameters, Generation},
        generate::{GENERATE_ATTEMPTS_MAX, written},
        inputs::{PermittedInput, named_inputs},
        parameters::{
            BaseVersion, DURATION, Limits, as_set, as_stored, current_parameters, named_issuer,
            normalize,
        },
        version::{fields, take_text},
        version_store::{
            ActiveVersions, Draft, StoredCertificate, TransitionalParent, WRITE_ATTEMPTS_MAX,
        },
    },
    permission::Operation,
    ports::{AppendCondition, CredentialKey, Generator, PluginCallError, VersionSelection},
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

/// Regenerates credentials.
#[derive(Clone)]
pub struct RegenerateCredentials {
    pub(super) authorization: Authorization,
    pub(super) store: VersionStore,
    pub(super) generation: Generation,
    pub(super) children: ChildVersions,
}

impl RegenerateCredentials {
    /// Regenerates a credential: adds a version generated from the parameters of the latest version, transitional or not.
    ///
    /// # Errors
    /// [`UseCaseError::NotFound`]; [`UseCaseError::TypeNotGeneratable`]; [`UseCaseError::NotRegeneratable`] if the value was set
    /// and lacks required information; or if the plugin fails.
    pub async fn credential(
        &self,
        caller: &Caller,
        regenerate: Regenerate,
    ) -> Result<Written, UseCaseError> {
        let permitting = self
            .authorization
            .permit(caller, Operation::Write, &regenerate.name);
        let permit = permitting.await?;
        let mut earlier = EarlierAttempts::default();
        for _ in 0..GENERATE_ATTEMPTS_MAX {
            let attempt = self.attempt(caller, &permit, &regenerate, &mut earlier);
            if let Some(written) = attempt.await? {
                return Ok(written);
            }
        }
        Err(UseCaseError::Contended)
    }

    /// Attempts to regenerate a credential. Returns `None` if the credential, the CA or an input was changed concurrently.
    async fn attempt(
        &self,
        caller: &Caller,
        permit: &Permit<'_>,
        regenerate: &Regenerate,
        earlier: &mut EarlierAttempts,
    ) -> Result<Option<Written>, UseCaseError> {
        let newest = VersionSelection::Newest(1);
        let newest = self
            .store
            .repository
            .versions_of(CredentialKey::Name(&regenerate.name), newest)
            .await?;
        let newest = newest.into_iter().next().ok_or(UseCaseError::NotFound)?;
        let credential_id = earlier.credential_id.get_or_insert(newest.credential_id);
        if *credential_id != newest.credential_id {
            return Err(UseCaseError::NotFound);
        }
        let credential_type = &newest.credential_type;
        if credential_type.is_set_only() {
            return Err(UseCaseError::TypeNotGeneratable(credential_type.clone()));
        }
        let generator = self.generation.types.generator(caller, credential_type)?;
        let generator = generator.as_ref();
        let base = self.store.open(permit, newest).await?;
        let stored = reserved_parameters(caller, &base)?;
        let effective = self
            .effective_parameters(&base, stored.as_ref(), generator)
            .await?;
        caller.reserve_parameters(effective.parameters.memory_bytes())?;
        let issuer = match issuer_name(&base, &effective.parameters, generator) {
            // If the caller may not read the CA, the error is the same as for a missing credential.
            Some(name) => {
                let permitting = self.authorization.permit(caller, Operation::Read, &name);
                Some((permitting.await?, self.store.active_versions(&name).await?))
            }
            None => None,
        };
        let (issuer_permit, current) = issuer.unzip();
        let issuer = issuer_permit.as_ref().zip(current);
        let parent = TransitionalParent::MayNotSign;
        let usable = |draft: &Draft| draft.is_of(&base, &effective.parameters, generator);
        let mut draft = match earlier.unused_draft.take().filter(usable) {
            Some(draft) => draft,
            None => {
                self.draft(caller, &base, &effective, generator, issuer, parent)
                    .await?
            }
        };
        let permits = iter::once(permit).chain(&issuer_permit);
        self.authorization.confirm(caller, permits).await?;
        draft.content.metadata.clone_from(&regenerate.metadata);
        let condition = AppendCondition::NewestIs(Some(base.id));
        match self.store.append(permit, draft, condition).await? {
            Ok(version) => {
                let version = self.store.render(permit, version)?;
                Ok(Some(written(version, Some(&effective))))
            }
            Err(unused) => {
                earlier.unused_draft = unused;
                Ok(None)
            }
        }
    }

    /// Generates a new value for a credential. The caller must be allowed to read the inputs.
    async fn draft(
        &self,
        caller: &Caller,
        base: &CredentialVersion,
        effective: &EffectiveParameters,
        generator: &dyn Generator,
        issuer: Option<(&Permit<'_>, ActiveVersions)>,
        transitional_parent: TransitionalParent,
    ) -> Result<Draft, UseCaseError> {
        let authority = match issuer {
            Some((permit, current)) => {
                let completing = self.store.authority(permit, current, transitional_parent);
                Some(completing.await?)
            }
            None => None,
        };
        let (parameters, authority) = (&effective.parameters, authority.as_ref());
        let named = named_inputs(&base.name.lookup(), parameters, generator)?;
        let permitted = PermittedInput::request(&self.authorization, caller, named).await?;
        let active = self.store.active_inputs(&permitted).await?;
        // Without inputs, the caller has chosen nothing. A later release of the plugin may read a parameter as an input.
        let chosen_by = if active.is_empty() {
            base.content.chosen_by.as_ref()
        } else {
            Some(caller.actor())
        };
        let inputs = self.store.open_inputs(active, chosen_by).await?;
        let of = (&base.name, &base.credential_type);
        let generating = self
            .generation
            .draft(of, parameters, generator, authority, inputs);
        let draft = generating.await?;
        let permits = permitted.iter().map(PermittedInput::permit);
        self.authorization.confirm(caller, permits).await?;
        Ok(draft)
    }

    /// Returns the parameters to regenerate a stored version, with the current settings applied.
    pub(super) async fn effective_parameters(
        &self,
        base: &CredentialVersion,
        stored: Option<&Parameters>,
        generator: &dyn Generator,
    ) -> Result<EffectiveParameters, UseCaseError> {
        let parameters = self.parameters(base, stored, generator).await?;
        Ok(self
            .generation
            .settings
            .apply(&base.credential_type, parameters))
    }

    /// Returns the canonical parameters to regenerate a stored version.
    async fn parameters(
        &self,
        base: &CredentialVersion,
        stored: Option<&Parameters>,
        generator: &dyn Generator,
    ) -> Result<Parameters, UseCaseError> {
        let mut parameters =
            regeneration_parameters(BaseVersion::of(base, stored), generator).await?;
        if let Some(key_length) = self.private_key_length(base, &parameters) {
            parameters.insert(KEY_LENGTH, key_length.into());
        }
        let (Some(issuer_parameter), None) = (generator.issuer_parameter(), stored) else {
            return Ok(parameters);
        };
        let attributes = &base.attributes;
        let signer = signer_of(&base.name, attributes);
        let facts = attributes.certificate.as_ref();
        let limits = match facts.filter(|_| base.credential_type.is_certificate()) {
            Some(facts) => {
                let value = StoredCertificate::parse(&base.content.value)?;
                let certificate = value
                    .certificate
                    .ok_or(UseCaseError::StoredValueMalformed)?;
                let certificates = self.generation.certificates.as_ref();
                Limits::of_certificate(certificates, facts, &certificate)
                    .map_err(|_| UseCaseError::StoredValueMalformed)?
            }
            None => Limits {
                may_be_authority: false,
                signing_usages: SigningUsages::default(),
                duration_days_max: u64::from(DURATION_DAYS_MAX),
            },
        };
        as_set(parameters, &limits, signer, generator, issuer_parameter)
    }

    /// Returns the key length for a key pair that was set and whose private key is longer than the recovered length. Plugins get
    /// only the public key, which may be missing.
    fn private_key_length(&self, base: &CredentialVersion, recovered: &Parameters) -> Option<u32> {
        let is_key_pair =
            [CredentialType::RSA, CredentialType::SSH].contains(&base.credential_type.as_str());
        if !is_key_pair || base.content.parameters.is_some() {
            return None;
        }
        let mut fields = fields(&base.content.value).ok()?;
        let private_key = take_text(&mut fields, "private_key").ok()??;
        let bits = self
            .generation
            .certificates
            .rsa_bits(&Zeroizing::new(private_key))?;
        let recovered = recovered.field(KEY_LENGTH)?.as_u64()?;
        // These lengths can be generated.
        let covering = [2048, 3072].into_iter().find(|length| bits <= *length);
        let key_length = covering.unwrap_or(4096);
        (u64::from(key_length) > recovered).then_some(key_length)
    }

    /// Regenerates a certificate: adds a version generated from the parameters of the active version.
    ///
    /// # Errors
    /// [`UseCaseError::NotFound`]; [`UseCaseError::NotRegeneratable`] if its only version is transitional, or was set and lacks
    /// required information; [`UseCaseError::TransitionalExists`]; or if the plugin refuses the caller's changes, or fails.
    pub async fn certificate(
        &self,
        caller: &Caller,
        regenerate: RegenerateCertificate,
    ) -> Result<Written, UseCaseError> {
        regenerate.check_ranges()?;
        for _ in 0..WRITE_ATTEMPTS_MAX {
            if let Some(written) = self.attempt_certificate(caller, &regenerate).await? {
                return Ok(written);
            }
        }
        Err(UseCaseError::Contended)
    }

    /// Attempts to regenerate a certificate. Returns `None` if it or its CA was changed concurrently.
    async fn attempt_certificate(
        &self,
        caller: &Caller,
        regenerate: &RegenerateCertificate,
    ) -> Result<Option<Written>, UseCaseError> {
        let id = regenerate.certificate_id;
        let (authorization, current) = (&self.authorization, VersionSelection::Current);
        let (permit, current) =
            permit_to_write(authorization, &self.store, caller, id, current).await?;
        let current = ActiveVersions::new(current);
        let read = current.as_read(permit.name());
        let base = current.active.ok_or_else(|| {
            UseCaseError::NotRegeneratable(
                "its only version is transitional; clear its transitional flag first".to_owned(),
            )
        })?;
        // Checked here to avoid generating an unused key, and again when the version is added.
        if regenerate.is_transitional && current.transitional.is_some() {
            return Err(UseCaseError::TransitionalExists);
        }
        let generator = self
            .generation
            .types
            .generator(caller, &base.credential_type)?;
        let generator = generator.as_ref();
        let base = self.store.open(&permit, base).await?;
        let stored = reserved_parameters(caller, &base)?;
        let parameters = self.parameters(&base, stored.as_ref(), generator).await?;
        let parameters = changed(parameters, regenerate, generator).await?;
        let effective = self
            .generation
            .settings
            .apply(&base.credential_type, parameters);
        caller.reserve_parameters(effective.parameters.memory_bytes())?;
        let issuer = match issuer_name(&base, &effective.parameters, generator) {
            Some(name) => Some(self.issuer(caller, &permit, &base, &name).await?),
            None => None,
        };
        let parent = regenerate.transitional_parent;
        let (issuer_permit, current) = issuer.unzip();
        let issuer = issuer_permit.as_ref().zip(current);
        let drafting = self.draft(caller, &base, &effective, generator, issuer, parent);
        let mut draft = match drafting.await {
            // The caller may be allowed to use the CA, but not to read its name.
            Err(UseCaseError::IssuerUnusable(name, cause))
                if !authorization
                    .may(caller.actor(), Operation::Read, name.as_str())
                    .await? =>
            {
                let reason = format!("the CA that signed it can't sign: its {cause}");
                return Err(UseCaseError::NotRegeneratable(reason));
            }
            drafted => drafted?,
        };
        draft.attributes.is_transitional = regenerate.is_transitional;
        draft.content.metadata.clone_from(&regenerate.metadata);
        draft.unchanged.push(read);
        let permits = (&permit, issuer_permit.as_ref());
        let appended = self
            .children
            .append_to_certificate(caller, permits, draft, id)
            .await?;
        let Some(version) = appended else {
            return Ok(None);
        };
        let version = self.store.render(&permit, version)?;
        Ok(Some(written(version, Some(&effective))))
    }

    /// Returns the CA that signs a certificate again, with the permit to use it. If the same CA signed the certificate, the caller
    /// needs no permission on the CA. A CA of the same name may be another credential, created after the signer was deleted.
    async fn issuer<'a>(
        &self,
        caller: &'a Caller,
        permit: &Permit<'a>,
        base: &CredentialVersion,
        name: &LookupName,
    ) -> Result<(Permit<'a>, ActiveVersions), UseCaseError> {
        let current = self.store.active_versions(name).await?;
        let signed_by = base.attributes.issuer.and_then(|issuer| issuer.version_id);
        let signed_by = match signed_by {
            Some(id) => self.store.repository.version_by_id(id).await?,
            None => None,
        };
        let has_signed = |ca: &StoredVersion| {
            let signed_by = signed_by.as_ref();
            signed_by.is_some_and(|signer| signer.credential_id == ca.credential_id)
        };
        let permit = if current.active.as_ref().is_some_and(has_signed) {
            permit.extended_to(Operation::Read, name)
        } else {
            self.authorization.permit_issuer(caller, name).await?
        };
        Ok((permit, current))
    }
}

/// Parses the parameters of a stored version. Reserves memory for them and the copy that is normalized.
fn reserved_parameters(
    caller: &Caller,
    base: &CredentialVersion,
) -> Result<Option<Parameters>, UseCaseError> {
    let stored = base.content.parsed_parameters()?;
    caller.reserve_parameters(2 * stored.as_ref().map_or(0, Parameters::memory_bytes))?;
    Ok(stored)
}

/// The results of the earlier attempts of a request to regenerate a credential.
#[derive(Default)]
struct EarlierAttempts {
    /// The credential: one that was recreated in the meantime is not regenerated.
    credential_id: Option<Uuid>,
    /// A draft that was not written. An attempt uses it if it would generate it from the same parameters.
    unused_draft: Option<Draft>,
}

impl Draft {
    /// Returns whether regenerating a version would yield this draft, apart from the random value. A draft with inputs is never
    /// used again: the caller must be allowed to read them. That its CA is unchanged is checked when it is written.
    fn is_of(
        &self,
        base: &CredentialVersion,
        parameters: &Parameters,
        generator: &dyn Generator,
    ) -> bool {
        let content = &self.content;
        content.inputs.is_empty()
            && content.parameters == Some(Secret::new(parameters.to_json()))
            && content.chosen_by == base.content.chosen_by
            && self.attributes.provenance.as_ref() == Some(generator.identity())
    }
}

/// Returns the canonical parameters to regenerate a stored version. For a value that was set, these are the recovered
/// parameters, which may exceed the limits of the issuer.
///
/// # Errors
/// [`UseCaseError::NotRegeneratable`], or if the plugin fails.
pub async fn regeneration_parameters(
    base: BaseVersion<'_>,
    generator: &dyn Generator,
) -> Result<Parameters, UseCaseError> {
    let not_regeneratable = UseCaseError::NotRegeneratable;
    let stored = match current_parameters(base, generator).await {
        // Another release of the plugin generated the version.
        Err(PluginCallError::ParametersRefused(violation)) => {
            let PluginIdentity { name, version, .. } = generator.identity();
            return Err(not_regeneratable(format!(
                "the plugin {name} {version} does not accept the stored parameters: {violation}; generate the \
                 credential again in mode overwrite, with parameters that the plugin accepts"
            )));
        }
        stored => stored?,
    };
    let recovered = match generator.recover(stored.as_ref(), base.value).await {
        Ok(Some(recovered)) => recovered.parameters,
        Ok(None) => {
            return Err(not_regeneratable(
                "its value was set, not generated; generate the credential in mode overwrite instead"
                    .to_owned(),
            ));
        }
        Err(PluginCallError::ValueRefused(violation)) => {
            return Err(not_regeneratable(format!(
                "its parameters can't be recovered from the stored value: {violation}; generate the credential in \
                 mode overwrite instead"
            )));
        }
        Err(failure) => return Err(failure.into()),
    };
    // Only callers may name inputs, not plugins, and not the value of a caller who may not read them.
    let recovered = recovered.with_inputs_of(stored.as_ref(), generator.input_parameters());
    Ok(match (generator.issuer_parameter(), &stored) {
        (Some(issuer_parameter), Some(stored)) => as_stored(recovered, stored, issuer_parameter),
        _ => recovered,
    })
}

/// Returns the name of the credential that signed a version, or `None` if the version is self-signed.
///
/// If an older version of the same credential signed it, returns the credential's own name.
pub(super) fn signer_of<'a>(
    name: &CredentialName,
    attributes: &'a VersionAttributes,
) -> Option<&'a CredentialName> {
    let signer = attributes.signed_by.as_ref()?;
    let facts = attributes.certificate.as_ref();
    let has_signed_itself = facts.is_none_or(|facts| facts.is_self_signed);
    (signer.lookup() != name.lookup() || !has_signed_itself).then_some(signer)
}

impl RegenerateCertificate {
    /// Checks the caller's changes without the stored certificate. The plugin checks the key length, because the allowed
    /// lengths depend on the stored key's type.
    fn check_ranges(&self) -> Result<(), UseCaseError> {
        let is_outside =
            |number: Option<i64>, max: u32| number.is_some_and(|n| !(1..=max.into()).contains(&n));
        if is_outside(self.key_length, u32::MAX) {
            return Err(UseCaseError::parameter_refused(
                KEY_LENGTH,
                "must be a positive number of bits, such as 2048",
            ));
        }
        if is_outside(self.duration, DURATION_DAYS_MAX) {
            let rule = format!("must be from 1 to {DURATION_DAYS_MAX} days");
            return Err(UseCaseError::parameter_refused(DURATION, &rule));
        }
        Ok(())
    }
}

/// Returns the name of the CA in the parameters. If this CA signed the version, the name has its stored casing instead of that
/// of an earlier request.
fn issuer_name(
    base: &CredentialVersion,
    parameters: &Parameters,
    generator: &dyn Generator,
) -> Option<LookupName> {
    let named = named_issuer(parameters, generator)?;
    let signer = base.attributes.signed_by.as_ref();
    let signer = signer.filter(|signer| named.is(signer));
    Some(signer.map_or(named, CredentialName::lookup))
}

/// Applies the caller's changes to the parameters. The plugin checks them as for a generate request.
async fn changed(
    mut parameters: Parameters,
    regenerate: &RegenerateCertificate,
    generator: &dyn Generator,
) -> Result<Parameters, UseCaseError> {
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
    let mut parameters = normalize(generator, parameters).await?;
    if let Some(duration) = kept_duration {
        parameters.insert(DURATION, duration);
    }
    Ok(parameters)
}

const KEY_LENGTH: &str = "key_length";
