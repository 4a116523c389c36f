//! Generating a value: finding the generator of its type, applying the settings for certificates, creating the issuer, calling the
//! generator, and checking the result.

use std::sync::Arc;

use crate::{
    Secret, UseCaseError,
    authorization::Caller,
    certificate::{CertificateFacts, DURATION_DAYS_MAX, IssuanceRules},
    credential::{
        CredentialName, CredentialType, Lifetime, Parameters, PluginIdentity, VersionAttributes,
        inputs::Inputs,
        parameters::{COMMON_NAME, IS_CA, duration_days, signing_usages},
        version::{Content, fields},
        version_store::{Authority, Draft, StoredCertificate},
    },
    ports::{
        CertificateError, CertificateIssuer, Certificates, Clock, Generator, Generators,
        PluginCallError, PluginFaultError,
    },
};
use chrono::{DateTime, Timelike, Utc};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// The credential types of a server: types that can only be set, and types with a generator.
#[derive(Clone)]
pub struct CredentialTypes {
    pub(super) generators: Arc<dyn Generators>,
}

impl CredentialTypes {
    /// Returns the types: set-only types, then types with a generator in alphabetical order.
    pub fn all(&self) -> Vec<KnownType> {
        let names = self.generators.credential_types();
        let generated = names.iter().filter_map(|credential_type| {
            let generator = self.generators.generator(credential_type)?;
            let description = generator.description().clone();
            Some(KnownType {
                name: credential_type.as_str().to_owned(),
                summary: description.summary,
                plugin: Some(generator.identity().clone()),
                parameters_schema: Some(description.parameters_schema),
                value_schema: description.value_schema,
            })
        });
        KnownType::set_only().into_iter().chain(generated).collect()
    }

    /// Parses the name of a type in any casing.
    pub fn parse(&self, name: &str) -> Result<CredentialType, UseCaseError> {
        CredentialType::parse(name)
            .ok()
            .filter(|parsed| parsed.is_set_only() || self.generators.generator(parsed).is_some())
            .ok_or_else(|| self.unknown())
    }

    /// Returns the generator of a type, for calls on behalf of a caller.
    pub(super) fn generator(
        &self,
        caller: &Caller,
        credential_type: &CredentialType,
    ) -> Result<Arc<dyn Generator>, UseCaseError> {
        let generator = self.generators.generator(credential_type);
        generator
            .map(|generator| generator.for_actor(caller.actor()))
            .ok_or_else(|| self.unknown())
    }

    /// Returns the failure for a type without a generator.
    pub(super) fn unknown(&self) -> UseCaseError {
        let generated = self.generators.credential_types();
        let generated = generated.iter().map(CredentialType::as_str);
        let known = [CredentialType::VALUE, CredentialType::JSON]
            .into_iter()
            .chain(generated);
        UseCaseError::TypeUnknown {
            known: known.map(str::to_owned).collect(),
        }
    }
}

/// A credential type of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownType {
    /// Its name.
    pub name: String,
    /// A one-line summary.
    pub summary: String,
    /// The plugin that generates its values; `None` if values can only be set.
    pub plugin: Option<PluginIdentity>,
    /// The JSON Schema of the parameters, JSON text; `None` if values can only be set.
    pub parameters_schema: Option<String>,
    /// The JSON Schema of its values in responses, JSON text. `writeOnly` properties are secret.
    pub value_schema: String,
}

impl KnownType {
    /// Returns the types whose values can only be set.
    pub fn set_only() -> [Self; 2] {
        [
            (
                CredentialType::VALUE,
                "Text set by callers",
                r#"{"type":"string","minLength":1,"writeOnly":true}"#,
            ),
            (
                CredentialType::JSON,
                "JSON objects set by callers",
                r#"{"type":"object","writeOnly":true}"#,
            ),
        ]
        .map(|(name, summary, value_schema)| Self {
            name: name.to_owned(),
            summary: summary.to_owned(),
            plugin: None,
            parameters_schema: None,
            value_schema: value_schema.to_owned(),
        })
    }
}

/// Server-wide settings for generated certificates.
///
/// They change the canonical parameters before these are compared or stored. So a generate request in mode `converge` keeps a
/// certificate that an equal request generated under the same settings, and regenerates a certificate that was generated under
/// weaker settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CertificateSettings {
    /// The minimum duration of a CA certificate, in days. Shorter durations are raised to it.
    pub authority_duration_days_min: u32,
    /// The minimum duration of a leaf certificate, in days. Shorter durations are raised to it.
    pub leaf_duration_days_min: u32,
    /// Whether a CA requested without key usages gets the usages that RFC 5280 requires: `key_cert_sign` and `crl_sign`.
    pub has_default_authority_key_usages: bool,
    /// Whether `ca` in responses also contains the other trusted CA certificate, after the issuing CA certificate.
    pub concatenates_authorities: bool,
}

