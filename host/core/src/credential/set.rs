//! Setting a credential to a value from the caller. The host checks certificates without a guest, because it reads certificates
//! anyway, and the private key of a CA must not enter a guest.

use std::{iter, sync::Arc};

use serde_json::json;
use zeroize::Zeroizing;

use crate::{
    Secret, UseCaseError,
    authorization::{Authorization, Caller, Permit},
    certificate::{RSA_BITS_MIN, RSA_BITS_RECOMMENDED},
    credential::{
        CredentialName, CredentialType, CredentialTypes, CredentialVersion, IssuerVersion,
        Lifetime, LookupName, Metadata, Parameters, PluginDigest, PluginIdentity,
        RequestedParameters, StoredVersion, VersionAttributes, VersionStore,
        draft::{declared_certificate, run_on_plugin_thread},
        inputs::{PermittedInput, named_inputs},
        parameters::{
            ALTERNATIVE_NAMES, Limits, SUBJECT, canonical_parameters, named_issuer, usages_exceed,
        },
        version::{Content, fields, take_text},
        version_store::{
            Draft, StoredCertificate, WRITE_ATTEMPTS_MAX, check_bytes, check_size, field_absent,
        },
    },
    permission::{Actor, Operation},
    ports::{
        AppendCondition, CertificateFields, Certificates, CheckedFields, Generator,
        PluginCallError, Violation,
    },
};

/// A request to set a credential.
#[derive(Debug)]
pub struct Set {
    /// The credential's name.
    pub name: CredentialName,
    /// Its type.
    pub credential_type: CredentialType,
    /// The value, as JSON text.
    pub value: Secret,
    /// The caller's metadata.
    pub metadata: Option<Metadata>,
    /// The provenance of the value, according to the caller.
    pub provenance: Option<ImportedProvenance>,
}

/// Sets credentials.
#[derive(Clone)]
pub struct SetCredentials {
    pub(super) authorization: Authorization,
    pub(super) store: VersionStore,
    pub(super) types: CredentialTypes,
    pub(super) certificates: Arc<dyn Certificates>,
}

impl SetCredentials {
    /// Sets a credential. Always adds a version.
    ///
    /// # Errors
    /// If the type is unknown or differs from the credential's type, the value breaks a rule of its type, or the provenance is
    /// refused.
    pub async fn credential(
        &self,
        caller: &Caller,
        set: Set,
    ) -> Result<CredentialVersion, UseCaseError> {
        if set.credential_type.is_certificate() {
            return self.certificate(caller, set).await;
        }
        let name = set.name.lookup();
        let (mut rsa_bits, mut certificate) = (None, None);
        let mut lifetime = Lifetime::default();
        let value = match set.credential_type.as_str() {
            CredentialType::VALUE => accept_text(set.value)?,
            CredentialType::JSON => accept_object(set.value)?,
            _ => {
                let generator = self.types.generator(caller, &set.credential_type)?;
                let generator = generator.as_ref();
                // Checked here so that no guest gets a value that is too large, and again when its result is encrypted.
                self.permit_too_large(caller, &name, check_size(&set.value))
                    .await?;
                let value = generator.accept(&set.value).await?;
                if set.credential_type.as_str() == CredentialType::RSA {
                    rsa_bits = self.shortest_rsa_key(&value)?;
                }
                let declared = declared_certificate(&self.certificates, &value, generator).await?;
                certificate = declared.map_err(|cause| {
                    let field = generator.certificate_field().unwrap_or(cause.field);
                    UseCaseError::ValueRefused(format!("{field} {}", cause.rule))
                })?;
                if certificate.is_none() {
                    let now = self.store.clock.now();
                    lifetime = generator.lifetime(None, &value, now).await?;
                }
                value
            }
        };
        let permitting = self.authorization.permit(caller, Operation::Write, &name);
        let permit = permitting.await?;
        let imported = set.provenance;
        let provenance = self
            .check_provenance(caller, &set.name, &set.credential_type, imported)
            .await?;
        let mut draft = Draft {
            name: set.name,
            credential_type: set.credential_type,
            attributes: VersionAttributes {
                is_generated: Some(false),
                certificate,
                lifetime,
                ..VersionAttributes::default()
            },
            content: Content {
                metadata: set.metadata,
                ..Content::of_value(value)
            },
            unchanged: Vec::new(),
        };
        if let Some(provenance) = provenance {
            provenance.add_to(&mut draft)?;
            // The plugin's call to check the parameters may have waited.
            self.authorization.confirm(caller, [&permit]).await?;
        }
        let appending = self.store.append(&permit, draft, AppendCondition::Always);
        let version = appending.await?.map_err(|_| UseCaseError::Contended)?;
        warn_of_short_key(&version.name, rsa_bits);
        Ok(version)
    }

