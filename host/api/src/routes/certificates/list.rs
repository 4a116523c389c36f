//! `GET /api/v1/certificates` returns all certificates, or the certificate named in the query.
//!
//! Credentials of other types are only returned for `all_types=true`. Clients of CredHub treat every entry as a certificate: they
//! regenerate it by its id, or read `value.certificate` of its versions. So their requests must return exactly the credentials of
//! type certificate. Entries of other types are in the same list and format, so that there is one order, and permissions, limits
//! and audit events are the same.

use axum::response::Response;
use keywright_core::{
    certificate::SerialNumber,
    credential::{CertificateSummary, CredentialName, IssuedCredential, ListedVersion, LookupName},
    permission::Operation::Read,
    ports::SignedTypes,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::{
    audit::actions,
    description::Parameter,
    request::QueryParameters,
    response::{ApiError, LazyList, list_bytes, rendered, rendered_list, timestamp},
    route::{Access::Permission, Call, Route, route},
};

pub(crate) fn route() -> Route {
    route!(GET "/api/v1/certificates", Permission(Read), "GET_ALL_CERTIFICATES", handler,
        "listCertificates", Certificates, "Lists certificates and their versions, without keys",
        400 => "A parameter is malformed, empty or repeated.",
        404 => "The certificate does not exist, or the caller may not read it.",
        413 => "The response would be too large; use `name` to read one certificate.")
        .parameter(Parameter::optional("name", "The name of a certificate. Without it, all certificates that the caller may read are listed.", json!({"type": "string", "minLength": 1})).example("/demo/root"))
        .parameter(Parameter::optional(ALL_TYPES, "Whether to include credentials of other types whose latest version has a certificate. `expiry_date` is empty if only the signer is known.", json!({"type": "boolean", "default": false})))
        .response::<ListResponse<'_>>(200, "The certificates, in order of their latest version, newest first.")
        .response_example(
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
    /// The certificate's id. A credential that is deleted and recreated gets a new id.
    id: Uuid,
    /// The credential's type. Only with `all_types`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    r#type: Option<&'a str>,
    /// Its versions, newest first.
    versions: Vec<ListedBody>,
    /// The name of the CA that signed it; its own name if it is self-signed, and empty if unknown.
    signed_by: &'a str,
    /// The names of the certificates that it signed; in a list with `all_types`, also of the listed credentials of other types.
    signs: Vec<&'a str>,
    /// The credentials of other types whose latest version has a certificate signed by this CA. Absent if there are none,
    /// and if all certificates are listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    issued: Vec<IssuedBody<'a>>,
}

/// A credential of another type whose certificate a CA signed. If the caller may not read it, only the name is returned.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "IssuedCredential")]
struct IssuedBody<'a> {
    /// The credential's name.
    name: &'a str,
    /// Details, if the caller may read the credential.
    #[serde(flatten)]
    record: Option<IssuedRecordBody<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct IssuedRecordBody<'a> {
    /// The credential's type.
    r#type: &'a str,
    /// The id of the credential's latest version.
    version_id: Uuid,
    /// The id of the CA version that signed the certificate; null if unknown.
    issuer_version_id: Option<Uuid>,
    /// The serial number of the certificate, in hexadecimal; empty if unknown.
    serial_number: String,
    /// When the certificate expires; empty if unknown.
    expiry_date: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CertificateVersionSummary")]
struct ListedBody {
    id: Uuid,
    /// When it expires; empty if there is no certificate.
    expiry_date: String,
    /// Whether it is transitional (trusted, but not used to sign).
    transitional: bool,
    /// Whether it is a CA certificate.
    certificate_authority: bool,
    /// Whether it is self-signed.
    self_signed: bool,
    /// Whether the server generated it; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    generated: Option<bool>,
}

impl<'a> SummaryBody<'a> {
    fn of(summary: &'a CertificateSummary, types: SignedTypes) -> Self {
        let certificate = &summary.certificate;
        Self {
            name: certificate.name.as_str(),
            id: certificate.id,
            r#type: (types == SignedTypes::All).then_some(certificate.credential_type.as_str()),
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

async fn handler(Call { api, caller }: Call, query: QueryParameters) -> Result<Response, ApiError> {
    if query.has("name") {
        caller.trail().set_action(actions::GET_CERTIFICATE);
    }
    let types = match query.boolean(ALL_TYPES)? {
        Some(true) => SignedTypes::All,
        Some(false) | None => SignedTypes::Certificates,
    };
    let summaries = match query.text("name")? {
        Some(_) => vec![
            api.credentials
                .certificates
                .one(&caller, &LookupName::new(query.required("name")?), types)
                .await?,
        ],
        None => api.credentials.certificates.all(&caller, types).await?,
    };
    let entries = summaries.iter().map(|summary| {
        let versions = summary.certificate.versions.len();
        1 + versions + summary.signs.len() + summary.issued.len()
    });
    let bytes = list_bytes(entries.sum());
    rendered_list(caller, summaries, bytes, move |summaries| {
        rendered(&ListResponse {
            certificates: LazyList::new(summaries, move |summary| SummaryBody::of(summary, types)),
        })
    })
    .await
}

const ALL_TYPES: &str = "all_types";
