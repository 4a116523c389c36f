//! Generation parameters: as requested, their canonical form, the check of a plugin's normalized parameters against the request, and
//! the comparison of a stored version with a request.
//!
//! The limits of an issuer come from the caller, or from a certificate that the host reads itself. A guest's parameters must not
//! name another CA, or other inputs, and must not exceed these limits for CA certificates, duration and signing usages.
//!
//! A release of a plugin may add a parameter with a default, or remove a parameter. So stored parameters of another release
//! are normalized again before they are compared with a request or used to generate a value.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    Secret, UseCaseError,
    certificate::{CertificateFacts, DURATION_DAYS_MAX, SigningUsages},
    credential::{CredentialName, CredentialType, CredentialVersion, LookupName, Parameters},
    ports::{CertificateError, Certificates, Generator, PluginCallError, PluginFaultError},
};

/// The parameters of a request: each is JSON text, as the caller wrote it.
///
/// The generator parses them: whether `1.50` is a number or the text of a string depends on its schema.
#[derive(Clone, Default)]
pub struct RequestedParameters(BTreeMap<String, String>);

impl RequestedParameters {
    /// Adds a parameter, or replaces the parameter of this name.
    pub fn insert(&mut self, name: &str, json: String) {
        self.0.insert(name.to_owned(), json);
    }

    /// Returns the name and the JSON text of each parameter.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let parameters = self.0.iter();
        parameters.map(|(name, json)| (name.as_str(), json.as_str()))
    }
}

impl FromIterator<(String, String)> for RequestedParameters {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(parameters: I) -> Self {
        Self(parameters.into_iter().collect())
    }
}

impl From<Map<String, Value>> for RequestedParameters {
    fn from(parameters: Map<String, Value>) -> Self {
        let parameters = parameters.into_iter();
        parameters
            .map(|(name, value)| (name, value.to_string()))
            .collect()
    }
}

impl std::fmt::Debug for RequestedParameters {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("RequestedParameters(redacted)")
    }
}

/// The parameter that requests a CA certificate.
pub(super) const IS_CA: &str = "is_ca";

/// The parameter for the duration of the certificate, in days.
pub(super) const DURATION: &str = "duration";

pub(super) const COMMON_NAME: &str = "common_name";

pub(super) const SUBJECT: [&str; 6] = [
    COMMON_NAME,
    "organization",
    "organization_unit",
    "locality",
    "state",
    "country",
];

pub(super) const ALTERNATIVE_NAMES: &str = "alternative_names";

const KEY_USAGE: &str = "key_usage";
const EXTENDED_KEY_USAGE: &str = "extended_key_usage";

/// Returns the canonical form of the parameters in a request to generate a credential. The plugin gets the names of the issuer
/// and the inputs in canonical form.
pub async fn canonical_parameters(
    credential_type: &CredentialType,
    requested: Option<&RequestedParameters>,
    generator: &dyn Generator,
) -> Result<Parameters, UseCaseError> {
    let mut parameters = match requested {
        Some(parameters) => generator.requested(parameters)?,
        None if credential_type.is_certificate() => {
            return Err(UseCaseError::ParametersMissing(credential_type.clone()));
        }
        None => Parameters::default(),
    };
    let mut read_only = generator.read_only_parameters().iter();
    if let Some(name) = read_only.find(|name| parameters.field(name).is_some()) {
        return Err(UseCaseError::parameter_refused(name, "is read-only"));
    }
    parameters = parameters.with_canonical_inputs(generator.input_parameters());
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
    normalize(generator, parameters).await
}

/// Returns the canonical form of requested parameters.
///
/// # Errors
/// If the plugin refuses or fails, or its parameters exceed the request.
pub(super) async fn normalize(
    generator: &dyn Generator,
    requested: Parameters,
) -> Result<Parameters, UseCaseError> {
    let input_parameters = generator.input_parameters();
    // Limits the size of the copy that is kept while the call waits.
    requested
        .named_inputs(input_parameters)
        .map_err(PluginCallError::ParametersRefused)?;
    let inputs = requested
        .clone()
        .retain(|name| input_parameters.iter().any(|input| input == name));
    let Some(issuer_parameter) = generator.issuer_parameter() else {
        let normalized = generator.normalize(requested).await?;
        let has_same_inputs = normalized.has_same_inputs(&inputs, input_parameters);
        return has_same_inputs
            .then_some(normalized)
            .ok_or_else(|| malformed(generator));
    };
    let issuer = requested.text(issuer_parameter).map(Value::from);
    let limits = Limits {
        // The host converts text only if the plugin's schema declares a type.
        may_be_authority: requested.is_true(IS_CA) || requested.text(IS_CA) == Some("true"),
        signing_usages: signing_usages(&requested),
        duration_days_max: requested_duration_days(&requested),
    };
    let normalized = generator.normalize(requested).await?;
    let has_same_issuer = normalized.field(issuer_parameter) == issuer.as_ref();
    if has_same_issuer && limits.include(&normalized) {
        Ok(normalized)
    } else {
        Err(malformed(generator))
    }
}

