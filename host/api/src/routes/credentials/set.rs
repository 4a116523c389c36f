//! `PUT /api/v1/data`: sets a credential.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use keywright_core::{
    Failure, Secret,
    authorization::Caller,
    credential::{CredentialTypes, DigestError, ImportedProvenance, Metadata, PluginDigest, Set},
    permission::Operation::Write,
};
use serde_json::json;

use super::required_name;
use crate::{
    Api,
    description::{Description, SetBody, Tag, Version, example},
    request::{BodyError, RequestObject, parse_json_body},
    response::{ApiError, Endpoint, VersionBody, rendered},
    route::{Access::Permission, Route, route},
};

pub(crate) fn route() -> Route {
    route!(PUT "/api/v1/data", Permission(Write), "SET", handler, describe)
}

/// The fields of the body.
struct SetRequest {
    name: Option<String>,
    credential_type: Option<String>,
    value: Option<Secret>,
    metadata: Option<Secret>,
    provenance: Option<ImportedProvenance>,
}

impl SetRequest {
    fn read(mut fields: RequestObject<'_>) -> Result<Self, BodyError> {
        let request = Self {
            credential_type: fields.take_text("type").unwrap_or_default(),
            name: fields.take_text("name")?,
            value: fields.take_secret("value"),
            metadata: fields.take_secret("metadata"),
            provenance: take_provenance(&mut fields)?,
        };
        fields.finish()?;
        Ok(request)
    }

    /// Checks the type first, because the other fields depend on it.
    fn check(self, types: &CredentialTypes) -> Result<Set, Failure> {
        let credential_type = types.parse(&self.credential_type.unwrap_or_default())?;
        Ok(Set {
            name: required_name(self.name)?,
            credential_type,
            value: self
                .value
                .ok_or_else(|| Failure::ValueRefused("value is required".to_owned()))?,
            metadata: self.metadata.map(Metadata::parse).transpose()?,
            provenance: self.provenance,
        })
    }
}

fn describe() -> Description {
    Description::new("setCredential", Tag::Credentials, "Sets a credential")
        .text("Always adds a version. The type of an existing credential can't be changed.\n\n\
            `generated_by` and `parameters` import the provenance of a value that another server generated: with it, the credential can be \
            regenerated and found by `generated_by`. The parameters are checked like those of a request to generate. The version \
            counts as set, and its provenance as `imported`.")
        .body::<SetBody>()
        .request_example(
            "json",
            json!({
                "name": "/demo/database",
                "type": "json",
                "value": {"host": "db.example", "port": 5432},
                "metadata": {"owner": "shop"},
            }),
        )
        .request_example(
            "user",
            json!({
                "name": "/demo/user",
                "type": "user",
                "value": {"username": "ada", "password": "correct horse"},
            }),
        )
        .request_example(
            "password",
            json!({"name": "/demo/word", "type": "password", "value": "battery staple"}),
        )
        .response::<Version>(200, "The added version.")
        .response_example("json", example::json_version())
        .response_example("user", example::user_version())
        .error(
            400,
            "The name, the value, the metadata or the parameters are invalid, or the credential has another type.",
        )
        .error(403, "The caller may not write the credential.")
        .error(
            404,
            "The CA named by `ca_name` or by the parameters does not exist, or the caller may not read it.",
        )
        .error(
            413,
            "The value exceeds 65,536 bytes, or a part of it exceeds 7,000 characters.",
        )
        .error(
            422,
            "The type is missing or unknown, or the body or the value has an unknown field.",
        )
}

async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
) -> Result<Response, ApiError> {
    let request = parse_json_body(request, &api.limits, Endpoint::Set, SetRequest::read).await?;
    let failed = |failure| ApiError::of(failure, Endpoint::Set);
    let set = request.check(&api.credentials.types).map_err(failed)?;
    if let Some(provenance) = &set.provenance {
        let digest = provenance.generated_by.as_str();
        caller.trail().set_details(json!({GENERATED_BY: digest}));
    }
    let version = api
        .credentials
        .set
        .credential(&caller, set)
        .await
        .map_err(failed)?;
    rendered(&VersionBody::of(&version).map_err(failed)?)
}

/// Takes the provenance. `parameters` without `generated_by` is an unknown field, as in CredHub.
fn take_provenance(
    fields: &mut RequestObject<'_>,
) -> Result<Option<ImportedProvenance>, BodyError> {
    let Some(digest) = fields.take_text(GENERATED_BY)? else {
        return Ok(None);
    };
    let generated_by = PluginDigest::parse(&digest).map_err(|_| BodyError::FieldMalformed {
        field: GENERATED_BY,
        expected: DigestError::EXPECTED,
    })?;
    let parameters = fields.take_parameters("parameters")?;
    Ok(Some(ImportedProvenance {
        generated_by,
        parameters: parameters.ok_or(BodyError::FieldMissing("parameters"))?,
    }))
}

const GENERATED_BY: &str = "generated_by";
