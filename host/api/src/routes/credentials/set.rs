//! `PUT /api/v1/data` sets a credential, and `DELETE /api/v1/data` deletes one with all its versions.

use std::borrow::Cow;

use axum::{extract::Request, http::StatusCode, response::Response};
use keywright_core::{
    UseCaseError,
    credential::{
        CredentialName, CredentialType, CredentialTypes, DigestError, ImportedProvenance,
        LookupName, PluginDigest, Set,
    },
    permission::Operation::{Delete, Write},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::{
    description::{
        Parameter, SetCertificate, Version, example, form, parameters_of_another_type,
        specified_types,
    },
    request::{BodyError, JsonText, Metadata, QueryParameters, RequestObject, read_json_body},
    response::{ApiError, Endpoint, VersionBody, rendered},
    route::{Access::Permission, Call, Route, route},
};

pub(crate) fn set_route() -> Route {
    route!(PUT "/api/v1/data", Permission(Write), "SET", set,
        "setCredential", Credentials, "Sets a credential",
        400 => "The name, the value, the metadata or the parameters are invalid, or the credential has another type.",
        403 => "The caller may not write the credential.",
        404 => "The CA named by `ca_name` or by the parameters does not exist, or the caller may not read it.",
        413 => "The value exceeds 65536 bytes, or a part of it exceeds 7000 characters.",
        422 => "The type is missing or unknown, or the body or the value has an unknown field.")
        .text("Always adds a version. The type of an existing credential can't be changed.\n\n\
            `generated_by` and `parameters` import the provenance of a value that another server generated: with it, the credential can be \
            regenerated and found by `generated_by`. The parameters are checked like those of a request to generate. The version \
            counts as set, and its provenance as `imported`.")
        .body::<SetRequest>()
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
}

struct SetRequest {
    name: Option<String>,
    credential_type: Option<String>,
    value: Option<JsonText>,
    metadata: Metadata,
    provenance: Option<ImportedProvenance>,
}

impl SetRequest {
    fn read(mut fields: RequestObject<'_>) -> Result<Self, BodyError> {
        let request = Self {
            credential_type: fields.take("type").unwrap_or_default(),
            name: fields.take("name")?,
            value: fields.take("value")?,
            metadata: fields.take("metadata")?.unwrap_or_default(),
            provenance: take_provenance(&mut fields)?,
        };
        fields.finish()?;
        Ok(request)
    }

    /// Checks the type first, because the other fields depend on it.
    fn check(self, types: &CredentialTypes) -> Result<Set, UseCaseError> {
        let credential_type = types.parse(&self.credential_type.unwrap_or_default())?;
        Ok(Set {
            name: CredentialName::parse(&self.name.unwrap_or_default())?,
            credential_type,
            value: JsonText::required_value(self.value)?,
            metadata: self.metadata.parse()?,
            provenance: self.provenance,
        })
    }
}

async fn set(Call { api, caller }: Call, request: Request) -> Result<Response, ApiError> {
    let body = read_json_body(request, &api.limits).await?;
    let request = SetRequest::read(RequestObject::parse(&body)?)?;
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
    rendered(&VersionBody::of(&version)?)
}

impl JsonSchema for SetRequest {
    fn schema_name() -> Cow<'static, str> {
        "SetRequest".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let mut forms: Vec<_> = specified_types()
            .map(|known| {
                let value = match known.name.as_str() {
                    CredentialType::CERTIFICATE => schemas.subschema_for::<SetCertificate>().into(),
                    name => set_value(name).unwrap_or_else(|| known.value(schemas)),
                };
                let parameters = known.parameters(schemas);
                set_form(Some(&known.name), value, parameters, schemas)
            })
            .collect();
        let value =
            json!({"description": "The schema depends on the type: see `GET /api/v1/types`."});
        let parameters = Some(parameters_of_another_type());
        forms.push(set_form(None, value, parameters, schemas));
        json_schema!({"anyOf": forms})
    }
}

/// Returns the schema of a request for one type. A type without parameters has no provenance.
fn set_form(
    specified_type: Option<&str>,
    value: Value,
    parameters: Option<Value>,
    schemas: &mut SchemaGenerator,
) -> Schema {
    let value = ("value", value);
    let Some(parameters) = parameters else {
        return form(specified_type, &["value"], [value], schemas);
    };
    let digest = json!({
        "type": ["string", "null"],
        "description": "The SHA-256 of the component that generated the value on another server.",
        "pattern": "^(sha256:)?[0-9A-Fa-f]{64}$",
    });
    let parameters = json!({"anyOf": [parameters, {"type": "null"}]});
    let fields = [value, (GENERATED_BY, digest), ("parameters", parameters)];
    let mut form = form(specified_type, &["value"], fields, schemas);
    let both = json!({GENERATED_BY: ["parameters"], "parameters": [GENERATED_BY]});
    form.insert("dependentRequired".to_owned(), both);
    form
}

/// Returns the schema for setting values of a type, if it differs from the schema for reading them.
fn set_value(name: &str) -> Option<Value> {
    let key = json!({"type": ["string", "null"]});
    let computed = json!({"description": "Ignored; computed by the server."});
    let keys = |properties: Value| {
        json!({
            "type": "object",
            "description": "At least one key is required. Empty strings count as absent; the format of keys is not checked.",
            "properties": properties,
            "additionalProperties": false,
        })
    };
    match name {
        CredentialType::USER => Some(json!({
            "type": "object",
            "properties": {
                "username": {"type": ["string", "null"]},
                "password": {
                    "type": ["string", "number", "boolean"],
                    "description": "A number or a boolean is stored as its JSON text.",
                    "minLength": 1,
                },
                "password_hash": computed,
            },
            "required": ["password"],
            "additionalProperties": false,
        })),
        CredentialType::RSA => Some(keys(json!({"public_key": key, "private_key": key}))),
        CredentialType::SSH => Some(keys(
            json!({"public_key": key, "private_key": key, "public_key_fingerprint": computed}),
        )),
        _ => None,
    }
}

/// Takes the provenance. `parameters` without `generated_by` is an unknown field, as in CredHub.
fn take_provenance(
    fields: &mut RequestObject<'_>,
) -> Result<Option<ImportedProvenance>, BodyError> {
    let Some(digest) = fields.take::<String>(GENERATED_BY)? else {
        return Ok(None);
    };
    let generated_by = PluginDigest::parse(&digest)
        .map_err(|_| BodyError::field(GENERATED_BY, DigestError::EXPECTED))?;
    let missing = || BodyError::field("parameters", "an object if generated_by is given");
    let parameters = fields.take_parameters()?.ok_or_else(missing)?;
    Ok(Some(ImportedProvenance {
        generated_by,
        parameters,
    }))
}

pub(crate) fn delete_route() -> Route {
    route!(DELETE "/api/v1/data", Permission(Delete), "DELETE", delete,
        "deleteCredential", Credentials, "Deletes a credential with all its versions",
        400 => "The name is missing, empty or repeated.",
        404 => "The credential does not exist, or the caller may not delete it.")
    .parameter(Parameter::required("name", "The credential's name.").example("/demo/database"))
    .empty_response(204, "The credential was deleted.")
}

async fn delete(
    Call { api, caller }: Call,
    query: QueryParameters,
) -> Result<StatusCode, ApiError> {
    let name = LookupName::new(query.required("name")?);
    api.credentials.read.delete(&caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

const GENERATED_BY: &str = "generated_by";
