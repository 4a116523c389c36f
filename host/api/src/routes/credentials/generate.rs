//! `POST /api/v1/data` generates a credential, or regenerates one with `"regenerate": true`. `POST /api/v1/regenerate`
//! regenerates one.

use std::borrow::Cow;

use axum::{extract::Request, response::Response};
use keywright_core::{
    UseCaseError,
    authorization::Caller,
    credential::{
        CredentialName, CredentialType, CredentialTypes, Generate, LookupName, NameError,
        Regenerate, RequestedParameters, WriteMode,
    },
    permission::Operation::Write,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::{
    Api,
    audit::actions,
    description::{
        LenientBoolean, LookedUpName, Name, Version, example, form, parameters_of_another_type,
        specified_types,
    },
    request::{BodyError, Metadata, RequestObject, StrictJson, read_json_body},
    response::{ApiError, Endpoint, VersionBody, rendered},
    route::{Access::Permission, Call, Route, route},
};

pub(crate) fn generate_route() -> Route {
    route!(POST "/api/v1/data", Permission(Write), "GENERATE", generate,
        "generateCredential", Credentials, "Generates a credential, or keeps the existing one",
        400 => "The name, the type, the mode, the parameters or the metadata is invalid, the credential has another type, \
            or the body or the parameters have an unknown field.",
        403 => "The caller may not write the credential.",
        404 => "The CA named by `ca` does not exist, or the caller may not read it. With `regenerate`, the credential does not exist.",
        413 => "The parameters, the generated value or, with `regenerate`, the metadata are too large.")
        .text("By default, repeating a request keeps the credential, and a request with other parameters adds a version. \
            With `regenerate`, this operation is the same as `POST /api/v1/regenerate`.\n\n\
            Scalars in `parameters` are converted to the types in the schema. A string parameter also accepts a number or a boolean \
            and uses its JSON text, except a parameter that names an input credential. A boolean parameter also accepts the strings `true` and \
            `false` in any casing, and the numbers 0 and 1. An integer parameter also accepts a number such as `20.0`, and a string of digits.")
        .body::<PostRequest>()
        .request_example(
            "password",
            json!({"name": "/demo/password", "type": "password", "parameters": {"length": 12}}),
        )
        .request_example(
            "authority",
            json!({
                "name": "/demo/root",
                "type": "certificate",
                "parameters": {"common_name": "Demo root", "is_ca": true, "key_type": "ecdsa-p256"},
            }),
        )
        .request_example(
            "certificate",
            json!({
                "name": "/demo/web",
                "type": "certificate",
                "parameters": {
                    "common_name": "web",
                    "ca": "/demo/root",
                    "alternative_names": ["web.example"],
                    "key_type": "ecdsa-p256",
                },
            }),
        )
        .response::<Version>(200, "The added version, or the existing one if it was kept.")
        .response_example("password", example::password_version())
}

pub(crate) fn regenerate_route() -> Route {
    route!(POST "/api/v1/regenerate", Permission(Write), "REGENERATE", regenerate,
        "regenerateCredential", Credentials, "Regenerates a credential",
        400 => "The credential can't be regenerated, or its name is missing.",
        403 => "The caller may not write the credential.",
        404 => "The credential does not exist, or the caller may not read the CA that signed it.",
        413 => "The metadata is too long.",
        422 => "The body has an unknown field.")
        .text("Adds a version with the parameters of the latest version. RSA and SSH keys can always be regenerated; passwords and \
            users only if they were generated; certificates if they were generated, are self-signed or were signed by a stored CA.")
        .body::<RegenerateRequest>()
        .request_example("password", json!({"name": "/demo/password"}))
        .response::<Version>(200, "The added version.")
        .response_example("password", example::password_version())
}

enum PostRequest {
    Generate(GenerateRequest),
    Regenerate(RegenerateRequest),
}

struct GenerateRequest {
    name: Option<String>,
    /// Validated after the name, so that errors in the name are reported first.
    mode: Result<WriteMode, BodyError>,
    credential_type: Option<String>,
    parameters: Option<RequestedParameters>,
    /// `value.username` as JSON text: the former way to pass a username.
    username: Option<String>,
    metadata: Metadata,
}

impl PostRequest {
    fn read(body: &[u8]) -> Result<Self, (BodyError, Endpoint)> {
        let at = |endpoint| move |refused| (refused, endpoint);
        let (generating, regenerating) =
            (at(Endpoint::Generate), at(Endpoint::RegenerateThroughData));
        let mut fields = RequestObject::parse(body).map_err(generating)?;
        match fields.take_present("regenerate").map_err(generating)? {
            None => GenerateRequest::read(fields)
                .map(Self::Generate)
                .map_err(generating),
            Some(true) => fields
                .take::<Value>("type")
                .and_then(|_ignored| fields.read())
                .map(Self::Regenerate)
                .map_err(regenerating),
            Some(false) => Err(generating(BodyError::field(
                "regenerate",
                "true or omitted",
            ))),
        }
    }
}

impl JsonSchema for PostRequest {
    fn schema_name() -> Cow<'static, str> {
        "GenerateRequest".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let mut forms = Vec::new();
        for known in specified_types() {
            let Some(parameters) = known.parameters(schemas) else {
                continue;
            };
            let (required, mut fields): (&[_], _) = if known.name == CredentialType::CERTIFICATE {
                (&["parameters"], vec![("parameters", parameters)])
            } else {
                let parameters = json!({"anyOf": [parameters, {"type": "null"}]});
                (&[], vec![("parameters", parameters)])
            };
            if known.name == CredentialType::USER {
                fields.push(("value", deprecated_user_value()));
            }
            forms.push(generate_form(Some(&known.name), required, fields, schemas));
        }
        let parameters = vec![("parameters", parameters_of_another_type())];
        forms.push(generate_form(None, &[], parameters, schemas));
        forms.push(json_schema!({
            "title": "regenerate",
            "deprecated": true,
            "description": "Regenerates a credential, as `POST /api/v1/regenerate` does.",
            "type": "object",
            "properties": {
                "name": schemas.subschema_for::<Name>(),
                "regenerate": {"anyOf": [
                    {"enum": [true, 1]},
                    {"type": "string", "pattern": "^[Tt][Rr][Uu][Ee]$"},
                ]},
                "type": {"description": "Ignored."},
                "metadata": schemas.subschema_for::<Metadata>(),
            },
            "required": ["name", "regenerate"],
            "additionalProperties": false,
        }));
        json_schema!({"anyOf": forms})
    }
}

