//! Decrypting, encrypting and adding versions; and the active versions of a credential, in particular of a signing CA.

use std::{future::poll_fn, mem, sync::Arc, task::Poll};

use serde_json::value::to_raw_value;
use zeroize::Zeroizing;

use crate::{
    Secret, UseCaseError,
    authorization::Permit,
    credential::{
        CredentialName, CredentialType, CredentialVersion, IssuerVersion, LookupName,
        StoredVersion, VersionAttributes,
        version::{Content, ESCAPED_BYTES_MAX, fields, take_text, to_secret},
    },
    ports::{
        AppendCondition, Appended, CertificateError, CertificateFields, Clock, CredentialKey,
        CredentialRepository, Identifiers, KeyStatus, NOT_AN_AUTHORITY, NewVersion, ReadVersions,
        SealContext, Sealer, VersionSelection,
    },
};

/// The stored versions. Requests decrypt and encrypt versions only here, with a permit for their credential.
#[derive(Clone)]
pub struct VersionStore {
    /// Stores the credentials.
    pub repository: Arc<dyn CredentialRepository>,
    /// Encrypts the values.
    pub sealer: Arc<dyn Sealer>,
    /// The current time.
    pub clock: Arc<dyn Clock>,
    /// Generates the ids of versions.
    pub identifiers: Arc<dyn Identifiers>,
    /// Whether `ca` in responses also contains the CA's other certificate while the CA is being rotated.
    pub concatenates_authorities: bool,
}

pub(super) struct Draft {
    pub(super) name: CredentialName,
    pub(super) credential_type: CredentialType,
    pub(super) attributes: VersionAttributes,
    pub(super) content: Content,
    /// The versions that it was created from, which must be unchanged when it is written.
    pub(super) unchanged: Vec<ReadVersions>,
}

impl VersionStore {
    /// Decrypts a version of the permit's credential. Refuses any other version as if it did not exist.
    pub(crate) async fn open(
        &self,
        permit: &Permit<'_>,
        stored: StoredVersion,
    ) -> Result<CredentialVersion, UseCaseError> {
        if !permit.opens(&stored.name) {
            return Err(UseCaseError::NotFound);
        }
        let record = SealContext {
            version_id: stored.id,
            name: &stored.name.lookup(),
        };
        let key_id = stored.envelope.key_id;
        if self.sealer.status(key_id) == KeyStatus::Unknown {
            self.sealer.recognize(key_id).await?;
        }
        let plaintext = self.sealer.open(record, &stored.envelope)?;
        let content = Content::of_version(&plaintext, &stored)?;
        Ok(CredentialVersion::new(stored, content))
    }

    /// Encrypts a draft for the permit's credential, and returns a version that is ready to be added.
    pub(super) async fn seal(
        &self,
        permit: &Permit<'_>,
        draft: &Draft,
    ) -> Result<NewVersion, UseCaseError> {
        if !permit.seals(&draft.name) {
            return Err(UseCaseError::WriteNotPermitted);
        }
        let content = &draft.content;
        check_size(&content.value)?;
        check_long_field(&draft.credential_type, &content.value)?;
        let plaintext = content.to_plaintext(&draft.name, &draft.credential_type)?;
        let id = self.identifiers.fresh();
        let record = SealContext {
            version_id: id,
            name: &draft.name.lookup(),
        };
        Ok(NewVersion {
            id,
            name: draft.name.clone(),
            credential_type: draft.credential_type.clone(),
            created_at: self.clock.now(),
            attributes: draft.attributes.clone(),
            inputs: content.inputs.clone(),
            envelope: self.sealer.seal(record, &plaintext).await?,
        })
    }

    /// Adds a draft if a condition still holds. Otherwise returns the draft, or `None` if a CA or an input of the draft has changed.
    pub(super) async fn append(
        &self,
        permit: &Permit<'_>,
        mut draft: Draft,
        condition: AppendCondition,
    ) -> Result<Result<CredentialVersion, Option<Draft>>, UseCaseError> {
        let mut appended = self.append_once(permit, &draft, condition).await?;
        if let Appended::CasingDiffers(name) = appended {
            draft.name = name;
            appended = self.append_once(permit, &draft, condition).await?;
        }
        match appended {
            Appended::Written(stored) => {
                permit.record_version(stored.credential_id, stored.id);
                Ok(Ok(CredentialVersion::new(*stored, draft.content)))
            }
            Appended::TransitionalExists => Err(UseCaseError::TransitionalExists),
            Appended::TypeDiffers(existing) => Err(UseCaseError::TypeDiffers(existing)),
            // Another caller has since deleted and recreated the credential.
            Appended::CasingDiffers(_) => Err(UseCaseError::Contended),
            Appended::Changed if matches!(condition, AppendCondition::CredentialIs(_)) => {
                Err(UseCaseError::NotFound)
            }
            Appended::Changed => Ok(Err(Some(draft))),
            Appended::Outdated => Ok(Err(None)),
        }
    }

