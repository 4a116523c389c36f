//! The columns of a version, and decoding rows.

use chrono::{DateTime, Utc};
use keywright_core::{
    certificate::{CertificateFacts, SerialNumber},
    credential::{
        CredentialName, CredentialType, FoundCredential, GeneratedCredential, IssuedCredential,
        IssuedRecord, IssuerVersion, Lifetime, ListedCredential, ListedVersion, PluginIdentity,
        StoredVersion, VersionAttributes,
    },
    ports::{Envelope, NewVersion, NewestSize, RepositoryError, SignedName, VersionsSize},
};

use crate::statement::{Columns, Decoded, Parameter, Row, column, column_at, small, time};

/// The envelope of a version. A nonce or a ciphertext that is longer than any server writes is null, because reading it could exhaust
/// the memory. It is decoded as empty, can't be decrypted, and counts as modified.
macro_rules! envelope {
    () => {
        "v.encryption_key_id, case when length(v.nonce) <= 64 then v.nonce end as nonce,
         case when length(v.ciphertext) <= 33554432 then v.ciphertext end as ciphertext"
    };
}
pub(crate) use envelope;

/// The columns of `credential_version` that [`stored_version_from`] decodes, in its order, except the version's id and sequence.
macro_rules! version_columns {
    () => {
        concat!(
            "v.created_at, v.is_transitional, v.is_generated, v.expires_at, v.is_certificate_authority, v.is_self_signed,
            v.key_length_bits, v.serial_number, v.signed_by, v.issuer_version_id, v.issuer_expires_at, v.plugin_name,
            v.plugin_version, v.plugin_digest, v.interface_version, ",
            $crate::credential::row::envelope!(),
            ", v.value_expires_at, v.rotate_at"
        )
    };
}
pub(crate) use version_columns;

/// The time from which the latest version should not be used any more, repeated in its credential.
macro_rules! due_at {
    () => {
        "coalesce(v.rotate_at, v.value_expires_at, v.expires_at)"
    };
}
pub(crate) use due_at;

/// A column of `credential_version` that is written with a new version, except the sequence of the credential.
pub(super) struct NewColumn {
    pub(super) name: &'static str,
    /// Returns the value for a version, or a null of the column's type.
    pub(super) value: fn(Option<&NewVersion>) -> Parameter,
}

macro_rules! new_columns {
    ($version:ident: $($name:ident = $value:expr;)+) => {
        &[$(NewColumn {
            name: stringify!($name),
            value: |version| version.and_then(|$version| $value).into(),
        }),+]
    };
}

const COLUMNS: &[NewColumn] = new_columns! { version:
    id = Some(version.id);
    created_at = Some(version.created_at.timestamp_millis());
    is_transitional = Some(version.attributes.is_transitional);
    is_generated = version.attributes.is_generated;
    value_expires_at = version.attributes.lifetime.expires_at.map(|time| time.timestamp_millis());
    rotate_at = version.attributes.lifetime.rotate_at.map(|time| time.timestamp_millis());
    plugin_name = plugin(version).map(|plugin| plugin.name.as_str());
    plugin_version = plugin(version).map(|plugin| plugin.version.as_str());
    plugin_digest = plugin(version).map(|plugin| plugin.digest.as_str());
    interface_version = plugin(version).map(|plugin| plugin.interface_version.as_str());
    encryption_key_id = Some(version.envelope.key_id);
    nonce = Some(version.envelope.nonce.as_slice());
    ciphertext = Some(version.envelope.ciphertext.as_slice());
};

/// The columns of certificates, and of versions of other types with an issuer. Batches do not write them.
const COLUMNS_IF_SIGNED: &[NewColumn] = new_columns! { version:
    expires_at = facts(version).map(|facts| facts.expires_at.timestamp_millis());
    is_certificate_authority = facts(version).map(|facts| facts.is_certificate_authority);
    is_self_signed = facts(version).map(|facts| facts.is_self_signed);
    key_length_bits = facts(version).map(|facts| i64::from(facts.key_length_bits));
    serial_number = facts(version)?.serial_number.as_ref().map(SerialNumber::octets);
    signed_by = signer(version).map(CredentialName::as_str);
    signed_by_folded = signer(version).map(CredentialName::folded);
    issuer_version_id = version.attributes.issuer?.version_id;
    issuer_expires_at = version.attributes.issuer.map(|issuer| issuer.expires_at.timestamp_millis());
};