/// Returns the schema of a request to generate a credential of one type.
fn generate_form(
    specified_type: Option<&str>,
    required: &[&str],
    fields: Vec<(&str, Value)>,
    schemas: &mut SchemaGenerator,
) -> Schema {
    let mode = json!({
        "enum": ["converge", "no-overwrite", "overwrite", null],
        "default": "converge",
        "description": "Whether to add a version if the credential exists. `converge` adds one only if the parameters differ or the signing CA has another active certificate. `no-overwrite` keeps the existing version. `overwrite` always adds one.",
    });
    let overwrite = json!({
        "anyOf": [LenientBoolean::json_schema(schemas), {"type": "null"}],
        "deprecated": true,
        "description": "`true` is equivalent to the mode `overwrite`, `false` to the mode `no-overwrite`. Ignored if `mode` is given.",
    });
    let modes = [("mode", mode), ("overwrite", overwrite)];
    form(
        specified_type,
        required,
        fields.into_iter().chain(modes),
        schemas,
    )
}

/// Returns the schema of the deprecated field `value` in requests to generate a user. The username is now a parameter.
fn deprecated_user_value() -> Value {
    json!({
        "type": ["object", "null"],
        "deprecated": true,
        "properties": {"username": {"type": ["string", "number", "boolean", "null"]}},
        "additionalProperties": false,
    })
}

impl GenerateRequest {
    fn read(mut fields: RequestObject<'_>) -> Result<Self, BodyError> {
        let credential_type: Option<String> = fields.take("type")?;
        let is_user = credential_type
            .as_deref()
            .is_some_and(|named| named.eq_ignore_ascii_case(CredentialType::USER));
        let username = if is_user {
            take_username(&mut fields)?
        } else {
            None
        };
        let request = Self {
            name: fields.take("name")?,
            mode: take_mode(&mut fields),
            credential_type,
            parameters: fields.take_parameters()?,
            username,
            metadata: fields.take("metadata")?.unwrap_or_default(),
        };
        fields.finish()?;
        Ok(request)
    }