    /// Checks the length of each key of an RSA key pair and returns the shortest length, in bits. Other fields are not checked.
    fn shortest_rsa_key(&self, value: &Secret) -> Result<Option<u32>, UseCaseError> {
        let mut shortest: Option<u32> = None;
        for (name, key) in keywright_json::fields(value.expose()).unwrap_or_default() {
            let key = keywright_json::text(key.get()).map(Zeroizing::new);
            let Some(bits) = key.ok().and_then(|key| self.certificates.rsa_bits(&key)) else {
                continue;
            };
            if bits < RSA_BITS_MIN {
                return Err(UseCaseError::ValueRefused(format!(
                    "{name} has an RSA key of fewer than {RSA_BITS_MIN} bits"
                )));
            }
            shortest = Some(shortest.map_or(bits, |shortest| shortest.min(bits)));
        }
        Ok(shortest)
    }

    /// Returns a result. If it is the error for a value that is too large, first checks that the caller may write.
    async fn permit_too_large<T>(
        &self,
        caller: &Caller,
        name: &LookupName,
        result: Result<T, UseCaseError>,
    ) -> Result<T, UseCaseError> {
        if matches!(result, Err(UseCaseError::ValueTooLarge { .. })) {
            self.authorization
                .permit(caller, Operation::Write, name)
                .await?;
        }
        result
    }

    async fn certificate(
        &self,
        caller: &Caller,
        set: Set,
    ) -> Result<CredentialVersion, UseCaseError> {
        let generator = self.types.generator(caller, &set.credential_type)?;
        let name = set.name.lookup();
        let fields = CertificateRequest::parse(&set.value);
        let fields = self.permit_too_large(caller, &name, fields).await?;
        let checked = self.check(generator.as_ref(), fields.value, None).await?;
        let permitting = self.authorization.permit(caller, Operation::Write, &name);
        let permit = permitting.await?;
        let ca_permit = self.permit_ca(caller, fields.ca_name.as_ref()).await?;
        let imported = set.provenance;
        let provenance = self
            .check_provenance(caller, &set.name, &set.credential_type, imported)
            .await?;
        if let Some(provenance) = &provenance {
            self.check_described(&checked, &provenance.parameters, generator.as_ref())
                .await?;
        }
        for _ in 0..WRITE_ATTEMPTS_MAX {
            let mut draft = self
                .draft(&set.name, &checked, ca_permit.as_ref(), generator.as_ref())
                .await?;
            draft.content.metadata.clone_from(&set.metadata);
            if let Some(provenance) = &provenance {
                provenance.add_to(&mut draft)?;
            }
            let permits = iter::once(&permit).chain(&ca_permit);
            self.authorization.confirm(caller, permits).await?;
            let appending = self.store.append(&permit, draft, AppendCondition::Always);
            if let Ok(version) = appending.await? {
                warn_of_short_key(&set.name, checked.rsa_bits);
                return Ok(version);
            }
        }
        Err(UseCaseError::Contended)
    }