/// Returns the columns of new versions. Omits [`COLUMNS_IF_SIGNED`] unless `may_be_signed`.
pub(super) fn new_columns(may_be_signed: bool) -> impl Iterator<Item = &'static NewColumn> {
    let if_signed = COLUMNS_IF_SIGNED.iter().filter(move |_| may_be_signed);
    COLUMNS.iter().chain(if_signed)
}

impl NewColumn {
    /// Returns the column's type in PostgreSQL.
    pub(super) fn type_name(&self) -> &'static str {
        match (self.value)(None) {
            Parameter::Boolean(_) => "boolean",
            Parameter::Bytes(_) => "bytea",
            Parameter::Integer(_) => "bigint",
            Parameter::Text(_) => "text",
            Parameter::Uuid(_) => "uuid",
        }
    }
}

fn plugin(version: &NewVersion) -> Option<&PluginIdentity> {
    version.attributes.provenance.as_ref()
}

fn facts(version: &NewVersion) -> Option<&CertificateFacts> {
    version.attributes.certificate.as_ref()
}

fn signer(version: &NewVersion) -> Option<&CredentialName> {
    version.attributes.signed_by.as_ref()
}

/// Decodes the columns of `select_version!`.
impl Decoded for StoredVersion {
    fn decode(row: &impl Columns) -> Result<Self, RepositoryError> {
        stored_version_from(row, 0)
    }
}

/// Decodes a version from the columns of `select_version!`, which begin at `first`.
pub(crate) fn stored_version_from(
    row: &impl Columns,
    first: usize,
) -> Result<StoredVersion, RepositoryError> {
    let credential_type: String = column_at!(row, first + 4, "credential", "credential_type")?;
    let signed_by: Option<String> = column_at!(row, first + 13, "credential_version", "signed_by")?;
    let nonce: Option<Vec<u8>> = column_at!(row, first + 21, "credential_version", "nonce")?;
    let ciphertext: Option<Vec<u8>> =
        column_at!(row, first + 22, "credential_version", "ciphertext")?;
    Ok(StoredVersion {
        id: column_at!(row, first, "credential_version", "id")?,
        sequence: column_at!(row, first + 1, "credential_version", "sequence")?,
        credential_id: column_at!(row, first + 2, "credential_version", "credential_id")?,
        name: CredentialName::from_stored(column_at!(row, first + 3, "credential", "name")?),
        credential_type: parse_type(&credential_type)?,
        created_at: time(
            column_at!(row, first + 5, "credential_version", "created_at")?,
            "credential_version.created_at",
        )?,
        attributes: VersionAttributes {
            is_transitional: column_at!(row, first + 6, "credential_version", "is_transitional")?,
            is_generated: column_at!(row, first + 7, "credential_version", "is_generated")?,
            certificate: certificate(row, first + 8)?,
            signed_by: signed_by.map(CredentialName::from_stored),
            issuer: issuer(row, first + 14)?,
            provenance: provenance(row, first + 16)?,
            lifetime: lifetime(row, first + 23)?,
        },
        envelope: Envelope {
            key_id: column_at!(row, first + 20, "credential_version", "encryption_key_id")?,
            nonce: nonce.unwrap_or_default(),
            ciphertext: ciphertext.unwrap_or_default(),
        },
    })
}

pub(crate) fn name(row: &Row) -> Result<CredentialName, RepositoryError> {
    Ok(CredentialName::from_stored(column!(
        row,
        "credential",
        "name"
    )?))
}

pub(super) fn versions_size(row: &Row) -> Result<VersionsSize, RepositoryError> {
    Ok(VersionsSize {
        count: small(
            column!(row, "credential_version", "versions")?,
            "credential_version",
        )?,
        ciphertext_bytes: ciphertext_bytes(column!(
            row,
            "credential_version",
            "ciphertext_bytes"
        )?)?,
    })
}

