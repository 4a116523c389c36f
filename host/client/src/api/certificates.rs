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
    /// The certificate's id, which is none of a version.
    pub id: String,
    /// Its versions, newest first.
    pub versions: Vec<ListedVersion>,
    /// The name of the authority that signed the newest version; its own where it signed itself, empty where that is
    /// unknown.
    #[serde(default, deserialize_with = "null_as_default")]
    pub signed_by: String,
    /// The names of the certificates that it signed.
    #[serde(default, deserialize_with = "null_as_default")]
    pub signs: Vec<String>,
    /// The credentials of other types for which it signed a certificate. Only [`Client::certificate`] asks for them, and not
    /// all servers know them.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub issued: Vec<IssuedCredential>,
}

/// A credential of another type than certificate for which an authority signed a certificate.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IssuedCredential {
    /// The credential's name.
    pub name: String,
    /// What the server recorded; `None` if the caller may not read the credential.
    #[serde(flatten)]
    pub record: Option<IssuedRecord>,
}

/// What a server recorded when an authority signed for a credential of another type than certificate.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IssuedRecord {
    /// The credential's type.
    #[serde(rename = "type")]
    pub credential_type: String,
    /// The id of the credential's newest version.
    pub version_id: String,
    /// The id of the authority's version that signed, where that is known. It need not exist any more.
    pub issuer_version_id: Option<String>,
    /// The serial number of the certificate, in hexadecimal; empty where that is unknown.
    pub serial_number: String,
    /// When the certificate expires: ISO 8601, UTC; empty where that is unknown.
    pub expiry_date: String,
}

/// A version of a certificate without its contents.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ListedVersion {
    /// The id of this version.
    pub id: String,
    /// When it expires: ISO 8601, UTC; empty where that is unknown.
    #[serde(default, deserialize_with = "null_as_default")]
    pub expiry_date: String,
    /// Whether it is handed out beside the version in use, and does not sign.
    #[serde(default, deserialize_with = "null_as_default")]
    pub transitional: bool,
    /// Whether it may sign.
    #[serde(default, deserialize_with = "null_as_default")]
    pub certificate_authority: bool,
    /// Whether it is signed by itself.
    #[serde(default, deserialize_with = "null_as_default")]
    pub self_signed: bool,
    /// Whether the server made it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<bool>,
}

/// How a certificate is regenerated. Nothing said: as it was made before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RegenerateCertificate {
    /// The new version is transitional.
    pub set_as_transitional: bool,
    /// A transitional version of the authority may sign, where it is newer than the one that does.
    pub allow_transitional_parent_to_sign: bool,
    /// Another length of the key, in bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_length: Option<u32>,
    /// Another validity, in days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<u32>,
}

/// Where the transitional flag goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransitionalVersion<'a> {
    /// To the version with this id.
    Id(&'a str),
    /// To the newest version.
    Latest,
    /// Nowhere: it is cleared.
    None,
}

/// What is to be regenerated together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BulkRegenerate {
    #[serde(skip_serializing_if = "Option::is_none")]
    signed_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generated_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
}

impl Client {
    /// All certificates that the caller may read.
    ///
    /// # Errors
    /// As any request.
    pub async fn certificates(&self) -> Result<Vec<CertificateSummary>, Error> {
        let call = Call::new(Method::GET, CERTIFICATES);
        self.ask::<Listed>(&call)
            .await
            .map(|answer| answer.certificates)
    }

    /// The certificate of this name.
    ///
    /// # Errors
    /// When there is no such certificate, or the caller may not read it; and as any request.
    pub async fn certificate(&self, name: &str) -> Result<CertificateSummary, Error> {
        let call = Call::new(Method::GET, CERTIFICATES).query("name", name);
        let found = self.ask::<Listed>(&call).await?.certificates;
        found.into_iter().next().ok_or(Error::AnswerEmpty)
    }

    /// The versions of a certificate, newest first.
    ///
    /// # Errors
    /// As [`Client::certificate`].
    pub async fn certificate_versions(
        &self,
        certificate_id: &str,
    ) -> Result<Vec<CredentialVersion>, Error> {
        self.ask(&Call::new(Method::GET, below(certificate_id, "versions")))
            .await
    }