    /// Checks a caller's value, against the certificate of the stored CA if the caller names one.
    pub(super) async fn check(
        &self,
        generator: &dyn Generator,
        value: StoredCertificate,
        stored_ca: Option<String>,
    ) -> Result<CheckedFields, UseCaseError> {
        let certificates = Arc::clone(&self.certificates);
        let checked = run_on_plugin_thread(generator, move || {
            certificates.check_fields(CertificateFields {
                ca: stored_ca.as_deref().or(value.ca.as_deref()),
                ca_is_stored: stored_ca.is_some(),
                ..value.fields()
            })
        });
        Ok(checked.await??)
    }

    /// Permits the caller to use the named CA, if any.
    pub(super) async fn permit_ca<'a>(
        &self,
        caller: &'a Caller,
        name: Option<&LookupName>,
    ) -> Result<Option<Permit<'a>>, UseCaseError> {
        match name {
            Some(name) => Ok(Some(self.authorization.permit_issuer(caller, name).await?)),
            None => Ok(None),
        }
    }

    /// Creates a draft of a certificate from a checked value, completed with the certificate of the CA that the caller names,
    /// if any. The active version of this CA must have signed the certificate, and its transitional version is also trusted.
    /// The CA needs no private key, because it signs nothing.
    pub(super) async fn draft(
        &self,
        name: &CredentialName,
        checked: &CheckedFields,
        ca_permit: Option<&Permit<'_>>,
        generator: &dyn Generator,
    ) -> Result<Draft, UseCaseError> {
        let mut checked = checked.clone();
        let mut attributes = VersionAttributes {
            is_generated: Some(false),
            ..VersionAttributes::default()
        };
        let (mut unchanged, mut trusted_ca) = (Vec::new(), None);
        if let Some(ca_permit) = ca_permit {
            let current = self.store.active_versions(ca_permit.name()).await?;
            unchanged.push(current.as_read(ca_permit.name()));
            let active = current.active_certificate()?.clone();
            if let Some(version) = current.transitional {
                trusted_ca = self.ca_certificate(ca_permit, version).await?;
            }
            let ca_name = active.name.clone();
            attributes.issuer = active.as_issuer();
            let stored_ca = self.ca_certificate(ca_permit, active).await?;
            let stored_ca = stored_ca.ok_or_else(|| field_absent(&ca_name, "certificate"))?;
            trusted_ca = trusted_ca
                .filter(|trusted| !self.certificates.is_same_certificate(trusted, &stored_ca));
            attributes.signed_by = Some(ca_name);
            let value = StoredCertificate {
                ca: None,
                certificate: checked.certificate,
                private_key: checked.private_key,
            };
            checked = self.check(generator, value, Some(stored_ca)).await?;
        } else if checked
            .facts
            .as_ref()
            .is_some_and(|facts| facts.is_self_signed)
        {
            attributes.signed_by = Some(name.clone());
        } else {
            // Only the certificate of the issuer is known.
            attributes.issuer = checked.ca_expires_at.map(|expires_at| IssuerVersion {
                version_id: None,
                expires_at,
            });
        }
        attributes.certificate = checked.facts;
        let value = json!({
            "ca": checked.ca,
            "certificate": checked.certificate,
            "private_key": checked.private_key.as_ref().map(Secret::expose),
        });
        Ok(Draft {
            name: name.clone(),
            credential_type: CredentialType::certificate(),
            attributes,
            content: Content {
                trusted_ca,
                ..Content::of_value(Secret::new(value.to_string()))
            },
            unchanged,
        })
    }

    /// Returns the certificate of a version of a CA as other credentials may contain it.
    async fn ca_certificate(
        &self,
        permit: &Permit<'_>,
        version: StoredVersion,
    ) -> Result<Option<String>, UseCaseError> {
        let stored = self.store.certificate_of(permit, version).await?;
        let certificate = stored.certificate;
        Ok(certificate.map(|pem| self.certificates.without_keys(pem)))
    }

    /// Checks an imported provenance like a request to generate the credential, including the permissions to use the CA and to
    /// read the inputs. The inputs need not exist yet.
    ///
    /// # Errors
    /// If the type can't be generated, the configured plugin does not accept the parameters, or the CA can't be used.
    async fn check_provenance(
        &self,
        caller: &Caller,
        name: &CredentialName,
        credential_type: &CredentialType,
        imported: Option<ImportedProvenance>,
    ) -> Result<Option<CheckedProvenance>, UseCaseError> {
        let Some(imported) = imported else {
            return Ok(None);
        };
        if credential_type.is_set_only() {
            return Err(UseCaseError::TypeNotGeneratable(credential_type.clone()));
        }
        let generator = self.types.generator(caller, credential_type)?;
        let generator = generator.as_ref();
        let requested = Some(&imported.parameters);
        let parameters = canonical_parameters(credential_type, requested, generator).await?;
        caller.reserve_parameters(parameters.memory_bytes())?;
        let inputs = named_inputs(&name.lookup(), &parameters, generator)?;
        PermittedInput::request(&self.authorization, caller, inputs).await?;
        let issuer = match named_issuer(&parameters, generator) {
            Some(name) => {
                let permit = self.authorization.permit_issuer(caller, &name).await?;
                let authority = self.store.checked_authority(&permit).await?.active;
                Some(authority.ok_or(UseCaseError::IssuerNotFound)?.name)
            }
            None => None,
        };
        Ok(Some(CheckedProvenance {
            plugin: PluginIdentity::of_digest(imported.generated_by),
            parameters,
            chosen_by: caller.actor().clone(),
            issuer,
            issuer_parameter: generator.issuer_parameter().map(str::to_owned),
        }))
    }

    /// Checks that imported parameters describe the certificate in the value. Otherwise the next regeneration could turn a
    /// harmless certificate into another, such as a CA.
    async fn check_described(
        &self,
        checked: &CheckedFields,
        parameters: &Parameters,
        generator: &dyn Generator,
    ) -> Result<(), UseCaseError> {
        let refused = |rule: &str| {
            let violation = Violation {
                field: None,
                rule: rule.to_owned(),
            };
            UseCaseError::from(PluginCallError::ParametersRefused(violation))
        };
        let (Some(facts), Some(certificate)) = (&checked.facts, &checked.certificate) else {
            return Err(refused("they require a certificate in the value"));
        };
        let limits = Limits::of_certificate(self.certificates.as_ref(), facts, certificate);
        let limits = limits.map_err(|_| UseCaseError::StoredValueMalformed)?;
        let exceeding = "is_ca, duration, key_usage and extended_key_usage must not allow more than the certificate in the value";
        if !limits.include(parameters) {
            return Err(refused(exceeding));
        }
        let value = Secret::new(json!({ "certificate": certificate }).to_string());
        let Some(recovered) = generator.recover(None, &value).await? else {
            return Ok(());
        };
        let read_only = generator.read_only_parameters();
        if recovered.parameters.clone().without(read_only) != recovered.parameters {
            return Err(refused(
                "they can't express the certificate in the value; set it without provenance",
            ));
        }
        if usages_exceed(parameters, &recovered.parameters) {
            return Err(refused(exceeding));
        }
        let names = |parameters: &Parameters| {
            let parameters = parameters.clone();
            parameters.retain(|name| SUBJECT.contains(&name) || name == ALTERNATIVE_NAMES)
        };
        let (recovered, claimed) = (names(&recovered.parameters), names(parameters));
        if recovered.satisfies(&claimed, None, &SUBJECT) {
            return Ok(());
        }
        Err(refused(
            "the subject and the alternative names must be those of the certificate in the value",
        ))
    }
}