/// Returns the name of the CA in the parameters, if there is one.
pub(super) fn named_issuer(
    parameters: &Parameters,
    generator: &dyn Generator,
) -> Option<LookupName> {
    let name = parameters.text(generator.issuer_parameter()?)?;
    Some(LookupName::new(name))
}

/// Returns recovered parameters in which stored values replace the parameters that limit the issuer.
pub(super) fn as_stored(
    mut recovered: Parameters,
    stored: &Parameters,
    issuer_parameter: &str,
) -> Parameters {
    for name in [
        issuer_parameter,
        COMMON_NAME,
        IS_CA,
        DURATION,
        KEY_USAGE,
        EXTENDED_KEY_USAGE,
    ] {
        match stored.field(name) {
            Some(value) => recovered.insert(name, value.clone()),
            None => drop(recovered.remove(name)),
        }
    }
    recovered
}

/// Returns the parameters recovered from a certificate that was set, with the name of the CA that signed it, unless it is
/// self-signed. `limits` are the host's facts about the certificate.
///
/// # Errors
/// If the parameters exceed the certificate, or the signer is unknown, so that the certificate can't be regenerated.
pub(super) fn as_set(
    mut recovered: Parameters,
    limits: &Limits,
    signer: Option<&CredentialName>,
    generator: &dyn Generator,
    issuer_parameter: &str,
) -> Result<Parameters, UseCaseError> {
    if !limits.include(&recovered) {
        return Err(malformed(generator));
    }
    let is_self_signed = recovered.is_true(SELF_SIGN);
    if let Some(signer) = signer {
        recovered.insert(issuer_parameter, Value::String(signer.to_string()));
        // The recorded signer takes precedence, because a plugin can't verify every kind of signature.
        if is_self_signed {
            recovered.insert(SELF_SIGN, Value::Bool(false));
        }
    } else {
        recovered.remove(issuer_parameter);
        if !is_self_signed {
            let reason = "it was set, and the name of the CA that signed it is unknown; set it again with ca_name";
            return Err(UseCaseError::NotRegeneratable(reason.to_owned()));
        }
    }
    Ok(recovered)
}

pub(super) fn signing_usages(parameters: &Parameters) -> SigningUsages {
    let names = |parameter, usage| {
        let usages = parameters.field(parameter).and_then(Value::as_array);
        usages.is_some_and(|usages| usages.iter().any(|name| name == usage))
    };
    SigningUsages {
        certificates: names(KEY_USAGE, "key_cert_sign"),
        revocation_lists: names(KEY_USAGE, "crl_sign"),
        ocsp_responses: names(EXTENDED_KEY_USAGE, "ocsp_signing"),
    }
}

/// Returns whether the claimed usages of a certificate exceed the allowed ones. Without usages, a certificate allows all.
pub(super) fn usages_exceed(claimed: &Parameters, allowed: &Parameters) -> bool {
    [KEY_USAGE, EXTENDED_KEY_USAGE].iter().any(|name| {
        let [claimed, allowed] = [claimed, allowed].map(|parameters| {
            let usages = parameters.field(name).and_then(Value::as_array);
            usages.map_or(&[][..], Vec::as_slice)
        });
        let is_within = || claimed.iter().all(|usage| allowed.contains(usage));
        !allowed.is_empty() && (claimed.is_empty() || !is_within())
    })
}

pub(super) struct Limits {
    pub(super) may_be_authority: bool,
    pub(super) signing_usages: SigningUsages,
    pub(super) duration_days_max: u64,
}

impl Limits {
    /// Returns the limits of parameters that describe a certificate.
    pub(super) fn of_certificate(
        certificates: &dyn Certificates,
        facts: &CertificateFacts,
        certificate: &str,
    ) -> Result<Self, CertificateError> {
        let issuance = certificates.issuance_facts(certificate)?;
        Ok(Self {
            may_be_authority: facts.is_certificate_authority,
            signing_usages: issuance.signing_usages,
            duration_days_max: u64::from(issuance.duration_days),
        })
    }

    pub(super) fn include(&self, parameters: &Parameters) -> bool {
        let usages = self
            .signing_usages
            .with_those_of_authorities(self.may_be_authority);
        (self.may_be_authority || !parameters.is_true(IS_CA))
            && signing_usages(parameters).is_within(usages)
            && duration_days(parameters) <= self.duration_days_max
    }
}

/// Returns the maximum duration of a certificate with these parameters, in days. If they contain no number, it is
/// [`DURATION_DAYS_MAX`].
pub(super) fn duration_days(parameters: &Parameters) -> u64 {
    let duration = parameters.field(DURATION).and_then(Value::as_u64);
    duration.unwrap_or(u64::from(DURATION_DAYS_MAX))
}