/// Canonical parameters with the settings applied.
#[derive(Clone, Debug)]
pub(crate) struct EffectiveParameters {
    pub(crate) parameters: Parameters,
    /// Whether the duration was raised.
    pub(crate) is_duration_overridden: bool,
}

impl CertificateSettings {
    /// Applies the settings to canonical parameters. Has no effect on types other than certificate.
    pub(crate) fn apply(
        self,
        credential_type: &CredentialType,
        mut parameters: Parameters,
    ) -> EffectiveParameters {
        let mut is_duration_overridden = false;
        if credential_type.is_certificate() {
            is_duration_overridden = self.raise_duration(&mut parameters);
            self.add_default_key_usages(&mut parameters);
        }
        EffectiveParameters {
            parameters,
            is_duration_overridden,
        }
    }

    fn raise_duration(self, parameters: &mut Parameters) -> bool {
        let duration_days_min = if parameters.is_true("is_ca") {
            self.authority_duration_days_min
        } else {
            self.leaf_duration_days_min
        };
        let is_shorter = parameters
            .field("duration")
            .and_then(Value::as_u64)
            .is_some_and(|days| days < u64::from(duration_days_min));
        if is_shorter {
            parameters.insert("duration", duration_days_min.into());
        }
        is_shorter
    }

    fn add_default_key_usages(self, parameters: &mut Parameters) {
        let has_key_usage = parameters
            .field("key_usage")
            .and_then(Value::as_array)
            .is_some_and(|usages| !usages.is_empty());
        if self.has_default_authority_key_usages && parameters.is_true("is_ca") && !has_key_usage {
            // In the order of the canonical form, because comparisons depend on it.
            parameters.insert("key_usage", json!(["key_cert_sign", "crl_sign"]));
        }
    }
}

/// Generates values. Reads and writes no stored data.
#[derive(Clone)]
pub(super) struct Generation {
    pub(super) types: CredentialTypes,
    /// Checks generated certificates and creates issuers.
    pub(super) certificates: Arc<dyn Certificates>,
    pub(super) settings: CertificateSettings,
    pub(super) clock: Arc<dyn Clock>,
}

impl Generation {
    /// Generates a value from canonical parameters and returns it in a draft without metadata. `authority` is the CA that the
    /// parameters name, and `inputs` are the credentials that they name as inputs.
    pub(super) async fn draft(
        &self,
        (name, credential_type): (&CredentialName, &CredentialType),
        parameters: &Parameters,
        generator: &dyn Generator,
        authority: Option<&Authority>,
        inputs: Inputs,
    ) -> Result<Draft, UseCaseError> {
        let now = self.now();
        let issuer = match authority {
            Some(authority) => Some(self.issuer(authority, parameters, now, generator).await?),
            None => None,
        };
        let derived_from = inputs.versions();
        let Inputs {
            passed,
            read,
            chosen_by,
        } = inputs;
        let value = generator
            .generate(parameters, now, issuer.clone(), passed)
            .await?;
        let is_certificate = credential_type.is_certificate();
        let certificate = if is_certificate {
            Some(
                self.check_generated(value.clone(), issuer, generator)
                    .await?,
            )
        } else if let Some(issuer) = issuer {
            issuer.signed().map(|(_, facts)| facts.clone())
        } else {
            declared_certificate(&self.certificates, &value, generator)
                .await?
                .map_err(UseCaseError::GeneratedCertificateRefused)?
        };
        let lifetime = match &certificate {
            Some(_) => Lifetime::default(),
            None => generator.lifetime(Some(parameters), &value, now).await?,
        };
        let trusted_ca = authority.and_then(|authority| self.trusted_ca(authority));
        let signed_by = authority.map(|authority| &authority.name);
        let signed_by = signed_by.or(is_certificate.then_some(name)).cloned();
        Ok(Draft {
            name: name.clone(),
            credential_type: credential_type.clone(),
            attributes: VersionAttributes {
                is_generated: Some(true),
                certificate,
                signed_by,
                issuer: authority.and_then(|authority| authority.issuer),
                lifetime,
                provenance: Some(generator.identity().clone()),
                ..VersionAttributes::default()
            },
            content: Content {
                value,
                parameters: Some(Secret::new(parameters.to_json())),
                metadata: None,
                trusted_ca,
                inputs: derived_from,
                chosen_by,
            },
            unchanged: authority
                .map(|authority| authority.read.clone())
                .into_iter()
                .chain(read)
                .collect(),
        })
    }

