//! `GET /api/v1/data` returns versions by name, or searches for credentials. `GET /api/v1/data/{id}` returns one version.

use std::sync::Arc;

use axum::{Extension, extract::State, http::Uri, response::Response};
use keywright_core::{
    Failure,
    authorization::Caller,
    credential::{CredentialVersion, LookupName},
    permission::Operation::Read,
    ports::VersionSelection,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::find::{self, FindRequest};
use crate::{
    Api,
    description::{Description, Parameter, Tag, Version, example},
    request::{QueryError, QueryParameters},
    response::{ApiError, VersionBody, rendered, rendered_versions},
    route::{Access::Permission, PathIds, Route, route},
};

pub(crate) fn get_route() -> Route {
    route!(GET "/api/v1/data", Permission(Read), "GET", get, describe_get)
}

pub(crate) fn get_by_id_route() -> Route {
    route!(GET "/api/v1/data/{id}", Permission(Read), "GET", get_by_id, describe_get_by_id)
}

/// The requested versions of a credential.
struct GetRequest {
    name: LookupName,
    selection: VersionSelection,
    has_provenance: bool,
}

impl GetRequest {
    fn read(query: &QueryParameters) -> Result<Self, QueryError> {
        let name = LookupName::new(query.required("name")?);
        let is_current = query.boolean("current")?.unwrap_or(false);
        let versions = versions(query)?;
        let selection = match (is_current, versions) {
            (true, Some(_)) => return Err(QueryError::Exclusive("current", "versions")),
            (true, None) => VersionSelection::Current,
            (false, None) => VersionSelection::All,
            (false, Some(count)) => VersionSelection::Newest(count),
        };
        Ok(Self {
            name,
            selection,
            has_provenance: query.boolean(PROVENANCE)?.unwrap_or(false),
        })
    }
}

/// Validates all parameters, including ignored ones.
fn check_parameters(query: &QueryParameters) -> Result<(), QueryError> {
    query.boolean("current")?;
    query.boolean(PROVENANCE)?;
    versions(query)?;
    FindRequest::check_parameters(query)
}

/// Parses `versions`, the maximum number of versions.
fn versions(query: &QueryParameters) -> Result<Option<u32>, QueryError> {
    match query.integer("versions")? {
        Some(count) if count < 0 => Err(QueryError::Malformed {
            parameter: "versions",
            expected: "zero or more",
        }),
        count => Ok(count.map(|count| u32::try_from(count).unwrap_or(u32::MAX))),
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CredentialVersions")]
struct GetResponse<'a> {
    /// The versions, newest first. With `current`, the active version, then the transitional one.
    #[schemars(with = "Vec<Version>")]
    data: Vec<VersionBody<'a>>,
}

impl<'a> GetResponse<'a> {
    fn of(versions: &'a [CredentialVersion], has_provenance: bool) -> Result<Self, Failure> {
        let body = |version| {
            let body = VersionBody::of(version)?;
            if has_provenance {
                body.with_provenance(version)
            } else {
                Ok(body)
            }
        };
        let data = versions.iter().map(body).collect::<Result<_, _>>()?;
        Ok(Self { data })
    }
}

/// Versions by name, or the results of a search.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(
    dead_code,
    reason = "only used for its schema; the responses are rendered separately"
)]
enum EitherResponse<'a> {
    Versions(GetResponse<'a>),
    Found(find::FindResponse<'a>),
}

fn describe_get() -> Description {
    Description::new("getCredentials", Tag::Credentials, "Reads a credential by name, or finds credentials")
        .text("With `name`, returns versions. With `path`, `name-like` or `generated_by`, returns the names that the caller may read, \
            newest first, and ignores `name`.\n\nA search by `expires-within-days` returns only certificates, and credentials of other types with a certificate that a CA signed or that the plugin's value schema names.")
        .parameter(Parameter::optional("name", "The credential's name.", json!({"type": "string"})).example("/demo/database"))
        .parameter(Parameter::optional("current", "Whether to return only the active version and, for a certificate, the transitional one. Cannot be combined with `versions`.", json!({"type": "boolean", "default": false})))
        .parameter(Parameter::optional("versions", "Maximum number of versions, newest first; all by default. With 0, the response is 404.", json!({"type": "integer", "minimum": 0})))
        .parameter(Parameter::optional("provenance", "Whether to return `generated_by`, `parameters` and `imported` with each version that has them.", json!({"type": "boolean", "default": false})))
        .parameter(Parameter::optional("path", "Finds names strictly below this path; the empty path finds all. Cannot be combined with `name-like`.", json!({"type": "string"})))
        .parameter(Parameter::optional("name-like", "Finds names that contain this text; not case-sensitive.", json!({"type": "string"})))
        .parameter(Parameter::optional("expires-within-days", "Finds only credentials whose newest version has a certificate that has expired or expires within this number of days (24 hours each).", json!({"type": "integer"})))
        .parameter(Parameter::optional("effective", "Whether to check the whole chain of the active version, and return the certificate that expires first. Requires `expires-within-days`.", json!({"type": "boolean", "default": false})))
        .parameter(Parameter::optional("generated_by", "Finds only credentials whose newest, active or transitional version was generated by the plugin with this component SHA-256. Cannot be combined with `expires-within-days`.", json!({"type": "string", "pattern": "^(sha256:)?[0-9A-Fa-f]{64}$"})))
        .response::<EitherResponse<'_>>(200, "The versions, or the found names.")
        .response_example("versions", json!({"data": [example::json_version()]}))
        .response_example(
            "found",
            json!({"credentials": [
                {"name": "/demo/web", "version_created_at": "2026-11-22T01:27:53Z"},
                {"name": "/demo/database", "version_created_at": "2026-11-22T01:27:52Z"},
            ]}),
        )
        .response_example(
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
        .error(400, "`name`, `path`, `name-like` and `generated_by` are all missing, two parameters exclude each other, or one is repeated or invalid.")
        .error(404, "The credential does not exist, or the caller may not read it.")
        .error(413, "The response would be too large; request fewer versions or a longer path.")
}

/// Searches if the query has `path`, `name-like` or `generated_by`. Otherwise, returns versions by name.
async fn get(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let query = QueryParameters::of(&uri);
    check_parameters(&query)?;
    if FindRequest::is_search(&query) {
        FindRequest::record(&caller, &query);
        return find::response(&api, caller, FindRequest::read(&query)?).await;
    }
    let request = GetRequest::read(&query)?;
    let versions = match request.selection {
        VersionSelection::Newest(0) => return Err(Failure::NotFound.into()),
        selection => {
            api.credentials
                .read
                .by_name(&caller, &request.name, selection)
                .await
        }
    }?;
    rendered_versions(caller, versions, move |versions| {
        rendered(&GetResponse::of(versions, request.has_provenance)?)
    })
    .await
}

fn describe_get_by_id() -> Description {
    Description::new("getVersionById", Tag::Credentials, "Reads one version")
        .response::<Version>(200, "The version.")
        .response_example("json", example::json_version())
        .error(
            404,
            "The version does not exist, or the caller may not read its credential.",
        )
}

/// Returns one version. An id that is not a UUID is treated as unknown.
async fn get_by_id(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    PathIds(id): PathIds<1>,
) -> Result<Response, ApiError> {
    let [id] = id.ok_or(Failure::NotFound)?;
    let version = api.credentials.read.by_id(&caller, id).await?;
    rendered(&VersionBody::of(&version)?)
}

const PROVENANCE: &str = "provenance";
