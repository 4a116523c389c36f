//! Setting a credential to a value from the caller. The host checks certificates without a guest, because it reads certificates
//! anyway, and the private key of a CA must not enter a guest.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::json;
use zeroize::Zeroizing;

use crate::{
    Failure, Secret,
    authorization::{Caller, Permit},
    certificate::{CertificateFacts, RSA_BITS_MIN, RSA_BITS_RECOMMENDED},
    credential::{
        CredentialName, CredentialType, CredentialVersion, Credentials, IssuerVersion, LookupName,
        Metadata, Parameters, PluginDigest, PluginIdentity, RequestedParameters, VersionAttributes,
        authority::field_absent,
        content::{Content, check_bytes, check_size, fields, take_text},
        draft::{named_issuer, run_on_plugin_thread},
        generate::canonical_parameters,
        version_store::{Draft, WRITE_ATTEMPTS_MAX},
    },
    permission::Operation,
    ports::{
        AppendCondition, CertificateFields, Generator, PluginCallError, ReadVersions, Violation,
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

impl Credentials {
    /// Sets a credential. Always adds a version.
    ///
    /// # Errors
    /// If the type is unknown or differs from the credential's type, the value breaks a rule of its type, or the provenance is
    /// refused.
    pub async fn set(&self, caller: &Caller, set: Set) -> Result<CredentialVersion, Failure> {
        if set.credential_type.is_certificate() {
            return self.set_certificate(caller, set).await;
        }
        let (mut rsa_bits, mut certificate) = (None, None);
        let value = match set.credential_type.as_str() {
            CredentialType::VALUE => accept_text(set.value)?,
            CredentialType::JSON => accept_object(set.value)?,
            _ => {
                let generator = self.generator(caller, &set.credential_type)?;
                // Checked here so that no guest gets a value that is too large, and again when its result is encrypted.
                check_size(&set.value)?;
                let value = generator.accept(&set.value).await?;
                if set.credential_type.as_str() == CredentialType::RSA {
                    rsa_bits = self.shortest_rsa_key(&value)?;
                }
                let declared = self.declared_certificate(&value, generator.as_ref());
                certificate = declared.await?.map_err(|cause| {
                    let field = generator.certificate_field().unwrap_or(cause.field);
                    Failure::ValueRefused(format!("{field} {}", cause.rule))
                })?;
                value
            }
        };
        let permit = self
            .authorization
            .permit(caller, Operation::Write, &set.name.lookup())
            .await?;
        let provenance = self
            .check_provenance(caller, &set.credential_type, set.provenance)
            .await?;
        let mut draft = Draft {
            name: set.name,
            credential_type: set.credential_type,
            attributes: VersionAttributes {
                is_generated: Some(false),
                certificate,
                ..VersionAttributes::default()
            },
            content: Content {
                value,
                parameters: None,
                metadata: set.metadata,
                trusted_ca: None,
            },
            unchanged: Vec::new(),
        };
        if let Some(provenance) = provenance {
            provenance.add_to(&mut draft)?;
        }
        let appended = self
            .store
            .append(&permit, draft, AppendCondition::Always)
            .await?;
        let version = appended.ok_or(Failure::Contended)?;
        warn_of_short_key(&version.stored.name, rsa_bits);
        Ok(version.into_version(&permit))
    }

    /// Checks the length of each key of an RSA key pair and returns the shortest length, in bits. Other fields are not checked.
    fn shortest_rsa_key(&self, value: &Secret) -> Result<Option<u32>, Failure> {
        let mut shortest: Option<u32> = None;
        for (name, key) in keywright_json::fields(value.expose()).unwrap_or_default() {
            let key = keywright_json::text(key.get()).map(Zeroizing::new);
            let Some(bits) = key.ok().and_then(|key| self.certificates.rsa_bits(&key)) else {
                continue;
            };
            if bits < RSA_BITS_MIN {
                return Err(Failure::ValueRefused(format!(
                    "{name} has an RSA key of fewer than {RSA_BITS_MIN} bits"
                )));
            }
            shortest = Some(shortest.map_or(bits, |shortest| shortest.min(bits)));
        }
        Ok(shortest)
    }

    pub(super) async fn set_certificate(
        &self,
        caller: &Caller,
        set: Set,
    ) -> Result<CredentialVersion, Failure> {
        let generator = self.generator(caller, &set.credential_type)?;
        let fields = Fields::parse(&set.value)?;
        let checked = self.check(generator.as_ref(), fields, None).await?;
        let permit = self
            .authorization
            .permit(caller, Operation::Write, &set.name.lookup())
            .await?;
        let ca_permit = self.permit_ca_name(caller, &checked.fields).await?;
        let provenance = self
            .check_provenance(caller, &set.credential_type, set.provenance)
            .await?;
        for _ in 0..WRITE_ATTEMPTS_MAX {
            let (name, credential_type) = (set.name.clone(), set.credential_type.clone());
            let mut draft = self
                .draft_of(
                    name,
                    credential_type,
                    checked.clone(),
                    ca_permit.as_ref(),
                    generator.as_ref(),
                )
                .await?;
            draft.content.metadata.clone_from(&set.metadata);
            if let Some(provenance) = &provenance {
                provenance.add_to(&mut draft)?;
            }
            let appended = self
                .store
                .append(&permit, draft, AppendCondition::Always)
                .await?;
            if let Some(version) = appended {
                warn_of_short_key(&set.name, checked.rsa_bits);
                return Ok(version.into_version(&permit));
            }
        }
        Err(Failure::Contended)
    }

    /// Checks a caller's value, against the certificate of the stored CA if the caller names one.
    pub(super) async fn check(
        &self,
        generator: &dyn Generator,
        fields: Fields,
        stored_ca: Option<String>,
    ) -> Result<CheckedSet, Failure> {
        let certificates = Arc::clone(&self.certificates);
        let checked = run_on_plugin_thread(generator, move || {
            let ca = stored_ca.as_deref().or(fields.ca.as_deref());
            let checked = certificates.check_fields(CertificateFields {
                ca,
                certificate: fields.certificate.as_deref(),
                private_key: fields.private_key.as_ref(),
                ca_is_stored: stored_ca.is_some(),
            })?;
            Ok::<_, Failure>(CheckedSet {
                fields: Fields {
                    ca: checked.ca,
                    ca_name: fields.ca_name,
                    certificate: checked.certificate,
                    private_key: checked.private_key,
                },
                ca_expires_at: checked.ca_expires_at,
                facts: checked.facts,
                rsa_bits: checked.rsa_bits,
            })
        });
        checked.await?
    }

    /// Permits the caller to use the CA that `ca_name` names, if the field is present.
    pub(super) async fn permit_ca_name<'a>(
        &self,
        caller: &'a Caller,
        fields: &Fields,
    ) -> Result<Option<Permit<'a>>, Failure> {
        match &fields.ca_name {
            Some(ca_name) => {
                let name = LookupName::new(ca_name);
                self.permit_issuer(caller, &name).await.map(Some)
            }
            None => Ok(None),
        }
    }

    /// Creates a draft from a checked value, completed with the certificate of the CA that the caller names, if any.
    pub(super) async fn draft_of(
        &self,
        name: CredentialName,
        credential_type: CredentialType,
        mut checked: CheckedSet,
        ca_permit: Option<&Permit<'_>>,
        generator: &dyn Generator,
    ) -> Result<Draft, Failure> {
        let mut unchanged = Vec::new();
        let (mut signed_by, mut issuer, mut trusted_ca) = (None, None, None);
        if let Some(ca_permit) = ca_permit {
            let signer = self.stored_authority(ca_permit).await?;
            let stored_ca = Some(signer.certificate);
            checked = self.check(generator, checked.fields, stored_ca).await?;
            unchanged.push(signer.read);
            (signed_by, issuer) = (Some(signer.name), signer.issuer);
            trusted_ca = signer.trusted_certificate;
        } else if checked
            .facts
            .as_ref()
            .is_some_and(|facts| facts.is_self_signed)
        {
            signed_by = Some(name.clone());
        } else {
            // Only the certificate of the issuer is known.
            issuer = checked.ca_expires_at.map(|expires_at| IssuerVersion {
                version_id: None,
                expires_at,
            });
        }
        Ok(Draft {
            name,
            credential_type,
            attributes: VersionAttributes {
                is_generated: Some(false),
                certificate: checked.facts,
                signed_by,
                issuer,
                ..VersionAttributes::default()
            },
            content: Content {
                value: checked.fields.to_value(),
                parameters: None,
                metadata: None,
                trusted_ca,
            },
            unchanged,
        })
    }

    /// Returns a stored CA, whose active version must have signed the certificate and whose transitional version is also
    /// trusted. It needs no private key, because it signs nothing.
    async fn stored_authority(&self, permit: &Permit<'_>) -> Result<StoredAuthority, Failure> {
        let current = self.store.active_versions(permit.name()).await?;
        let read = current.as_read(permit.name());
        let active = current
            .active
            .filter(|version| version.credential_type.is_certificate())
            .ok_or(Failure::IssuerNotFound)?;
        let trusted = match current.transitional {
            Some(version) => {
                self.store
                    .certificate_of(permit, version)
                    .await?
                    .certificate
            }
            None => None,
        };
        Ok(StoredAuthority {
            name: active.name.clone(),
            issuer: active.as_issuer(),
            certificate: self
                .store
                .certificate_of(permit, active)
                .await?
                .certificate
                .ok_or(field_absent("certificate"))?,
            trusted_certificate: trusted,
            read,
        })
    }
}

