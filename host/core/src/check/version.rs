//! Checking a version: decrypting it and comparing its columns with its content and with the CA version that signed it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use chrono::{DateTime, Utc};
use keywright_json::Checked;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::{finding::Fault, reading::unless_unavailable};
use crate::{
    Secret,
    certificate::CertificateFacts,
    credential::{
        Content, CredentialName, CredentialType, IssuerVersion, SealedFor, StoredCertificate,
        StoredVersion,
    },
    ports::{
        CertificateError, CertificateFields, Certificates, CheckRepository, CheckedRow,
        CheckedVersion, RepositoryError, SealContext, SealError, Sealer,
    },
};

pub(super) struct VersionChecker<'a> {
    pub(super) repository: &'a dyn CheckRepository,
    pub(super) sealer: &'a dyn Sealer,
    pub(super) certificates: &'a dyn Certificates,
    /// The CA versions that were looked up last; `None` if a version does not exist or can't be read.
    pub(super) issuers: HashMap<Uuid, Option<Arc<Issuer>>>,
}

/// A CA version.
pub(super) struct Issuer {
    name: CredentialName,
    /// Its certificate, in PEM.
    certificate: String,
    /// The end of the certificate's validity.
    expires_at: DateTime<Utc>,
}

impl VersionChecker<'_> {
    pub(super) async fn faults(
        &mut self,
        version: &CheckedVersion,
    ) -> Result<Vec<Fault>, RepositoryError> {
        let mut faults = Vec::new();
        if version.name.is_none() {
            faults.push(Fault::VersionWithoutCredential);
        }
        let stored = match &version.stored {
            CheckedRow::Read(stored) => stored,
            CheckedRow::Malformed(column) => {
                // The columns of a missing credential are missing, too.
                if version.name.is_some() {
                    faults.push(Fault::RowMalformed(column));
                }
                return Ok(faults);
            }
        };
        if !version.has_key_record {
            faults.push(Fault::KeyWithoutRecord(stored.envelope.key_id));
        }
        if stored
            .attributes
            .signed_by
            .as_ref()
            .map(CredentialName::folded)
            != version.signed_by_folded
        {
            faults.push(Fault::SignerDiffers("signed_by_folded"));
        }
        let content = self.opened_for_its_credential(stored, &mut faults);
        if let Ok(content) = &content
            && inputs_by_name(content) != version.inputs
        {
            faults.push(Fault::InputsDiffer);
        }
        match content {
            Err(fault) => faults.push(fault),
            Ok(content) if stored.credential_type.is_certificate() => {
                self.check_certificate(stored, &content, &mut faults)
                    .await?;
            }
            Ok(content) => {
                check_value(stored, &content.value, &mut faults);
                self.check_record(stored, &content.value, &mut faults)
                    .await?;
            }
        }
        Ok(faults)
    }

    async fn issuer(&mut self, id: Uuid) -> Result<Option<Arc<Issuer>>, RepositoryError> {
        if let Some(known) = self.issuers.get(&id) {
            return Ok(known.clone());
        }
        let read = unless_unavailable(self.repository.version_by_id(id).await)?;
        // The check of the version itself reports that it can't be read.
        let issuer = match read.unwrap_or_default().map(|version| version.stored) {
            Some(CheckedRow::Read(stored)) => self.readable_issuer(*stored).map(Arc::new),
            Some(CheckedRow::Malformed(_)) | None => None,
        };
        if self.issuers.len() >= ISSUERS_MAX {
            self.issuers.clear();
        }
        self.issuers.insert(id, issuer.clone());
        Ok(issuer)
    }

    fn readable_issuer(&self, stored: StoredVersion) -> Option<Issuer> {
        let content = Content::from_plaintext(&self.plaintext(&stored).ok()?).ok()?;
        let certificate = StoredCertificate::parse(&content.value).ok()?.certificate?;
        let expires_at = self.certificates.facts(&certificate).ok()?.expires_at;
        Some(Issuer {
            name: stored.name,
            certificate,
            expires_at,
        })
    }

    /// Decrypts a version. Also compares the credential with the credential that the version was encrypted for.
    fn opened_for_its_credential(
        &self,
        stored: &StoredVersion,
        faults: &mut Vec<Fault>,
    ) -> Result<Content, Fault> {
        let plaintext = self.plaintext(stored)?;
        let sealed_for =
            SealedFor::from_plaintext(&plaintext).map_err(|_| Fault::ContentMalformed)?;
        let (name_differs, type_differs) = sealed_for.differences(stored);
        if name_differs {
            faults.push(Fault::NameDiffers);
        }
        if type_differs {
            faults.push(Fault::TypeDiffers);
        }
        let content = Content::from_plaintext(&plaintext).map_err(|_| Fault::ContentMalformed)?;
        content
            .parsed_parameters()
            .map_err(|_| Fault::ContentMalformed)?;
        Ok(content)
    }

    fn plaintext(&self, stored: &StoredVersion) -> Result<Secret, Fault> {
        let record = SealContext {
            version_id: stored.id,
            name: &stored.name.lookup(),
        };
        let opened = self.sealer.open(record, &stored.envelope);
        opened.map_err(|failure| match failure {
            SealError::KeyUnknown(key_id) => Fault::KeyUnknown(key_id),
            SealError::KeyManagementUnavailable(key_id) => Fault::KeyNotCompared(key_id),
            SealError::KeyExhausted(_)
            | SealError::NotAuthentic
            | SealError::SealingFailed
            | SealError::UsageNotCounted => Fault::NotAuthentic,
        })
    }

    async fn check_certificate(
        &mut self,
        stored: &StoredVersion,
        content: &Content,
        faults: &mut Vec<Fault>,
    ) -> Result<(), RepositoryError> {
        let Ok(value) = StoredCertificate::parse(&content.value) else {
            faults.push(Fault::ValueMalformed);
            return Ok(());
        };
        match self.certificates.check_stored(value.fields()) {
            Err(refused) => faults.push(refused.into()),
            Ok(facts) => check_columns(stored, facts.as_ref(), faults),
        }
        if let Some(trusted_ca) = &content.trusted_ca
            && let Err(refused) = self.certificates.facts(trusted_ca)
        {
            faults.push(Fault::CertificateRefused(CertificateError {
                field: "trusted_ca",
                ..refused
            }));
        }
        self.check_issuer(stored, &value, faults).await
    }

    /// Checks the columns of a type other than certificate: without an issuer, a field of the value must be the recorded
    /// certificate. Does not check a certificate that an issuer signed, because its position in the value depends on the plugin.
    async fn check_record(
        &mut self,
        stored: &StoredVersion,
        value: &Secret,
        faults: &mut Vec<Fault>,
    ) -> Result<(), RepositoryError> {
        let Some(recorded) = stored.attributes.issuer else {
            let is_recorded = |facts| self.has_certificate(value, facts);
            if !stored
                .attributes
                .certificate
                .as_ref()
                .is_none_or(is_recorded)
            {
                faults.push(Fault::CertificateColumnDiffers("expires_at"));
            }
            return Ok(());
        };
        if let Some(issuer_id) = recorded.version_id
            && let Some(issuer) = self.issuer(issuer_id).await?
        {
            check_signer(stored, recorded, &issuer, faults);
        }
        Ok(())
    }

    /// Returns whether a field of a value is a certificate with these facts.
    fn has_certificate(&self, value: &Secret, facts: &CertificateFacts) -> bool {
        let fields = keywright_json::fields(value.expose()).unwrap_or_default();
        fields.iter().any(|(_, field)| {
            let text = keywright_json::text(field.get()).map(Zeroizing::new);
            let found = text.map(|text| self.certificates.facts(&text));
            matches!(found, Ok(Ok(found)) if found == *facts)
        })
    }

    /// Checks that the recorded CA version signed the certificate, if that version still exists.
    async fn check_issuer(
        &mut self,
        stored: &StoredVersion,
        value: &StoredCertificate,
        faults: &mut Vec<Fault>,
    ) -> Result<(), RepositoryError> {
        let Some(recorded) = stored.attributes.issuer else {
            return Ok(());
        };
        let Some(issuer_id) = recorded.version_id else {
            let ca = value.ca.as_deref().map(|ca| self.certificates.facts(ca));
            if let Some(Ok(ca)) = ca
                && ca.expires_at != recorded.expires_at
            {
                faults.push(Fault::CertificateColumnDiffers("issuer_expires_at"));
            }
            return Ok(());
        };
        let Some(issuer) = self.issuer(issuer_id).await? else {
            return Ok(());
        };
        check_signer(stored, recorded, &issuer, faults);
        let fields = CertificateFields {
            ca: Some(&issuer.certificate),
            certificate: value.certificate.as_deref(),
            ..CertificateFields::default()
        };
        if let Err(refused) = self.certificates.check_stored(fields) {
            faults.push(Fault::IssuerRefused {
                issuer_id,
                rule: refused.rule,
            });
        }
        Ok(())
    }
}