    /// Returns the other trusted certificate of a CA, without private keys, if it differs from the one that signs.
    fn trusted_ca(&self, authority: &Authority) -> Option<String> {
        let trusted = authority.trusted_certificate.as_ref()?;
        let certificates = &self.certificates;
        let is_same = certificates.is_same_certificate(trusted, &authority.certificate);
        (!is_same).then(|| certificates.without_keys(trusted.clone()))
    }

    /// Creates an issuer from a CA, for one call of the generator.
    pub(super) async fn issuer(
        &self,
        authority: &Authority,
        parameters: &Parameters,
        now: DateTime<Utc>,
        generator: &dyn Generator,
    ) -> Result<Arc<dyn CertificateIssuer>, UseCaseError> {
        let certificates = Arc::clone(&self.certificates);
        let certificate = authority.certificate.clone();
        let private_key = authority.private_key.clone();
        let rules = IssuanceRules::of(parameters, now);
        run_on_plugin_thread(generator, move || {
            certificates.issuer(&certificate, &private_key, rules)
        })
        .await?
        .map_err(|cause| UseCaseError::IssuerUnusable(authority.name.clone(), cause))
    }

    async fn check_generated(
        &self,
        value: Secret,
        issuer: Option<Arc<dyn CertificateIssuer>>,
        generator: &dyn Generator,
    ) -> Result<CertificateFacts, UseCaseError> {
        let certificates = Arc::clone(&self.certificates);
        run_on_plugin_thread(generator, move || {
            let certificate = StoredCertificate::parse(&value)?;
            let facts = certificates
                .check_generated(certificate.fields(), issuer.as_deref())
                .map_err(UseCaseError::GeneratedCertificateRefused)?;
            Ok(CertificateFacts {
                is_self_signed: issuer.is_none(),
                ..facts
            })
        })
        .await?
    }

    /// Returns the current time in whole seconds, as it is passed to guests.
    pub(super) fn now(&self) -> DateTime<Utc> {
        let now = self.clock.now();
        now.with_nanosecond(0).unwrap_or(now)
    }
}

/// Returns the facts of the certificate in the field that the plugin's value schema declares, `None` if the value has none, or
/// the reason why the field is not a certificate.
pub(super) async fn declared_certificate(
    certificates: &Arc<dyn Certificates>,
    value: &Secret,
    generator: &dyn Generator,
) -> Result<Result<Option<CertificateFacts>, CertificateError>, UseCaseError> {
    let field = generator
        .certificate_field()
        .and_then(|name| fields(value).ok()?.remove(name));
    let text = field.and_then(|field| keywright_json::text(field.get()).ok());
    let Some(certificate) = text.filter(|text| !text.is_empty()) else {
        return Ok(Ok(None));
    };
    let certificates = Arc::clone(certificates);
    let facts = run_on_plugin_thread(generator, move || certificates.facts(&certificate));
    Ok(facts.await?.map(Some))
}

impl IssuanceRules {
    /// Returns the limits for a certificate with these canonical parameters.
    pub fn of(parameters: &Parameters, now: DateTime<Utc>) -> Self {
        let duration_days = u32::try_from(duration_days(parameters));
        Self {
            common_name: parameters.text(COMMON_NAME).map(str::to_owned),
            may_be_authority: parameters.is_true(IS_CA),
            signing_usages: signing_usages(parameters),
            duration_days_max: duration_days.unwrap_or(DURATION_DAYS_MAX),
            now,
        }
    }
}

/// Runs a computation on one of the threads for short calls and returns its result.
///
/// # Errors
/// If the queue is full, or the computation panicked.
pub(super) async fn run_on_plugin_thread<T: Send + 'static>(
    generator: &dyn Generator,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, PluginCallError> {
    let sender = Arc::new(Mutex::new(None));
    let result = Arc::clone(&sender);
    let work = Box::new(move || {
        let computed = work();
        *sender.lock() = Some(computed);
    });
    generator.run_for_host(work).await?;
    let computed = result.lock().take();
    computed.ok_or_else(|| PluginCallError::Faulted {
        plugin: generator.identity().name.clone(),
        fault: PluginFaultError::Trapped,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_do_not_change_parameters_of_other_types() {
        let settings = CertificateSettings {
            authority_duration_days_min: 100,
            has_default_authority_key_usages: true,
            ..CertificateSettings::default()
        };
        let Value::Object(fields) = json!({"duration": 1, "is_ca": true}) else {
            unreachable!()
        };
        let credential_type = CredentialType::parse("wireguard").unwrap();
        let effective = settings.apply(&credential_type, Parameters::new(fields.clone()));
        assert!(effective.parameters == Parameters::new(fields));
        assert!(!effective.is_duration_overridden);
    }
}