fn accept_text(value: Secret) -> Result<Secret, UseCaseError> {
    match keywright_json::text(value.expose()).map(Zeroizing::new) {
        Ok(text) if !text.is_empty() => Ok(value),
        _ => Err(UseCaseError::ValueRefused(
            "value must be a non-empty string".to_owned(),
        )),
    }
}

fn accept_object(value: Secret) -> Result<Secret, UseCaseError> {
    match keywright_json::fields(value.expose()) {
        Ok(_) => Ok(value),
        _ => Err(UseCaseError::ValueRefused(
            "value must be a JSON object".to_owned(),
        )),
    }
}

/// Logs a warning if a caller has set an RSA key that is shorter than recommended.
pub(super) fn warn_of_short_key(name: &CredentialName, rsa_bits: Option<u32>) {
    if let Some(bits) = rsa_bits.filter(|bits| *bits < RSA_BITS_RECOMMENDED) {
        tracing::warn!(
            credential.name = name.as_str(),
            key.bits = bits,
            "stored an RSA key that is shorter than 2048 bits"
        );
    }
}

/// A certificate in a request, without empty strings.
pub(super) struct CertificateRequest {
    pub(super) value: StoredCertificate,
    /// The stored CA that signed it.
    pub(super) ca_name: Option<LookupName>,
}

