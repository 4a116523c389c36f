//! `POST /api/v1/permissions`: grants operations on a credential.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
};
use keywright_core::{
    Failure,
    authorization::Caller,
    permission::{ACTOR_CHARACTERS_MAX, Actor, Grant, PermissionPath},
    permission_management::CREDENTIAL_GRANTS_MAX,
};

use schemars::JsonSchema;
use serde_json::json;

use super::super::{
    OPERATIONS_LISTED_MAX, OperationSchema, failed, parsed_operations, refused, take_operations,
};
use crate::{
    Api,
    description::{Described, GrantedPath, Tag},
    request::{BodyRefused, RequestObject, read_json_body},
    response::ApiFailure,
};

/// The permissions to add to a credential.
#[derive(JsonSchema)]
#[schemars(rename = "AddCredentialPermissionsRequest", deny_unknown_fields)]
struct AddRequest {
    #[schemars(with = "GrantedPath")]
    credential_name: String,
    /// The permissions to add. Each applies to `credential_name`.
    #[schemars(length(min = 1, max = CREDENTIAL_GRANTS_MAX))]
    permissions: Vec<EntryRequest>,
}

/// A permission on the credential.
#[derive(JsonSchema)]
#[schemars(rename = "CredentialPermissionRequest", deny_unknown_fields)]
struct EntryRequest {
    /// The credential's name. If it is given, it must be the same as `credential_name`.
    #[schemars(default, with = "Option<GrantedPath>")]
    path: Option<String>,
    /// The actor: such as `uaa-client:<client id>`, `uaa-user:<user id>` or `mtls-app:<application id>`.
    #[schemars(length(min = 1, max = ACTOR_CHARACTERS_MAX))]
    actor: String,
    /// The granted operations.
    #[schemars(with = "Vec<OperationSchema>", length(min = 1, max = OPERATIONS_LISTED_MAX))]
    operations: Vec<String>,
}

impl EntryRequest {
    fn take(mut members: RequestObject<'_>) -> Result<Self, BodyRefused> {
        let path = members.take_text("path")?;
        let actor = members.take_text("actor")?;
        let operations = take_operations(&mut members);
        members.finish()?;
        Ok(Self {
            path,
            operations: operations?,
            actor: actor.ok_or(BodyRefused::MemberMissing("actor"))?,
        })
    }

    /// Returns the grant on a path, which the entry may repeat.
    fn grant_on(&self, path: &PermissionPath) -> Result<Grant, ApiFailure> {
        let operations = parsed_operations(&self.operations).map_err(failed)?;
        if let Some(given) = &self.path
            && parsed_path(given)? != *path
        {
            return Err(refused(&BodyRefused::MemberMalformed {
                member: "path",
                expected: "the same as credential_name",
            }));
        }
        let actor = Actor::parse(&self.actor).map_err(|cause| failed(Failure::from(cause)))?;
        Ok(Grant {
            path: path.clone(),
            actor,
            operations,
        })
    }
}

fn parsed_path(text: &str) -> Result<PermissionPath, ApiFailure> {
    PermissionPath::parse(text).map_err(|malformed| failed(malformed.into()))
}

impl AddRequest {
    fn take(mut members: RequestObject<'_>) -> Result<Self, BodyRefused> {
        let credential_name = members.take_text("credential_name")?;
        let permissions = members.take_objects("permissions")?.unwrap_or_default();
        members.finish()?;
        if permissions.is_empty() || permissions.len() > CREDENTIAL_GRANTS_MAX {
            return Err(BodyRefused::MemberMalformed {
                member: "permissions",
                expected: "an array of at least one and at most 100 permissions",
            });
        }
        let permissions = permissions.into_iter().map(EntryRequest::take);
        Ok(Self {
            permissions: permissions.collect::<Result<_, _>>()?,
            credential_name: credential_name
                .ok_or(BodyRefused::MemberMissing("credential_name"))?,
        })
    }

    /// Returns the path and the grants on it.
    fn grants(&self) -> Result<(PermissionPath, Vec<Grant>), ApiFailure> {
        let path = parsed_path(&self.credential_name)?;
        let grants = self.permissions.iter().map(|entry| entry.grant_on(&path));
        let grants = grants.collect::<Result<_, _>>()?;
        Ok((path, grants))
    }
}

/// Describes the operation.
pub(crate) fn describe() -> Described {
    let entry = json!({"actor": "uaa-user:1", "operations": ["read"]});
    Described::new(
        "addCredentialPermissions",
        Tag::Permissions,
        "Grants operations on a credential",
    )
    .text("Use `POST /api/v2/permissions` instead.")
    .deprecated()
    .body::<AddRequest>()
    .asked(
        "read",
        json!({"credential_name": "/demo/web", "permissions": [entry]}),
    )
    .empty_answer(201, "The operations are granted.")
    .fails(
        400,
        "The body is invalid, or a permission is the caller's own.",
    )
    .fails(404, "The caller may not change permissions there.")
    .fails(409, "An actor already has these permissions.")
    .fails(
        422,
        "An operation is unknown, or the body has an unknown field.",
    )
}

/// Adds the permissions.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
) -> Result<StatusCode, ApiFailure> {
    let body = read_json_body(request, &api.limits).await?;
    let request = RequestObject::parse(&body).and_then(AddRequest::take);
    let (path, grants) = request.map_err(|cause| refused(&cause))?.grants()?;
    let granted = api.permissions.grant_on_credential(&caller, &path, &grants);
    granted.await.map_err(failed)?;
    Ok(StatusCode::CREATED)
}