/// Returns the duration that a request allows, in days. It may be text, if the plugin's schema declares text.
fn requested_duration_days(requested: &Parameters) -> u64 {
    match requested.field(DURATION) {
        None => u64::from(DURATION_DAYS_MAX),
        Some(Value::String(text)) => text.parse().unwrap_or_default(),
        Some(other) => other.as_u64().unwrap_or_default(),
    }
}

fn malformed(generator: &dyn Generator) -> UseCaseError {
    UseCaseError::Plugin(PluginCallError::Faulted {
        plugin: generator.identity().name.clone(),
        fault: PluginFaultError::OutputMalformed,
    })
}

const SELF_SIGN: &str = "self_sign";

/// The parts of a stored version that determine whether converge keeps it, and how it is regenerated.
#[derive(Clone, Copy)]
pub struct BaseVersion<'a> {
    /// The credential's type.
    pub credential_type: &'a CredentialType,
    /// The value, as JSON text.
    pub value: &'a Secret,
    /// The canonical parameters; `None` if the value was set without provenance.
    pub parameters: Option<&'a Parameters>,
    /// The digest of the component that generated the value on this server; `None` if it was set.
    pub generated_by: Option<&'a str>,
}

impl<'a> BaseVersion<'a> {
    /// Returns a version with its parsed parameters.
    pub(super) fn of(version: &'a CredentialVersion, parameters: Option<&'a Parameters>) -> Self {
        // An import names a component, but the component that was configured at the import normalized the parameters.
        let attributes = &version.attributes;
        let is_generated = attributes.is_generated == Some(true);
        let provenance = attributes.provenance.as_ref();
        let provenance = provenance.filter(|_| is_generated);
        Self {
            credential_type: &version.credential_type,
            value: &version.content.value,
            parameters,
            generated_by: provenance.map(|plugin| plugin.digest.as_str()),
        }
    }
}

/// Returns whether a version was generated from these canonical parameters or, if it was set, could have been. If so, a
/// converging request keeps it.
pub async fn is_generated_from(
    version: BaseVersion<'_>,
    parameters: &Parameters,
    generator: &dyn Generator,
) -> Result<bool, UseCaseError> {
    // Stored parameters name the issuer, unlike parameters that are recovered from the value.
    if let Some(stored) = version.parameters
        && named_issuer(stored, generator) != named_issuer(parameters, generator)
    {
        return Ok(false);
    }
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

/// Returns the stored parameters of a version as the configured plugin would store them; `None` if the value was set.
///
/// Calls the guest only if another component generated the version.
///
/// # Errors
/// [`PluginCallError::ParametersRefused`] if the configured plugin does not accept one of the parameters; or if the guest fails.
pub(super) async fn current_parameters(
    version: BaseVersion<'_>,
    generator: &dyn Generator,
) -> Result<Option<Parameters>, PluginCallError> {
    let Some(stored) = version.parameters else {
        return Ok(None);
    };
    if is_generated_by(version, generator) {
        return Ok(Some(stored.clone()));
    }
    normalized(stored, version.credential_type, generator)
        .await
        .map(Some)
}

/// Like [`current_parameters`], for comparisons: omits parameters that are not in the configured plugin's schema, because no
/// request can contain them. Also returns `None` if the plugin refuses the other parameters.
async fn comparable_parameters(
    version: BaseVersion<'_>,
    generator: &dyn Generator,
) -> Result<Option<Parameters>, PluginCallError> {
    let refused = match current_parameters(version, generator).await {
        Err(PluginCallError::ParametersRefused(_)) => version.parameters,
        found => return found,
    };
    let Some(stored) = refused else {
        return Ok(None);
    };
    let known = generator.known_parameters(stored);
    if known == *stored {
        return Ok(None);
    }
    match normalized(&known, version.credential_type, generator).await {
        Ok(parameters) => Ok(Some(parameters)),
        Err(PluginCallError::ParametersRefused(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn is_generated_by(version: BaseVersion<'_>, generator: &dyn Generator) -> bool {
    version.generated_by == Some(generator.identity().digest.as_str())
}

/// Normalizes stored parameters. The issuer, and the parameters that limit it, stay as they were stored.
async fn normalized(
    stored: &Parameters,
    credential_type: &CredentialType,
    generator: &dyn Generator,
) -> Result<Parameters, PluginCallError> {
    let mut given = stored.clone();
    if credential_type.is_certificate() {
        // A certificate that was set may have a duration that is not allowed in a request.
        given.remove(DURATION);
    }
    let normalized = generator.normalize(given).await?;
    let normalized = normalized.with_inputs_of(Some(stored), generator.input_parameters());
    Ok(match generator.issuer_parameter() {
        Some(issuer_parameter) => as_stored(normalized, stored, issuer_parameter),
        None => normalized,
    })
}