/// Decodes the result of a query for the sizes of latest versions.
impl Decoded for NewestSize {
    fn decode(row: &impl Columns) -> Result<Self, RepositoryError> {
        let name = column_at!(row, 0, "credential", "name")?;
        let bytes = column_at!(row, 1, "credential_version", "ciphertext_bytes")?;
        Ok(Self {
            name: CredentialName::from_stored(name),
            ciphertext_bytes: ciphertext_bytes(bytes)?,
        })
    }
}

fn ciphertext_bytes(bytes: i64) -> Result<usize, RepositoryError> {
    usize::try_from(bytes)
        .map_err(|_| RepositoryError::Inconsistent("credential_version.ciphertext"))
}

pub(super) fn signed_name(row: &Row) -> Result<SignedName, RepositoryError> {
    let is_authority: Option<bool> =
        column!(row, "credential_version", "is_certificate_authority")?;
    Ok(SignedName {
        name: name(row)?,
        is_authority: credential_type(row)?.is_certificate() && is_authority.unwrap_or_default(),
    })
}

/// Decodes the columns of [`super::statements::ISSUED_BY`].
pub(super) fn issued_credential(row: &Row) -> Result<IssuedCredential, RepositoryError> {
    let expires_at: Option<i64> = column!(row, "credential_version", "expires_at")?;
    let serial_number: Option<Vec<u8>> = column!(row, "credential_version", "serial_number")?;
    Ok(IssuedCredential {
        name: name(row)?,
        record: Some(IssuedRecord {
            credential_type: credential_type(row)?,
            version_id: column!(row, "credential_version", "id")?,
            issuer_version_id: column!(row, "credential_version", "issuer_version_id")?,
            serial_number: serial_number.map(SerialNumber::new),
            expires_at: optional_time(expires_at, "credential_version.expires_at")?,
        }),
    })
}

/// Decodes the columns of `select_found!` and `select_found_expiring!`.
pub(super) fn found_credential(row: &Row) -> Result<FoundCredential, RepositoryError> {
    let expires_at: Option<i64> = column!(row, "credential", "expires_at")?;
    let rotate_at: Option<i64> = column!(row, "credential_version", "rotate_at")?;
    Ok(FoundCredential {
        name: name(row)?,
        version_created_at: nearest_time(column!(row, "credential", "version_created_at")?),
        expires_at: expires_at.map(nearest_time),
        rotate_at: rotate_at.map(nearest_time),
        is_imported: false,
        is_stale: None,
    })
}

/// Decodes the columns of `select_derived_from!`.
pub(super) fn derived_credential(row: &Row) -> Result<FoundCredential, RepositoryError> {
    let is_derived_from_active: bool =
        column!(row, "credential_version", "is_derived_from_active")?;
    Ok(FoundCredential {
        is_stale: Some(!is_derived_from_active),
        ..found_credential(row)?
    })
}

/// Decodes the columns of `LIST`.
pub(super) fn listed_credential(row: &Row) -> Result<ListedCredential, RepositoryError> {
    let due_at: Option<i64> = column!(row, "credential", "due_at")?;
    Ok(ListedCredential {
        name: name(row)?,
        credential_type: credential_type(row)?,
        version_created_at: nearest_time(column!(row, "credential", "version_created_at")?),
        due_at: due_at.map(nearest_time),
    })
}

/// Decodes the columns of `select_generated_by!`.
pub(super) fn generated_credential(row: &Row) -> Result<GeneratedCredential, RepositoryError> {
    let sequence: i64 = column!(row, "credential_version", "sequence")?;
    let newest_sequence: i64 = column!(row, "credential", "newest_sequence")?;
    let is_generated: Option<bool> = column!(row, "credential_version", "is_generated")?;
    Ok(GeneratedCredential {
        found: FoundCredential {
            is_imported: is_generated != Some(true),
            ..found_credential(row)?
        },
        is_newest: sequence == newest_sequence,
    })
}

/// Decodes a version from the columns of `select_certificates!`.
pub(super) fn listed_version(row: &Row) -> Result<ListedVersion, RepositoryError> {
    let signed_by: Option<String> = column!(row, "credential_version", "signed_by")?;
    Ok(ListedVersion {
        id: column!(row, "credential_version", "id")?,
        is_transitional: column!(row, "credential_version", "is_transitional")?,
        is_generated: column!(row, "credential_version", "is_generated")?,
        facts: certificate(row, CERTIFICATE_OF_LISTED)?,
        signed_by: signed_by.map(CredentialName::from_stored),
    })
}