/// Returns the inputs in a version's content, in the form of their rows: version ids by folded name.
fn inputs_by_name(content: &Content) -> BTreeMap<String, Uuid> {
    let inputs = content.inputs.iter();
    inputs
        .map(|input| (input.name.folded(), input.version_id))
        .collect()
}

/// Compares the columns about the signer with the CA version.
fn check_signer(
    stored: &StoredVersion,
    recorded: IssuerVersion,
    issuer: &Issuer,
    faults: &mut Vec<Fault>,
) {
    if issuer.expires_at != recorded.expires_at {
        faults.push(Fault::CertificateColumnDiffers("issuer_expires_at"));
    }
    if stored
        .attributes
        .signed_by
        .as_ref()
        .map(CredentialName::folded)
        != Some(issuer.name.folded())
    {
        faults.push(Fault::SignerDiffers("signed_by"));
    }
}

/// Checks a value of a built-in type. Accepts any JSON for other types, whose values plugins define.
fn check_value(stored: &StoredVersion, value: &Secret, faults: &mut Vec<Fault>) {
    let has_field = |value: Checked<'_>, keys: &[&str]| {
        let fields = value.fields().unwrap_or_default();
        fields.iter().any(|(key, _)| keys.contains(&key.as_str()))
    };
    let fits = |value: Checked<'_>| match stored.credential_type.as_str() {
        CredentialType::VALUE | CredentialType::PASSWORD => value.is_string(),
        CredentialType::JSON => value.is_object(),
        CredentialType::USER => has_field(value, &["password"]),
        CredentialType::RSA | CredentialType::SSH => {
            has_field(value, &["public_key", "private_key"])
        }
        _ => true,
    };
    if !keywright_json::check(value.expose()).is_ok_and(fits) {
        faults.push(Fault::ValueMalformed);
    }
}