impl CertificateRequest {
    pub(super) fn parse(value: &Secret) -> Result<Self, UseCaseError> {
        let refused = |rule: &str| UseCaseError::ValueRefused(rule.to_owned());
        let mut fields = fields(value).map_err(|_| refused("value must be a JSON object"))?;
        let ca = take_text(&mut fields, "ca")?;
        let ca_name = take_text(&mut fields, "ca_name")?;
        let certificate = take_text(&mut fields, "certificate")?;
        let private_key = take_text(&mut fields, "private_key")?.map(Secret::new);
        fields.retain(|name, _| !IGNORED_FIELDS.contains(&name.as_str()));
        if let Some((unknown, _)) = fields.into_iter().next() {
            return Err(UseCaseError::ValueFieldUnknown(unknown));
        }
        if ca.is_some() && ca_name.is_some() {
            return Err(refused("only one of ca and ca_name may be given"));
        }
        let texts = [&ca, &ca_name, &certificate].into_iter().flatten();
        let key_bytes = private_key.as_ref().map(|key| key.expose().len());
        // A lower bound of the size of the value, checked before the fields are parsed.
        let bytes = texts.map(String::len).chain(key_bytes).sum();
        if bytes == 0 {
            let rule = "at least one of ca, ca_name, certificate and private_key is required";
            return Err(refused(rule));
        }
        check_bytes(bytes)?;
        Ok(Self {
            value: StoredCertificate {
                ca,
                certificate,
                private_key,
            },
            ca_name: ca_name.as_deref().map(LookupName::new),
        })
    }
}

/// Fields that clients send back from responses. They are ignored, because the host determines them itself.
const IGNORED_FIELDS: [&str; 4] = [
    "transitional",
    "certificate_authority",
    "self_signed",
    "generated",
];

/// The provenance of a value that a caller sets, according to this caller.
#[derive(Debug)]
pub struct ImportedProvenance {
    /// The digest of the component that generated the value.
    pub generated_by: PluginDigest,
    /// The parameters, as another server returned them.
    pub parameters: RequestedParameters,
}

/// An imported provenance whose parameters the caller could have used to generate the credential on this server.
struct CheckedProvenance {
    plugin: PluginIdentity,
    parameters: Parameters,
    /// The caller.
    chosen_by: Actor,
    /// The CA that the parameters name.
    issuer: Option<CredentialName>,
    issuer_parameter: Option<String>,
}

impl CheckedProvenance {
    /// Adds the provenance to the draft of a set value.
    ///
    /// # Errors
    /// If the value is a certificate that another CA signed.
    fn add_to(&self, draft: &mut Draft) -> Result<(), UseCaseError> {
        if draft.credential_type.is_certificate() {
            let signer = draft
                .attributes
                .signed_by
                .as_ref()
                .map(CredentialName::lookup);
            let signer = signer.filter(|signer| !signer.is(&draft.name));
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
        draft.content.parameters = Some(Secret::new(self.parameters.to_json()));
        draft.content.chosen_by = Some(self.chosen_by.clone());
        draft.attributes.provenance = Some(self.plugin.clone());
        Ok(())
    }
}