    fn check(self, types: &CredentialTypes) -> Result<Generate, ApiError> {
        let failed = |failure| ApiError::of(failure, Endpoint::Generate);
        let name = CredentialName::parse(&self.name.unwrap_or_default())
            .map_err(|malformed| failed(malformed.into()))?;
        let mode = self.mode?;
        let credential_type = types.parse(&self.credential_type.unwrap_or_default());
        let credential_type = credential_type.map_err(failed)?;
        if credential_type.is_set_only() {
            return Err(failed(UseCaseError::TypeNotGeneratable(credential_type)));
        }
        if credential_type.is_certificate() && self.parameters.is_none() {
            return Err(failed(UseCaseError::ParametersMissing(credential_type)));
        }
        let mut parameters = self.parameters;
        if let Some(username) = self.username {
            let parameters = parameters.get_or_insert_default();
            parameters.insert("username", username);
        }
        let metadata = self.metadata.parse();
        Ok(Generate {
            name,
            credential_type,
            mode,
            parameters,
            metadata: metadata.map_err(|long| failed(long.into()))?,
        })
    }
}

/// Takes the mode. `overwrite` from older clients is ignored if there is a mode.
fn take_mode(fields: &mut RequestObject<'_>) -> Result<WriteMode, BodyError> {
    let overwrite = fields.take("overwrite")?;
    match fields.take::<String>("mode")? {
        Some(mode) => mode
            .parse()
            .map_err(|_| BodyError::field("mode", "overwrite, no-overwrite or converge")),
        None => Ok(match overwrite {
            None => WriteMode::Converge,
            Some(false) => WriteMode::NoOverwrite,
            Some(true) => WriteMode::Overwrite,
        }),
    }
}

/// Takes `value.username` as JSON text. An empty string counts as absent.
fn take_username(fields: &mut RequestObject<'_>) -> Result<Option<String>, BodyError> {
    #[derive(Deserialize)]
    struct UserValue {
        username: Option<Box<RawValue>>,
    }
    let username = fields
        .take("value")?
        .and_then(|value: UserValue| value.username);
    let username = username.map(|json| json.get().to_owned());
    Ok(username.filter(|json| json != r#""""#))
}

async fn generate(Call { api, caller }: Call, request: Request) -> Result<Response, ApiError> {
    let body = read_json_body(request, &api.limits).await?;
    let request = PostRequest::read(&body);
    if let Ok(PostRequest::Regenerate(_)) | Err((_, Endpoint::RegenerateThroughData)) = request {
        caller.trail().set_action(actions::REGENERATE);
    }
    let request = request.map_err(|(refused, endpoint)| ApiError::body(&refused, endpoint))?;
    let failed = |failure| ApiError::of(failure, Endpoint::Generate);
    match request {
        PostRequest::Generate(request) => {
            let generate = request.check(&api.credentials.types)?;
            let written = api
                .credentials
                .generate
                .credential(&caller, generate)
                .await
                .map_err(failed)?;
            if !written.is_new {
                caller.trail().disclose(written.version.id);
            }
            rendered(&VersionBody::of_written(&written)?)
        }
        PostRequest::Regenerate(request) => {
            respond_regenerated(&api, &caller, request, Endpoint::RegenerateThroughData).await
        }
    }
}

/// A request to regenerate a credential.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RegenerateRequest {
    /// The credential's name.
    #[schemars(with = "LookedUpName")]
    name: Option<String>,
    /// The metadata of the new version.
    #[serde(default)]
    metadata: Metadata,
}

impl RegenerateRequest {
    fn check(self, endpoint: Endpoint) -> Result<Regenerate, UseCaseError> {
        let name = self.name.unwrap_or_default();
        let name = match CredentialName::parse(&name) {
            Ok(name) => name.lookup(),
            // `POST /api/v1/data` rejects malformed names. `POST /api/v1/regenerate` treats them as unknown.
            Err(malformed)
                if endpoint == Endpoint::Regenerate && malformed != NameError::Missing =>
            {
                LookupName::new(&name)
            }
            Err(malformed) => return Err(malformed.into()),
        };
        Ok(Regenerate {
            name,
            metadata: self.metadata.parse()?,
        })
    }
}

async fn regenerate(
    Call { api, caller }: Call,
    StrictJson(request): StrictJson<RegenerateRequest>,
) -> Result<Response, ApiError> {
    respond_regenerated(&api, &caller, request, Endpoint::Regenerate).await
}

/// Regenerates the credential named in the body. Used by both endpoints.
async fn respond_regenerated(
    api: &Api,
    caller: &Caller,
    request: RegenerateRequest,
    endpoint: Endpoint,
) -> Result<Response, ApiError> {
    let failed = |failure| ApiError::of(failure, endpoint);
    let regenerate = request.check(endpoint).map_err(failed)?;
    let written = api
        .credentials
        .regenerate
        .credential(caller, regenerate)
        .await
        .map_err(failed)?;
    rendered(&VersionBody::of_written(&written)?)
}
