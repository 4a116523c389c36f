//! Certificates: `/api/v1/certificates`, and `/api/v1/bulk-regenerate`.

use reqwest::Method;
use serde::{Deserialize, Deserializer, Serialize};

use super::credentials::segment;
use crate::{Client, CredentialVersion, Error, client::Call};

/// A certificate without its contents.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CertificateSummary {
    /// The credential's name.
    pub name: String,
    /// The certificate's id, which differs from its versions' ids.
    pub id: String,
    /// The credential's type. `None` unless the request is for all types.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub credential_type: Option<String>,
    /// The versions, newest first.
    pub versions: Vec<ListedVersion>,
    /// The name of the CA that signed the latest version; the name of the certificate itself if self-signed, empty if unknown.
    #[serde(default, deserialize_with = "null_as_default")]
    pub signed_by: String,
    /// The names of the certificates that this certificate signed; in a list of all types, also of credentials of other types.
    #[serde(default, deserialize_with = "null_as_default")]
    pub signs: Vec<String>,
    /// The credentials of other types for which this certificate signed a certificate. Only [`Client::certificate`] returns
    /// them, and CredHub does not support them.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub issued: Vec<IssuedCredential>,
}

/// A credential for which a CA signed a certificate, but whose type is not `certificate`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IssuedCredential {
    /// The credential's name.
    pub name: String,
    /// The server's record; `None` if the caller may not read the credential.
    #[serde(flatten)]
    pub record: Option<IssuedRecord>,
}

/// The record of a certificate that a CA signed for a credential of another type.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IssuedRecord {
    /// The credential's type.
    #[serde(rename = "type")]
    pub credential_type: String,
    /// The id of the credential's latest version.
    pub version_id: String,
    /// The id of the CA version that signed, if known. The version may have been deleted.
    pub issuer_version_id: Option<String>,
    /// The serial number of the certificate, in hexadecimal; empty if unknown.
    pub serial_number: String,
    /// The expiry of the certificate: ISO 8601, UTC; empty if unknown.
    pub expiry_date: String,
}

/// A version of a certificate without its contents.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ListedVersion {
    /// The version's id.
    pub id: String,
    /// The expiry: ISO 8601, UTC; empty if unknown.
    #[serde(default, deserialize_with = "null_as_default")]
    pub expiry_date: String,
    /// Whether the version is transitional: returned alongside the active version, but not used for signing.
    #[serde(default, deserialize_with = "null_as_default")]
    pub transitional: bool,
    /// Whether the version is a CA certificate.
    #[serde(default, deserialize_with = "null_as_default")]
    pub certificate_authority: bool,
    /// Whether the version is self-signed.
    #[serde(default, deserialize_with = "null_as_default")]
    pub self_signed: bool,
    /// Whether the server generated the version, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<bool>,
}

/// The options of a regeneration. By default, all parameters keep their values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RegenerateCertificate {
    /// Whether the new version is transitional.
    pub set_as_transitional: bool,
    /// Whether the CA's transitional version signs if it is newer than the active version.
    pub allow_transitional_parent_to_sign: bool,
    /// A new key length, in bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_length: Option<u32>,
    /// A new validity period, in days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<u32>,
}

/// The version to make transitional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransitionalVersion<'a> {
    /// The version with this id.
    Id(&'a str),
    /// The latest version.
    Latest,
    /// No version: clears the flag.
    None,
}

/// The credentials to regenerate together. Set exactly one of `signed_by`, `generated_by` and `derived_from`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BulkRegenerate {
    /// Selects all credentials below the CA with this name, at every level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// Selects all readable credentials whose latest version was generated by the plugin with this digest. CredHub does not
    /// support this selection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generated_by: Option<String>,
    /// Selects all readable credentials whose latest version was derived from an older version of the credential with this
    /// name. CredHub does not support this selection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derived_from: Option<String>,
    /// Limits the selection to the credentials below this path. CredHub does not support this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Whether to only check the credentials. CredHub does not support dry runs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Whether to regenerate the other credentials if some fail. CredHub does not support this.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep_going: bool,
}

/// The result of a bulk regeneration.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BulkRegenerated {
    /// The names of the regenerated credentials; in a dry run, of the credentials that would be regenerated.
    pub regenerated_credentials: Vec<String>,
    /// The credentials that failed. `None` without [`BulkRegenerate::keep_going`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_credentials: Option<Vec<FailedCredential>>,
}

/// A credential that a bulk regeneration could not regenerate.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FailedCredential {
    /// The credential's name.
    pub name: String,
    /// The server's error message.
    pub error: String,
}

impl Client {
    /// Returns the certificates that the caller may read: all of them, or the one with this name. With `all_types`, also returns
    /// credentials of other types with a certificate; servers that do not support this return only certificates.
    pub async fn certificates(
        &self,
        name: Option<&str>,
        all_types: bool,
    ) -> Result<Vec<CertificateSummary>, Error> {
        let call = Call::new(Method::GET, CERTIFICATES)
            .query_if("all_types", all_types.then_some("true"))
            .query_if("name", name);
        let response: Listed = self.execute(&call).await?;
        Ok(response.certificates)
    }

    /// Returns the certificate with this name.
    pub async fn certificate(&self, name: &str) -> Result<CertificateSummary, Error> {
        let found = self.certificates(Some(name), false).await?;
        found.into_iter().next().ok_or(Error::ResponseEmpty)
    }