    /// Encrypts a draft and adds it if a condition holds.
    async fn append_once(
        &self,
        permit: &Permit<'_>,
        draft: &Draft,
        condition: AppendCondition,
    ) -> Result<Appended, UseCaseError> {
        let version = self.seal(permit, draft).await?;
        let appending = self.repository.append(version, condition, &draft.unchanged);
        Ok(appending.await?)
    }

    pub(super) async fn are_unchanged(
        &self,
        unchanged: &[ReadVersions],
    ) -> Result<bool, UseCaseError> {
        for read in unchanged {
            let reading = self
                .repository
                .versions_of(CredentialKey::Name(&read.name), read.selection);
            let versions = reading.await?.into_iter();
            let versions = versions.map(|version| (version.id, version.attributes.is_transitional));
            if !versions.eq(read.versions.iter().copied()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Prepares a version for a response and records it in the trail.
    pub(super) fn render(
        &self,
        permit: &Permit<'_>,
        mut version: CredentialVersion,
    ) -> Result<CredentialVersion, UseCaseError> {
        // Only values of type certificate are guaranteed to have the CA certificate in `ca`.
        if self.concatenates_authorities
            && version.credential_type.is_certificate()
            && let Some(trusted) = &version.content.trusted_ca
        {
            version.content.value = with_trusted(&version.content.value, trusted)?;
        }
        permit.record_version(version.credential_id, version.id);
        Ok(version)
    }

    /// Decrypts versions and prepares them for a response.
    pub(super) async fn render_all(
        &self,
        permit: &Permit<'_>,
        stored: Vec<StoredVersion>,
    ) -> Result<Vec<CredentialVersion>, UseCaseError> {
        let mut pace = Pace::default();
        let mut rendered = Vec::with_capacity(stored.len());
        for version in stored {
            pace.step().await;
            let version = self.open(permit, version).await?;
            rendered.push(self.render(permit, version)?);
        }
        Ok(rendered)
    }

    /// Returns the active versions of a credential; empty if it does not exist.
    pub(crate) async fn active_versions(
        &self,
        name: &LookupName,
    ) -> Result<ActiveVersions, UseCaseError> {
        let (key, current) = (CredentialKey::Name(name), VersionSelection::Current);
        let chosen = self.repository.versions_of(key, current).await?;
        Ok(ActiveVersions::new(chosen))
    }

    /// Decrypts the fields of a stored certificate.
    pub(super) async fn certificate_of(
        &self,
        permit: &Permit<'_>,
        version: StoredVersion,
    ) -> Result<StoredCertificate, UseCaseError> {
        let version = self.open(permit, version).await?;
        StoredCertificate::parse(&version.content.value)
    }

    /// Returns the active versions of the permit's credential. Checks that it is a CA, but not that it can sign.
    ///
    /// # Errors
    /// [`UseCaseError::IssuerNotFound`] if no certificate has this name, [`UseCaseError::IssuerUnusable`] if it is not a CA.
    pub(super) async fn checked_authority(
        &self,
        permit: &Permit<'_>,
    ) -> Result<ActiveVersions, UseCaseError> {
        let current = self.active_versions(permit.name()).await?;
        let active = current.active_certificate()?;
        match &active.attributes.certificate {
            Some(facts) if facts.is_certificate_authority => {}
            Some(_) => {
                return Err(unusable(&active.name, "certificate", NOT_AN_AUTHORITY));
            }
            None => {
                let value = self.certificate_of(permit, active.clone()).await?;
                let absent = || field_absent(&active.name, "certificate");
                value.certificate.ok_or_else(absent)?;
            }
        }
        Ok(current)
    }

    /// Returns the permit's CA, ready to sign, from its active versions.
    ///
    /// Its active version signs, and must exist. With [`TransitionalParent::MaySign`], a newer transitional version signs
    /// instead.
    pub(super) async fn authority(
        &self,
        permit: &Permit<'_>,
        current: ActiveVersions,
        transitional_parent: TransitionalParent,
    ) -> Result<Authority, UseCaseError> {
        let read = current.as_read(permit.name());
        let active = current.active_certificate()?.clone();
        let (signing, trusted) = match current.transitional {
            Some(transitional)
                if transitional_parent == TransitionalParent::MaySign
                    && transitional.sequence > active.sequence =>
            {
                (transitional, Some(active))
            }
            transitional => (active, transitional),
        };
        permit.record_version(signing.credential_id, signing.id);
        let name = signing.name.clone();
        let issuer = signing.as_issuer();
        let trusted = match trusted {
            Some(version) => self.certificate_of(permit, version).await?.certificate,
            None => None,
        };
        let signing = self.certificate_of(permit, signing).await?;
        Authority::new(name, issuer, signing, trusted, read)
    }
}

/// The versions that [`VersionSelection::Current`] chooses.
#[derive(Default)]
pub(crate) struct ActiveVersions {
    /// The active version: the newest that is not transitional.
    pub(crate) active: Option<StoredVersion>,
    pub(super) transitional: Option<StoredVersion>,
}

impl ActiveVersions {
    pub(super) fn new(chosen: Vec<StoredVersion>) -> Self {
        let mut current = Self::default();
        for version in chosen {
            if version.attributes.is_transitional {
                current.transitional = Some(version);
            } else {
                current.active = Some(version);
            }
        }
        current
    }

    /// Returns the active version of a CA.
    ///
    /// # Errors
    /// [`UseCaseError::IssuerNotFound`] if it is not a certificate.
    pub(super) fn active_certificate(&self) -> Result<&StoredVersion, UseCaseError> {
        let active = self.active.as_ref();
        active
            .filter(|version| version.credential_type.is_certificate())
            .ok_or(UseCaseError::IssuerNotFound)
    }

    /// Returns a record of the read versions, to check that they are unchanged when a dependent version is written.
    pub(super) fn as_read(&self, name: &LookupName) -> ReadVersions {
        let versions = self.active.iter().chain(&self.transitional);
        ReadVersions {
            name: name.clone(),
            selection: VersionSelection::Current,
            versions: versions
                .map(|version| (version.id, version.attributes.is_transitional))
                .collect(),
        }
    }
}

/// A CA that is ready to sign, with its private key decrypted.
pub(super) struct Authority {
    /// The CA's name, with the casing of its first version.
    pub(super) name: CredentialName,
    pub(super) issuer: Option<IssuerVersion>,
    /// The certificate of the signing version, in PEM.
    pub(super) certificate: String,
    /// Its private key, in PEM.
    pub(super) private_key: Secret,
    /// The other trusted certificate during a rotation, PEM: the certificate of the transitional version, or of the active
    /// version if the transitional version signs. `None` if the CA has no other version in rotation.
    pub(super) trusted_certificate: Option<String>,
    pub(super) read: ReadVersions,
}

impl Authority {
    /// Creates an authority. Fails if the value of the signing version lacks its certificate or its private key.
    pub(super) fn new(
        name: CredentialName,
        issuer: Option<IssuerVersion>,
        signing: StoredCertificate,
        trusted_certificate: Option<String>,
        read: ReadVersions,
    ) -> Result<Self, UseCaseError> {
        let absent = |field| field_absent(&name, field);
        let certificate = signing.certificate.ok_or_else(|| absent("certificate"))?;
        let private_key = signing.private_key.ok_or_else(|| absent("private_key"))?;
        Ok(Self {
            name,
            issuer,
            certificate,
            private_key,
            trusted_certificate,
            read,
        })
    }
}

/// Whether the transitional version of a CA signs if it is newer than the active version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransitionalParent {
    /// The transitional version signs if it is newer.
    MaySign,
    /// The active version always signs.
    MayNotSign,
}

/// Returns the error for a CA that can't sign because a field of its value is missing.
pub(super) fn field_absent(authority: &CredentialName, field: &'static str) -> UseCaseError {
    unusable(authority, field, "is missing")
}

fn unusable(authority: &CredentialName, field: &'static str, rule: &'static str) -> UseCaseError {
    let rule = rule.into();
    UseCaseError::IssuerUnusable(authority.clone(), CertificateError { field, rule })
}

/// Returns the value with a second certificate in `ca`, after the issuing certificate. Each ends with a line break. A value
/// without `ca` stays unchanged.
fn with_trusted(value: &Secret, trusted: &str) -> Result<Secret, UseCaseError> {
    let mut fields = fields(value).map_err(|_| UseCaseError::StoredValueMalformed)?;
    let Some(signing) = fields.get("ca").filter(|ca| ca.get() != "null") else {
        return Ok(value.clone());
    };
    let signing =
        keywright_json::text(signing.get()).map_err(|_| UseCaseError::StoredValueMalformed)?;
    let both = format!("{}\n{}\n", signing.trim(), trusted.trim());
    let bytes_max = value.expose().len() + ESCAPED_BYTES_MAX * both.len();
    let both = to_raw_value(&both).map_err(|_| UseCaseError::StoredValueMalformed)?;
    fields.insert("ca".to_owned(), &both);
    to_secret(&fields, bytes_max)
}

/// The fields of a stored certificate.
#[derive(Clone)]
pub(crate) struct StoredCertificate {
    pub(crate) ca: Option<String>,
    pub(crate) certificate: Option<String>,
    pub(crate) private_key: Option<Secret>,
}

impl StoredCertificate {
    pub(crate) fn parse(value: &Secret) -> Result<Self, UseCaseError> {
        let mut fields = fields(value).map_err(|_| UseCaseError::StoredValueMalformed)?;
        let mut take =
            |name| take_text(&mut fields, name).map_err(|_| UseCaseError::StoredValueMalformed);
        Ok(Self {
            ca: take("ca")?,
            certificate: take("certificate")?,
            private_key: take("private_key")?.map(Secret::new),
        })
    }

    pub(crate) fn fields(&self) -> CertificateFields<'_> {
        CertificateFields {
            ca: self.ca.as_deref(),
            certificate: self.certificate.as_deref(),
            private_key: self.private_key.as_ref(),
            ca_is_stored: false,
        }
    }
}

/// The maximum size of a value, in bytes: of the text if the value is a string, otherwise of its JSON.
pub const VALUE_BYTES_MAX: usize = 65_536;

/// The maximum length of a public key of type rsa or ssh, and of a username of type user, in characters.
const LONG_FIELD_CHARACTERS_MAX: usize = 7_000;

/// Checks the size of a value.
///
/// # Errors
/// [`UseCaseError::ValueTooLarge`]
pub(crate) fn check_size(value: &Secret) -> Result<(), UseCaseError> {
    let json = value.expose();
    // A string is not longer than its JSON.
    if json.len() <= VALUE_BYTES_MAX {
        return Ok(());
    }
    let string = keywright_json::text(json).map(Zeroizing::new).ok();
    check_bytes(string.as_ref().map_or(json.len(), |string| string.len()))
}

/// Checks the length of the field of a value that has its own limit. Other types have no such field.
fn check_long_field(credential_type: &CredentialType, value: &Secret) -> Result<(), UseCaseError> {
    let what = match credential_type.as_str() {
        CredentialType::RSA | CredentialType::SSH => "public_key",
        CredentialType::USER => "username",
        _ => return Ok(()),
    };
    // A field is not longer than the JSON that contains it.
    if value.expose().len() <= LONG_FIELD_CHARACTERS_MAX {
        return Ok(());
    }
    // A value that is not an object has no fields.
    let mut fields = fields(value).unwrap_or_default();
    let text = take_text(&mut fields, what).ok().flatten();
    if text.is_some_and(|text| text.chars().count() > LONG_FIELD_CHARACTERS_MAX) {
        return Err(UseCaseError::ValueTooLarge {
            what,
            max: LONG_FIELD_CHARACTERS_MAX,
            unit: "characters",
        });
    }
    Ok(())
}

/// Checks a lower bound of the size of a value.
pub(crate) fn check_bytes(bytes: usize) -> Result<(), UseCaseError> {
    if bytes > VALUE_BYTES_MAX {
        return Err(UseCaseError::ValueTooLarge {
            what: "the value of a credential",
            max: VALUE_BYTES_MAX,
            unit: "bytes",
        });
    }
    Ok(())
}

/// Counts the steps of a loop that decrypts, and yields to the scheduler, so that requests on the same thread can run.
#[derive(Default)]
pub(crate) struct Pace {
    steps: usize,
}

impl Pace {
    /// Starts the next step. Yields before every step whose number is a multiple of [`STEPS_BEFORE_YIELD`].
    pub(crate) async fn step(&mut self) {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_BEFORE_YIELD) {
            yield_now().await;
        }
    }
}

async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The number of versions to decrypt or encrypt before yielding: less than a millisecond of work even for the largest
/// versions.
const STEPS_BEFORE_YIELD: usize = 8;

/// Maximum attempts when a concurrent write invalidates the inputs.
pub(super) const WRITE_ATTEMPTS_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn concatenated(value: &str) -> String {
        let value = Secret::new(value.to_owned());
        with_trusted(&value, "\n two\n\n")
            .unwrap()
            .expose()
            .to_owned()
    }

    #[test]
    fn both_certificates_are_trimmed_and_end_with_a_line_break() {
        assert_eq!(
            concatenated(r#"{"ca":"one \n","certificate":"c\n","private_key":null}"#),
            r#"{"ca":"one\ntwo\n","certificate":"c\n","private_key":null}"#
        );
    }

    #[test]
    fn a_value_without_ca_stays_unchanged() {
        for value in [r#"{"ca":null,"certificate":"c"}"#, r#"{"certificate":"c"}"#] {
            assert_eq!(concatenated(value), value);
        }
    }
}
