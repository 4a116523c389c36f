//! `POST /api/v1/data` generates a credential, or regenerates one with `"regenerate": true`. `POST /api/v1/regenerate`
//! regenerates one.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use keywright_core::{
    Failure, Secret,
    authorization::Caller,
    credential::{
        self, CredentialName, CredentialType, CredentialTypes, Generate, LookupName, NameError,
        Regenerate, RequestedParameters, WriteMode,
    },
    permission::Operation::Write,
};
use schemars::JsonSchema;
use serde_json::json;

use super::required_name;
use crate::{
    Api,
    audit::actions,
    description::{Description, GenerateBody, LookedUpName, Metadata, Tag, Version, example},
    request::{BodyError, RequestObject, parse_json_body, read_json_body},
    response::{ApiError, Endpoint, VersionBody, rendered},
    route::{Access::Permission, Route, route},
};

pub(crate) fn generate_route() -> Route {
    route!(POST "/api/v1/data", Permission(Write), "GENERATE", generate, describe_generate)
}

pub(crate) fn regenerate_route() -> Route {
    route!(POST "/api/v1/regenerate", Permission(Write), "REGENERATE", regenerate, describe_regenerate)
}

/// A request to `POST /api/v1/data`.
enum PostRequest {
    Generate(GenerateRequest),
    Regenerate(RegenerateRequest),
}

/// The fields of a request to generate.
struct GenerateRequest {
    name: Option<String>,
    /// Validated after the name, so that errors in the name are reported first.
    mode: Result<WriteMode, BodyError>,
    credential_type: Option<String>,
    parameters: Option<RequestedParameters>,
    /// `value.username` as JSON text: the former way to pass a username.
    username: Option<String>,
    metadata: Option<Secret>,
}

impl PostRequest {
    fn read(body: &[u8]) -> Result<Self, (BodyError, Endpoint)> {
        let at = |endpoint| move |refused| (refused, endpoint);
        let mut fields = RequestObject::parse(body).map_err(at(Endpoint::Generate))?;
        match fields
            .take_boolean("regenerate")
            .map_err(at(Endpoint::Generate))?
        {
            None => GenerateRequest::read(fields)
                .map(Self::Generate)
                .map_err(at(Endpoint::Generate)),
            Some(true) => {
                let endpoint = Endpoint::RegenerateThroughData;
                fields.take_json("type").map_err(at(endpoint))?;
                RegenerateRequest::read(fields)
                    .map(Self::Regenerate)
                    .map_err(at(endpoint))
            }
            Some(false) => Err((
                BodyError::UnknownField("regenerate".to_owned()),
                Endpoint::Generate,
            )),
        }
    }
}

impl GenerateRequest {
    fn read(mut fields: RequestObject<'_>) -> Result<Self, BodyError> {
        let credential_type = fields.take_text("type")?;
        let is_user = credential_type
            .as_deref()
            .is_some_and(|named| named.eq_ignore_ascii_case(CredentialType::USER));
        let username = if is_user {
            take_username(&mut fields)?
        } else {
            None
        };
        let request = Self {
            name: fields.take_text("name")?,
            mode: take_mode(&mut fields),
            credential_type,
            parameters: fields.take_parameters("parameters")?,
            username,
            metadata: fields.take_secret("metadata"),
        };
        fields.finish()?;
        Ok(request)
    }

