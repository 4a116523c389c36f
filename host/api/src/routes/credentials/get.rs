//! `GET /api/v1/data`: versions by name, or a search.

use std::sync::Arc;

use axum::{Extension, extract::State, http::Uri, response::Response};
use keywright_core::{
    Failure,
    authorization::Caller,
    credential::{CredentialVersion, LookupName},
    ports::VersionSelection,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::find::{self, FindRequest};
use crate::{
    Api,
    description::{Described, Parameter, Tag, Version, example},
    request::{QueryParameters, QueryRefused},
    response::{ApiFailure, Endpoint, VersionBody, rendered, rendered_versions},
};
use serde_json::json;

/// Which versions of which credential.
struct GetRequest {
    name: LookupName,
    selection: VersionSelection,
}

impl GetRequest {
    fn read(query: &QueryParameters) -> Result<Self, QueryRefused> {
        let name = LookupName::new(query.required("name")?);
        let is_current = query.boolean("current")?.unwrap_or(false);
        let versions = versions(query)?;
        let selection = match (is_current, versions) {
            (true, Some(_)) => return Err(QueryRefused::Exclusive("current", "versions")),
            (true, None) => VersionSelection::Current,
            (false, None) => VersionSelection::All,
            (false, Some(count)) => VersionSelection::Newest(count),
        };
        Ok(Self { name, selection })
    }
}

/// Refuses what is not of its kind, also where it counts for nothing.
fn check_kinds(query: &QueryParameters) -> Result<(), QueryRefused> {
    query.boolean("current")?;
    versions(query)?;
    FindRequest::check_kinds(query)
}

/// How many versions are asked for.
fn versions(query: &QueryParameters) -> Result<Option<u32>, QueryRefused> {
    match query.integer("versions")? {
        Some(count) if count < 0 => Err(QueryRefused::Malformed {
            parameter: "versions",
            expected: "zero or more",
        }),
        count => Ok(count.map(|count| u32::try_from(count).unwrap_or(u32::MAX))),
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CredentialVersions")]
struct GetResponse<'a> {
    /// The versions, newest first; with `current`, the one in use and then the transitional one.
    #[schemars(with = "Vec<Version>")]
    data: Vec<VersionBody<'a>>,
}

impl<'a> GetResponse<'a> {
    fn of(versions: &'a [CredentialVersion]) -> Result<Self, Failure> {
        let data = versions
            .iter()
            .map(VersionBody::of)
            .collect::<Result<_, _>>()?;
        Ok(Self { data })
    }
}

/// Either of the two things that this address answers.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(
    dead_code,
    reason = "each is rendered by itself, and this is what is said of both"
)]
enum EitherResponse<'a> {
    Versions(GetResponse<'a>),
    Found(find::FindResponse<'a>),
}

/// What the description says of it.
pub(crate) fn describe() -> Described {
    Described::new("getCredentials", Tag::Credentials, "Reads a credential by name, or finds names")
        .text("With `name`, it answers versions. With `path`, `name-like` or `generated_by`, it answers the names that the caller may read, \
            newest first, and `name` counts for nothing.\n\nA search by `expires-within-days` returns only certificates, and credentials of other types for which an authority signed a certificate.")
        .parameter(Parameter::optional("name", "The credential's name.", json!({"type": "string"})).like("/demo/database"))
        .parameter(Parameter::optional("current", "Whether only the version in use is asked for, and of a certificate the transitional one too. It excludes `versions`.", json!({"type": "boolean", "default": false})))
        .parameter(Parameter::optional("versions", "How many versions are asked for at most, the newest first; all by default. Of none there is nothing, so 0 is answered with 404.", json!({"type": "integer", "minimum": 0})))
        .parameter(Parameter::optional("path", "Finds names strictly below this path; the empty path encloses all. It excludes `name-like`.", json!({"type": "string"})))
        .parameter(Parameter::optional("name-like", "Finds names that hold this text, in whatever casing.", json!({"type": "string"})))
        .parameter(Parameter::optional("expires-within-days", "Finds only credentials with a certificate, whatever their type, whose newest version expires within so many days of 24 hours, or has expired.", json!({"type": "integer"})))
        .parameter(Parameter::optional("effective", "Whether the whole chain of the version in use is looked at, and the link told that expires first. It needs `expires-within-days`.", json!({"type": "boolean", "default": false})))
        .parameter(Parameter::optional("generated_by", "Finds only credentials of which a plugin made the newest version, the one in use or the transitional one: the SHA-256 of the plugin's component. It excludes `expires-within-days`.", json!({"type": "string", "pattern": "^(sha256:)?[0-9A-Fa-f]{64}$"})))
        .answer::<EitherResponse<'_>>(200, "Versions, or names.")
        .answered("versions", json!({"data": [example::json_version()]}))
        .answered(
            "found",
            json!({"credentials": [
                {"name": "/demo/web", "version_created_at": "2026-11-22T01:27:53Z"},
                {"name": "/demo/database", "version_created_at": "2026-11-22T01:27:52Z"},
            ]}),
        )
        .answered(
            "expiring",
            json!({"credentials": [{
                "name": "/demo/web",
                "version_created_at": "2026-11-22T01:27:53Z",
                "expiry_date": "2027-11-22T01:27:53Z",
                "expiring_link": {
                    "name": "/demo/web",
                    "version_id": "5df6656d-e341-4ca3-b9e3-edb0305facce",
                    "depth": 0,
                },
            }]}),
        )
        .fails(400, "None of `name`, `path`, `name-like` and `generated_by` is given, two parameters exclude each other, one is given twice, or is not what it must be.")
        .fails(404, "There is no such credential, or the caller may not read it.")
        .fails(413, "The response would be too large: ask for fewer versions, or for a longer path.")
}

/// Answers a search when the query has `path`, `name-like` or `generated_by`, and with versions by name otherwise.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    uri: Uri,
) -> Result<Response, ApiFailure> {
    let query = QueryParameters::of(&uri);
    check_kinds(&query)?;
    if FindRequest::is_asked_for(&query) {
        FindRequest::tell(&caller, &query);
        return find::answer(&api, &caller, FindRequest::read(&query)?).await;
    }
    let request = GetRequest::read(&query)?;
    let failed = |failure| ApiFailure::of(failure, Endpoint::Other);
    let versions = match request.selection {
        VersionSelection::Newest(0) => return Err(failed(Failure::NotFound)),
        selection => {
            api.credentials
                .by_name(&caller, &request.name, selection)
                .await
        }
    }
    .map_err(failed)?;
    rendered_versions(versions, move |versions| {
        rendered(&GetResponse::of(versions).map_err(failed)?)
    })
    .await
}
