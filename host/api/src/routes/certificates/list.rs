//! `GET /api/v1/certificates`: all certificates, or the one that the query names.

use std::sync::Arc;

use axum::{Extension, extract::State, http::Uri, response::Response};
use keywright_core::{
    authorization::Caller,
    certificate::SerialNumber,
    credential::{CertificateSummary, CredentialName, IssuedCredential, ListedVersion, LookupName},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::failed;
use crate::{
    Api,
    audit::told,
    description::{Described, Parameter, Tag},
    request::{QueryParameters, QueryRefused},
    response::{ApiFailure, LazyList, rendered, timestamp},
};

/// The certificate that is asked for; none: all.
struct ListRequest {
    name: Option<LookupName>,
}

impl ListRequest {
    fn read(query: &QueryParameters) -> Result<Self, QueryRefused> {
        let name = match query.text("name")? {
            Some(_) => Some(LookupName::new(query.required("name")?)),
            None => None,
        };
        Ok(Self { name })
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Certificates")]
struct ListResponse<'a> {
    #[schemars(with = "Vec<SummaryBody<'a>>")]
    certificates: LazyList<'a, SummaryBody<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CertificateSummary")]
struct SummaryBody<'a> {
    /// The credential's name.
    name: &'a str,
    /// The certificate's id, by which it is addressed. A credential that is deleted and made anew has another one.
    id: Uuid,
    /// Its versions, newest first.
    versions: Vec<ListedBody>,
    /// The name of the authority that signed it, its own where it is self-signed; empty where that is not known.
    signed_by: &'a str,
    /// The names of the certificates that it signed.
    signs: Vec<&'a str>,
    /// The credentials of other types for which it signed a certificate, by their newest versions; absent if there are none, and
    /// in a list of all certificates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    issued: Vec<IssuedBody<'a>>,
}

/// A credential of another type for which an authority signed. The caller gets the name alone of a credential that it may not
/// read.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "IssuedCredential")]
struct IssuedBody<'a> {
    /// The credential's name.
    name: &'a str,
    /// What was recorded, unless the caller may not read the credential.
    #[serde(flatten)]
    record: Option<IssuedRecordBody<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct IssuedRecordBody<'a> {
    /// The credential's type.
    r#type: &'a str,
    /// The credential's newest version.
    version_id: Uuid,
    /// The version of the authority that signed; null where that is not known.
    issuer_version_id: Option<Uuid>,
    /// The serial number of the certificate, in hexadecimal; empty where that is not known.
    serial_number: String,
    /// When the certificate expires; empty where that is not known.
    expiry_date: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CertificateVersionSummary")]
struct ListedBody {
    id: Uuid,
    /// When it expires; empty where there is no certificate.
    expiry_date: String,
    /// Whether it is trusted and does not sign.
    transitional: bool,
    /// Whether it is an authority's.
    certificate_authority: bool,
    /// Whether it signed itself.
    self_signed: bool,
    /// Whether the server made it; absent where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    generated: Option<bool>,
}

impl<'a> SummaryBody<'a> {
    fn of(summary: &'a CertificateSummary) -> Self {
        let certificate = &summary.certificate;
        Self {
            name: certificate.name.as_str(),
            id: certificate.id,
            versions: certificate.versions.iter().map(ListedBody::of).collect(),
            signed_by: summary
                .signed_by
                .as_ref()
                .map_or("", CredentialName::as_str),
            signs: summary.signs.iter().map(CredentialName::as_str).collect(),
            issued: summary.issued.iter().map(IssuedBody::of).collect(),
        }
    }
}

impl<'a> IssuedBody<'a> {
    fn of(issued: &'a IssuedCredential) -> Self {
        Self {
            name: issued.name.as_str(),
            record: issued.record.as_ref().map(|record| IssuedRecordBody {
                r#type: record.credential_type.as_str(),
                version_id: record.version_id,
                issuer_version_id: record.issuer_version_id,
                serial_number: record
                    .serial_number
                    .as_ref()
                    .map(SerialNumber::to_string)
                    .unwrap_or_default(),
                expiry_date: record.expires_at.map(timestamp).unwrap_or_default(),
            }),
        }
    }
}

impl ListedBody {
    fn of(version: &ListedVersion) -> Self {
        let facts = version.facts.as_ref();
        Self {
            id: version.id,
            expiry_date: facts.map_or_else(String::new, |facts| timestamp(facts.expires_at)),
            transitional: version.is_transitional,
            certificate_authority: facts.is_some_and(|facts| facts.is_certificate_authority),
            self_signed: facts.is_some_and(|facts| facts.is_self_signed),
            generated: version.is_generated,
        }
    }
}

/// What the description says of it.
pub(crate) fn describe() -> Described {
    Described::new("listCertificates", Tag::Certificates, "Lists certificates with their versions, without keys")
        .parameter(Parameter::optional("name", "The name of the one certificate that is asked for; all that the caller may read without it.", json!({"type": "string", "minLength": 1})).like("/demo/root"))
        .answer::<ListResponse<'_>>(200, "The certificates, the one with the newest version first.")
        .answered(
            "one",
            json!({"certificates": [{
                "name": "/demo/root",
                "id": "afb58c08-85a1-445c-a731-2c42b7896417",
                "versions": [{
                    "id": "8f3b4de4-b821-46d6-a28c-52f21f21a18e",
                    "expiry_date": "2027-11-22T01:27:53Z",
                    "transitional": false,
                    "certificate_authority": true,
                    "self_signed": true,
                    "generated": true,
                }],
                "signed_by": "/demo/root",
                "signs": ["/demo/web"],
            }]}),
        )
        .fails(400, "The name is empty or given twice.")
        .fails(404, "There is no such certificate, or the caller may not read it.")
        .fails(413, "The response would be too large: ask for one certificate by name.")
}

/// Lists certificates.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    uri: Uri,
) -> Result<Response, ApiFailure> {
    let query = QueryParameters::of(&uri);
    if query.has("name") {
        caller.trail().tell_action(told::GET_CERTIFICATE);
    }
    let request = ListRequest::read(&query)?;
    let summaries = match request.name {
        Some(name) => vec![
            api.credentials
                .certificate(&caller, &name)
                .await
                .map_err(failed)?,
        ],
        None => api
            .credentials
            .certificates(&caller)
            .await
            .map_err(failed)?,
    };
    rendered(&ListResponse {
        certificates: LazyList::new(&summaries, SummaryBody::of),
    })
}