    fn check(self, types: &CredentialTypes) -> Result<Generate, ApiError> {
        let failed = |failure| ApiError::of(failure, Endpoint::Generate);
        let name = required_name(self.name).map_err(failed)?;
        let mode = self
            .mode
            .map_err(|refused| ApiError::body(&refused, Endpoint::Generate))?;
        let credential_type = types.parse(&self.credential_type.unwrap_or_default());
        let credential_type = credential_type.map_err(failed)?;
        if credential_type.is_set_only() {
            return Err(failed(Failure::TypeNotGeneratable(credential_type)));
        }
        if credential_type.is_certificate() && self.parameters.is_none() {
            return Err(failed(Failure::ParametersMissing(credential_type)));
        }
        let mut parameters = self.parameters;
        if let Some(username) = self.username {
            let parameters = parameters.get_or_insert_default();
            parameters.insert("username", username);
        }
        let metadata = self.metadata.map(credential::Metadata::parse).transpose();
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
    let overwrite = fields.take_nullable_boolean("overwrite")?;
    match fields.take_text("mode")?.as_deref() {
        Some("converge") => Ok(WriteMode::Converge),
        Some("no-overwrite") => Ok(WriteMode::NoOverwrite),
        Some("overwrite") => Ok(WriteMode::Overwrite),
        Some(_) => Err(BodyError::FieldMalformed {
            field: "mode",
            expected: "overwrite, no-overwrite or converge",
        }),
        None => Ok(match overwrite {
            None => WriteMode::Converge,
            Some(false) => WriteMode::NoOverwrite,
            Some(true) => WriteMode::Overwrite,
        }),
    }
}

/// Takes `value.username` as JSON text. An empty string counts as absent.
fn take_username(fields: &mut RequestObject<'_>) -> Result<Option<String>, BodyError> {
    let Some(mut value) = fields.take_object("value")? else {
        return Ok(None);
    };
    let username = value.take_json_text("username");
    value.finish()?;
    Ok(username.filter(|json| json != r#""""#))
}

fn describe_generate() -> Description {
    Description::new("generateCredential", Tag::Credentials, "Generates a credential, or keeps the existing one")
        .text("By default, repeating a request keeps the credential, and a request with other parameters adds a version. \
            With `regenerate`, this operation is the same as `POST /api/v1/regenerate`.\n\n\
            Scalars in `parameters` are converted to the types in the schema. A string parameter also accepts a number or a boolean, \
            and uses its JSON text. A boolean parameter also accepts the strings `true` and `false` in any case, and the numbers 0 and 1. \
            An integer parameter also accepts a number such as `20.0`, and a string of digits.")
        .body::<GenerateBody>()
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
        .error(400, "The name, the type, the mode, the parameters or the metadata is invalid, the credential has another type, \
            or the body or the parameters have an unknown field.")
        .error(403, "The caller may not write the credential.")
        .error(404, "The CA named by `ca` does not exist, or the caller may not read it. With `regenerate`, the credential does not exist.")
        .error(413, "The parameters, the generated value or, with `regenerate`, the metadata are too large.")
}

async fn generate(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
) -> Result<Response, ApiError> {
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
            rendered(&VersionBody::of_written(&written).map_err(failed)?)
        }
        PostRequest::Regenerate(request) => {
            respond_regenerated(&api, &caller, request, Endpoint::RegenerateThroughData).await
        }
    }
}

/// A request to regenerate a credential.
#[derive(JsonSchema)]
#[schemars(rename = "RegenerateRequest", deny_unknown_fields)]
struct RegenerateRequest {
    /// The credential's name.
    #[schemars(with = "LookedUpName")]
    name: Option<String>,
    /// The metadata of the new version.
    #[schemars(default, with = "Metadata")]
    metadata: Option<Secret>,
}

impl RegenerateRequest {
    fn read(mut fields: RequestObject<'_>) -> Result<Self, BodyError> {
        let request = Self {
            name: fields.take_text("name")?,
            metadata: fields.take_secret("metadata"),
        };
        fields.finish()?;
        Ok(request)
    }

    fn check(self, endpoint: Endpoint) -> Result<Regenerate, Failure> {
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
            metadata: self.metadata.map(credential::Metadata::parse).transpose()?,
        })
    }
}

fn describe_regenerate() -> Description {
    Description::new("regenerateCredential", Tag::Credentials, "Regenerates a credential")
        .text("Adds a version with the parameters of the newest version. RSA and SSH keys can always be regenerated; passwords and \
            users only if they were generated; certificates if they were generated, are self-signed or were signed by a stored CA.")
        .body::<RegenerateRequest>()
        .request_example("password", json!({"name": "/demo/password"}))
        .response::<Version>(200, "The added version.")
        .response_example("password", example::password_version())
        .error(400, "The credential can't be regenerated, or its name is missing.")
        .error(403, "The caller may not write the credential.")
        .error(404, "The credential does not exist, or the caller may not read the CA that signed it.")
        .error(413, "The metadata is too long.")
        .error(422, "The body has an unknown field.")
}

async fn regenerate(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
) -> Result<Response, ApiError> {
    let read = RegenerateRequest::read;
    let request = parse_json_body(request, &api.limits, Endpoint::Regenerate, read).await?;
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
    rendered(&VersionBody::of_written(&written).map_err(failed)?)
}
