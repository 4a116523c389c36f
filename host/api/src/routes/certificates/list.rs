//! `GET /api/v1/certificates`: all certificates, or the one that the query names.

use std::sync::Arc;

use axum::{Extension, extract::State, http::Uri, response::Response};
use keywright_core::{
    authorization::Caller,
    credential::{CertificateSummary, CredentialName, ListedVersion, LookupName},
};
use serde::Serialize;
use uuid::Uuid;

use super::failed;
use crate::{
    Api,
    audit::told,
    request::{QueryParameters, QueryRefused},
    response::{ApiFailure, rendered, timestamp},
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

#[derive(Serialize)]
struct ListResponse<'a> {
    certificates: Vec<SummaryBody<'a>>,
}

#[derive(Serialize)]
struct SummaryBody<'a> {
    name: &'a str,
    id: Uuid,
    versions: Vec<ListedBody>,
    signed_by: &'a str,
    signs: Vec<&'a str>,
}

#[derive(Serialize)]
struct ListedBody {
    id: Uuid,
    expiry_date: String,
    transitional: bool,
    certificate_authority: bool,
    self_signed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
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
        certificates: summaries.iter().map(SummaryBody::of).collect(),
    })
}