/// Compares the columns with the certificate. Without a certificate, they must be empty.
fn check_columns(
    stored: &StoredVersion,
    found: Option<&CertificateFacts>,
    faults: &mut Vec<Fault>,
) {
    let (columns, found) = match (&stored.attributes.certificate, found) {
        (None, None) => return,
        (Some(columns), Some(found)) => (columns, found),
        (Some(_), None) | (None, Some(_)) => {
            faults.push(Fault::CertificateColumnDiffers("expires_at"));
            return;
        }
    };
    // A set certificate is not recorded as self-signed if it is a leaf or was set with a stored CA. A certificate that was
    // generated without a CA is always recorded as self-signed.
    let must_be_recorded =
        stored.attributes.is_generated == Some(true) && stored.attributes.issuer.is_none();
    let is_self_signed_consistent = if columns.is_self_signed {
        found.is_self_signed
    } else {
        !(found.is_self_signed && must_be_recorded)
    };
    let columns = [
        ("expires_at", columns.expires_at == found.expires_at),
        (
            "is_certificate_authority",
            columns.is_certificate_authority == found.is_certificate_authority,
        ),
        ("is_self_signed", is_self_signed_consistent),
        (
            "key_length_bits",
            columns.key_length_bits == found.key_length_bits,
        ),
        (
            "serial_number",
            columns.serial_number.is_none() || columns.serial_number == found.serial_number,
        ),
    ];
    let differing = columns.into_iter().filter(|(_, is_equal)| !is_equal);
    faults.extend(differing.map(|(column, _)| Fault::CertificateColumnDiffers(column)));
}

/// The maximum number of cached versions.
const ISSUERS_MAX: usize = 256;