    /// The version of a certificate that is in use, and after it the transitional one, where there is one.
    ///
    /// # Errors
    /// As [`Client::certificate`].
    pub async fn current_certificate_versions(
        &self,
        certificate_id: &str,
    ) -> Result<Vec<CredentialVersion>, Error> {
        let call = Call::new(Method::GET, below(certificate_id, "versions"));
        self.ask(&call.query("current", "true")).await
    }

    /// Regenerates a certificate.
    ///
    /// # Errors
    /// When it can't be regenerated, or the caller may not write it; and as any request.
    pub async fn regenerate_certificate(
        &self,
        certificate_id: &str,
        how: &RegenerateCertificate,
    ) -> Result<CredentialVersion, Error> {
        let call = Call::new(Method::POST, below(certificate_id, "regenerate"));
        self.ask(&call.body(how)?).await
    }

    /// Moves the transitional flag. Returns the version that is then in use, and the transitional one, where there is one.
    ///
    /// # Errors
    /// When the version is none of this certificate, or the caller may not write it; and as any request.
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
        let path = below(certificate_id, "update_transitional_version");
        self.ask(&Call::new(Method::PUT, path).body(&MoveBody { version })?)
            .await
    }

    /// Regenerates all certificates that an authority signed, and what those signed, and returns their names.
    ///
    /// # Errors
    /// When the caller may not write one of them, in which case nothing is changed; and as any request.
    pub async fn bulk_regenerate(&self, signed_by: &str) -> Result<Vec<String>, Error> {
        self.regenerate_all(&BulkRegenerate::signed_by(signed_by))
            .await
    }

    /// Regenerates many credentials, all of them or none, and returns their names; in a dry run, the names of those that would be.
    ///
    /// # Errors
    /// When the caller may not write one of them, in which case nothing is changed; and as any request.
    pub async fn regenerate_all(&self, which: &BulkRegenerate) -> Result<Vec<String>, Error> {
        let call = Call::new(Method::POST, "/api/v1/bulk-regenerate");
        let answer: Regenerated = self.ask(&call.body(which)?).await?;
        Ok(answer.regenerated_credentials)
    }
}

impl BulkRegenerate {
    /// All certificates that an authority signed, and what those signed.
    #[must_use]
    pub fn signed_by(authority: impl Into<String>) -> Self {
        Self {
            signed_by: Some(authority.into()),
            ..Self::default()
        }
    }

    /// All credentials that the caller may read and whose newest version the plugin with this digest made. Not all servers know
    /// it.
    #[must_use]
    pub fn generated_by(digest: impl Into<String>) -> Self {
        Self {
            generated_by: Some(digest.into()),
            ..Self::default()
        }
    }

    /// Of what a plugin made, only what is below a path.
    #[must_use]
    pub fn below(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Regenerates nothing, and only tells what would be. Not all servers know it.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }
}

impl CredentialVersion {
    /// A member of a certificate's value that is no secret: `ca` or `certificate`.
    pub(crate) fn public_member(&self, name: &str) -> Option<String> {
        let text = self.value.member(name)?.text()?;
        Some(text.expose().to_owned())
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

#[derive(Deserialize)]
struct Regenerated {
    regenerated_credentials: Vec<String>,
}

/// Other servers may write null where nothing is known.
fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn below(certificate_id: &str, what: &str) -> String {
    format!("{CERTIFICATES}/{}/{what}", segment(certificate_id))
}

const CERTIFICATES: &str = "/api/v1/certificates";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_may_leave_out_what_is_not_known_or_say_null() {
        for members in ["", r#","signed_by":null,"signs":null"#] {
            for of_version in [
                "",
                r#","expiry_date":null,"transitional":null,"self_signed":null"#,
            ] {
                let text = format!(
                    r#"{{"name":"/a","id":"1","versions":[{{"id":"2"{of_version}}}]{members}}}"#
                );
                let summary: CertificateSummary = serde_json::from_str(&text).unwrap();
                assert_eq!((summary.signed_by.as_str(), summary.signs.len()), ("", 0));
                let version = &summary.versions[0];
                assert!(version.expiry_date.is_empty() && !version.transitional);
            }
        }
    }
}
