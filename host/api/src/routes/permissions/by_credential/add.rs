//! `POST /api/v1/permissions`: lets actors do more with a credential.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
};
use keywright_core::{
    authorization::Caller,
    permission::{CREDENTIAL_GRANTS_MAX, Grant, PERMISSION_PATH_CHARACTERS_MAX, PermissionPath},
};

use schemars::JsonSchema;
use serde_json::json;

use super::super::{GrantRequest, failed, refused};
use crate::{
    Api,
    description::{Described, Tag},
    request::{BodyRefused, RequestObject, read_json_body},
    response::ApiFailure,
};

/// A credential, and who may do what with it.
#[derive(JsonSchema)]
#[schemars(rename = "AddCredentialPermissionsRequest", deny_unknown_fields)]
struct AddRequest {
    /// The credential's name.
    #[schemars(length(min = 1, max = PERMISSION_PATH_CHARACTERS_MAX))]
    credential_name: String,
    /// What is to be allowed; each has the credential's name as its path.
    #[schemars(length(min = 1, max = CREDENTIAL_GRANTS_MAX))]
    permissions: Vec<GrantRequest>,
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
        let permissions = permissions.into_iter().map(GrantRequest::take);
        Ok(Self {
            permissions: permissions.collect::<Result<_, _>>()?,
            credential_name: credential_name
                .ok_or(BodyRefused::MemberMissing("credential_name"))?,
        })
    }

    /// What is to be granted, all of it on the credential: an entry has no path of its own to choose.
    fn grants(&self) -> Result<(PermissionPath, Vec<Grant>), ApiFailure> {
        let path = PermissionPath::parse(&self.credential_name);
        let path = path.map_err(|malformed| failed(malformed.into()))?;
        let mut grants = Vec::with_capacity(self.permissions.len());
        for entry in &self.permissions {
            let grant = entry.grant().map_err(failed)?;
            if grant.path != path {
                return Err(refused(&BodyRefused::MemberMalformed {
                    member: "path",
                    expected: "the same as credential_name",
                }));
            }
            grants.push(grant);
        }
        Ok((path, grants))
    }
}

/// What the description says of it.
pub(crate) fn describe() -> Described {
    let entry = json!({"path": "/demo/web", "actor": "uaa-user:1", "operations": ["read"]});
    Described::new(
        "addCredentialPermissions",
        Tag::Permissions,
        "Lets actors do more with a credential",
    )
    .text("`POST /api/v2/permissions` takes its place.")
    .deprecated()
    .body::<AddRequest>()
    .asked(
        "read",
        json!({"credential_name": "/demo/web", "permissions": [entry]}),
    )
    .empty_answer(201, "They may.")
    .fails(
        400,
        "The body breaks a rule, or a permission is the caller's own.",
    )
    .fails(404, "The caller may not change permissions there.")
    .fails(409, "An actor may do all of this already.")
    .fails(
        422,
        "An operation is not known, or the body has a member that is not known.",
    )
}

/// Makes sure that the permissions are there.
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