fn accept_text(value: Secret) -> Result<Secret, Failure> {
    match keywright_json::text(value.expose()).map(Zeroizing::new) {
        Ok(text) if !text.is_empty() => Ok(value),
        _ => Err(Failure::ValueRefused(
            "value must be a non-empty string".to_owned(),
        )),
    }
}

fn accept_object(value: Secret) -> Result<Secret, Failure> {
    match keywright_json::fields(value.expose()) {
        Ok(_) => Ok(value),
        _ => Err(Failure::ValueRefused(
            "value must be a JSON object".to_owned(),
        )),
    }
}

/// The CA that `ca_name` names.
struct StoredAuthority {
    name: CredentialName,
    issuer: Option<IssuerVersion>,
    /// The certificate of its active version, PEM.
    certificate: String,
    /// The certificate of its transitional version, PEM.
    trusted_certificate: Option<String>,
    /// The versions that were read to find it.
    read: ReadVersions,
}

/// A checked value with the fields to store.
#[derive(Clone)]
pub(super) struct CheckedSet {
    pub(super) fields: Fields,
    ca_expires_at: Option<DateTime<Utc>>,
    facts: Option<CertificateFacts>,
    /// The length of the shortest RSA key, in bits.
    pub(super) rsa_bits: Option<u32>,
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

/// A caller's value, without empty strings.
#[derive(Clone)]
pub(super) struct Fields {
    ca: Option<String>,
    ca_name: Option<String>,
    certificate: Option<String>,
    private_key: Option<Secret>,
}

impl Fields {
    pub(super) fn parse(value: &Secret) -> Result<Self, Failure> {
        let not_an_object = |_| Failure::ValueRefused("value must be a JSON object".to_owned());
        let mut fields = fields(value).map_err(not_an_object)?;
        let parsed = Self {
            ca: take_text(&mut fields, "ca")?,
            ca_name: take_text(&mut fields, "ca_name")?,
            certificate: take_text(&mut fields, "certificate")?,
            private_key: take_text(&mut fields, "private_key")?.map(Secret::new),
        };
        fields.retain(|name, _| !IGNORED_FIELDS.contains(&name.as_str()));
        if let Some((unknown, _)) = fields.into_iter().next() {
            return Err(Failure::ValueFieldUnknown(unknown));
        }
        if parsed.ca.is_some() && parsed.ca_name.is_some() {
            return Err(Failure::ValueRefused(
                "only one of ca and ca_name may be given".to_owned(),
            ));
        }
        let is_empty = parsed.ca.is_none()
            && parsed.ca_name.is_none()
            && parsed.certificate.is_none()
            && parsed.private_key.is_none();
        if is_empty {
            return Err(Failure::ValueRefused(
                "at least one of ca, ca_name, certificate and private_key is required".to_owned(),
            ));
        }
        // Checked before the fields are parsed.
        check_bytes(parsed.bytes())?;
        Ok(parsed)
    }

    /// Returns the total size of the fields, a lower bound of the size of the value.
    fn bytes(&self) -> usize {
        let texts = [&self.ca, &self.ca_name, &self.certificate];
        let texts = texts.into_iter().flatten().map(String::len);
        let private_key = self.private_key.as_ref().map(|key| key.expose().len());
        texts.chain(private_key).sum()
    }

    pub(super) fn have_certificate(&self) -> bool {
        self.certificate.is_some()
    }

    fn to_value(&self) -> Secret {
        let private_key = self.private_key.as_ref().map(Secret::expose);
        Secret::new(
            json!({
                "ca": self.ca,
                "certificate": self.certificate,
                "private_key": private_key,
            })
            .to_string(),
        )
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