    /// Returns the versions of a certificate, newest first; with `current`, only the active version, followed by the transitional
    /// version, if any.
    pub async fn certificate_versions(
        &self,
        certificate_id: &str,
        current: bool,
    ) -> Result<Vec<CredentialVersion>, Error> {
        let call = Call::new(Method::GET, certificate_path(certificate_id, "versions"))
            .query_if("current", current.then_some("true"));
        self.execute(&call).await
    }

    /// Regenerates a certificate.
    pub async fn regenerate_certificate(
        &self,
        certificate_id: &str,
        options: &RegenerateCertificate,
    ) -> Result<CredentialVersion, Error> {
        let call = Call::new(Method::POST, certificate_path(certificate_id, "regenerate"));
        self.execute(&call.body(options)?).await
    }

    /// Moves the transitional flag. Returns the resulting active version, followed by the transitional version, if any.
    pub async fn move_transitional_version(
        &self,
        certificate_id: &str,
        to: TransitionalVersion<'_>,
    ) -> Result<Vec<CredentialVersion>, Error> {
        let version = match to {
            TransitionalVersion::Id(id) => Some(id),
            TransitionalVersion::Latest => Some("latest"),
            TransitionalVersion::None => None,
        };
        let path = certificate_path(certificate_id, "update_transitional_version");
        self.execute(&Call::new(Method::PUT, path).body(&MoveBody { version })?)
            .await
    }

    /// Regenerates many credentials in one transaction. A dry run only checks them.
    ///
    /// # Errors
    /// When one of the credentials can't be regenerated or the caller may not write it. Nothing changes in this case. With
    /// [`BulkRegenerate::keep_going`], the result lists these credentials instead.
    pub async fn regenerate_all(
        &self,
        selection: &BulkRegenerate,
    ) -> Result<BulkRegenerated, Error> {
        let call = Call::new(Method::POST, "/api/v1/bulk-regenerate");
        self.execute(&call.body(selection)?).await
    }
}

impl CredentialVersion {
    /// Returns the certificates in the field `ca` or `certificate` of a certificate's value. Omits other text: callers can set a
    /// private key in the same field.
    pub(crate) fn public_field(&self, name: &str) -> Option<String> {
        let text = self.value.field(name)?.text()?;
        Some(certificates_in(text.expose()).collect())
    }
}

#[derive(Deserialize)]
struct Listed {
    certificates: Vec<CertificateSummary>,
}

#[derive(Serialize)]
struct MoveBody<'a> {
    version: Option<&'a str>,
}

/// Deserializes null as the default, because other servers may use null for unknown values.
fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn certificate_path(certificate_id: &str, action: &str) -> String {
    format!("{CERTIFICATES}/{}/{action}", segment(certificate_id))
}

/// Returns the first certificate of a PEM text, with all whitespace removed. Equal results mean equal certificates. If the text
/// contains several CA certificates, the first belongs to the signing CA: a server with `concatenate_cas` appends the other.
pub(crate) fn first_certificate(pem: &str) -> String {
    let first = certificates_in(pem).next();
    let first = first.as_deref().unwrap_or(pem);
    first.split_whitespace().collect()
}

/// Returns each certificate of a PEM text with a trailing newline, without any other text or key.
pub(crate) fn certificates_in(pem: &str) -> impl Iterator<Item = String> {
    pem.split("-----BEGIN ").skip(1).filter_map(|block| {
        let (label, rest) = block.split_once(DASHES)?;
        let label = LABELS.into_iter().find(|known| *known == label)?;
        let (body, _) = rest.split_once(&format!("-----END {label}{DASHES}"))?;
        let is_whole = !body.contains(DASHES);
        is_whole.then(|| format!("-----BEGIN {label}{DASHES}{body}-----END {label}{DASHES}\n"))
    })
}

const CERTIFICATES: &str = "/api/v1/certificates";

/// The labels of certificates in PEM.
const LABELS: [&str; 2] = ["CERTIFICATE", "X509 CERTIFICATE"];

const DASHES: &str = "-----";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_of_a_summary_may_be_missing_or_null() {
        for fields in ["", r#","signed_by":null,"signs":null"#] {
            for of_version in [
                "",
                r#","expiry_date":null,"transitional":null,"self_signed":null"#,
            ] {
                let text = format!(
                    r#"{{"name":"/a","id":"1","versions":[{{"id":"2"{of_version}}}]{fields}}}"#
                );
                let summary: CertificateSummary = serde_json::from_str(&text).unwrap();
                assert_eq!((summary.signed_by.as_str(), summary.signs.len()), ("", 0));
                let version = &summary.versions[0];
                assert!(version.expiry_date.is_empty() && !version.transitional);
            }
        }
    }

    #[test]
    fn certificates_are_compared_regardless_of_line_breaks() {
        let [old, new] = ["old", "new"]
            .map(|body| format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----"));
        let cases = [
            (new.clone(), true),
            (format!("\n{new}\n").replace('\n', "\r\n"), true),
            (format!("{new}\n{old}\n"), true),
            (format!("{old}\n{new}\n"), false),
            (old.clone(), false),
            (String::new(), false),
        ];
        for (authorities, expected) in cases {
            let is_same = first_certificate(&authorities) == first_certificate(&new);
            assert_eq!(is_same, expected, "{authorities}");
        }
    }
}