pub(super) fn credential_type(row: &Row) -> Result<CredentialType, RepositoryError> {
    let text: String = column!(row, "credential", "credential_type")?;
    parse_type(&text)
}

fn parse_type(text: &str) -> Result<CredentialType, RepositoryError> {
    CredentialType::parse(text)
        .map_err(|_| RepositoryError::Inconsistent("credential.credential_type"))
}

/// Decodes the facts of a certificate, whose columns begin at `first`.
fn certificate(
    row: &impl Columns,
    first: usize,
) -> Result<Option<CertificateFacts>, RepositoryError> {
    let Some(expires_at) = column_at!(row, first, "credential_version", "expires_at")? else {
        return Ok(None);
    };
    let serial_number: Option<Vec<u8>> =
        column_at!(row, first + 4, "credential_version", "serial_number")?;
    Ok(Some(CertificateFacts {
        expires_at: time(expires_at, "credential_version.expires_at")?,
        is_certificate_authority: column_at!(
            row,
            first + 1,
            "credential_version",
            "is_certificate_authority"
        )?,
        is_self_signed: column_at!(row, first + 2, "credential_version", "is_self_signed")?,
        key_length_bits: small(
            column_at!(row, first + 3, "credential_version", "key_length_bits")?,
            "credential_version.key_length_bits",
        )?,
        serial_number: serial_number.map(SerialNumber::new),
    }))
}

fn lifetime(row: &impl Columns, first: usize) -> Result<Lifetime, RepositoryError> {
    Ok(Lifetime {
        expires_at: optional_time(
            column_at!(row, first, "credential_version", "value_expires_at")?,
            "credential_version.value_expires_at",
        )?,
        rotate_at: optional_time(
            column_at!(row, first + 1, "credential_version", "rotate_at")?,
            "credential_version.rotate_at",
        )?,
    })
}

fn optional_time(
    milliseconds: Option<i64>,
    column: &'static str,
) -> Result<Option<DateTime<Utc>>, RepositoryError> {
    milliseconds.map(|found| time(found, column)).transpose()
}

/// Converts milliseconds since the Unix epoch to the nearest time from year 0 to 9999, so that a damaged row does not fail a whole
/// list. Reading the credential fails.
fn nearest_time(milliseconds: i64) -> DateTime<Utc> {
    let milliseconds = milliseconds.clamp(TIME_MIN, TIME_MAX);
    DateTime::from_timestamp_millis(milliseconds).unwrap_or_default()
}

/// 0000-01-01T00:00:00Z, in milliseconds since the Unix epoch.
const TIME_MIN: i64 = -62_167_219_200_000;

/// 9999-12-31T23:59:59.999Z, in milliseconds since the Unix epoch.
const TIME_MAX: i64 = 253_402_300_799_999;

fn issuer(row: &impl Columns, first: usize) -> Result<Option<IssuerVersion>, RepositoryError> {
    let Some(expires_at) = column_at!(row, first + 1, "credential_version", "issuer_expires_at")?
    else {
        return Ok(None);
    };
    Ok(Some(IssuerVersion {
        version_id: column_at!(row, first, "credential_version", "issuer_version_id")?,
        expires_at: time(expires_at, "credential_version.issuer_expires_at")?,
    }))
}

fn provenance(row: &impl Columns, first: usize) -> Result<Option<PluginIdentity>, RepositoryError> {
    let Some(name) = column_at!(row, first, "credential_version", "plugin_name")? else {
        return Ok(None);
    };
    Ok(Some(PluginIdentity {
        name,
        version: column_at!(row, first + 1, "credential_version", "plugin_version")?,
        digest: column_at!(row, first + 2, "credential_version", "plugin_digest")?,
        interface_version: column_at!(row, first + 3, "credential_version", "interface_version")?,
    }))
}

/// The first column with facts of a certificate in `select_certificates!`.
const CERTIFICATE_OF_LISTED: usize = 5;
