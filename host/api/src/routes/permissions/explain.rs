//! `GET /api/v2/permissions/explain` explains why an operation is allowed or denied.

use axum::response::Response;
use keywright_core::{
    UseCaseError,
    permission::{
        Actor,
        Operation::{self, ReadAcl},
        PermissionPath,
    },
    permission_management::{ConsideredRule, Explanation},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::operation_names;
use crate::{
    description::Parameter,
    request::QueryParameters,
    response::{ApiError, rendered},
    route::{Access::Permission, Call, Route, route},
};

pub(crate) fn route() -> Route {
    route!(GET "/api/v2/permissions/explain", Permission(ReadAcl), "EXPLAIN_PERMISSIONS", handler,
        "explainPermission", Permissions, "Explains why an operation is allowed or denied",
        400 => "A parameter is missing, empty, repeated or invalid.",
        404 => "The caller may not read permissions on the path.",
        422 => "The operation is unknown.")
        .parameter(Parameter::required("actor", "The actor.").example("uaa-client:app"))
        .parameter(Parameter::required("path", "The full name of a credential, or a path that ends in `/*`.").example("/demo/database"))
        .parameter(
            Parameter::required("operation", "The operation.")
                .one_of(&Operation::ALL.map(Operation::as_str))
                .example("read"),
        )
        .response::<ExplainResponse<'_>>(200, "The evaluated rules, and the result.")
        .response_example(
            "allowed",
            json!({
                "actor": "uaa-client:app",
                "path": "/demo/database",
                "operation": "read",
                "allowed": true,
                "enforced": true,
                "rules": [
                    {"path": "/demo/database", "uuid": null, "operations": []},
                    {"path": "/demo/*", "uuid": "1c9e6fcb-ada4-40ea-bb90-b787f15db3fb", "operations": ["read"]},
                    {"path": "/*", "uuid": null, "operations": []},
                ],
                "allowed_by": {"uuid": "1c9e6fcb-ada4-40ea-bb90-b787f15db3fb", "path": "/demo/*"},
                "missing": null,
            }),
        )
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Explanation")]
struct ExplainResponse<'a> {
    actor: &'a str,
    path: &'a str,
    operation: &'static str,
    /// Whether a permission allows the operation.
    allowed: bool,
    /// Whether the server enforces permissions.
    enforced: bool,
    /// The paths that cover the requested path, nearest first, with the actor's permission on each.
    rules: Vec<RuleBody<'a>>,
    /// The permission that allows the operation; null if permissions do not allow it.
    allowed_by: Option<AllowedBy<'a>>,
    /// The missing permission; null if permissions allow the operation.
    missing: Option<Missing<'a>>,
}

/// A path that covers the requested path, and the actor's permission on it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsideredRule")]
struct RuleBody<'a> {
    path: &'a str,
    uuid: Option<Uuid>,
    operations: Vec<&'static str>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct AllowedBy<'a> {
    uuid: Uuid,
    path: &'a str,
}

/// The reason for the denial, and the smallest permission that would allow the operation.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Missing<'a> {
    reason: String,
    permission: MissingPermission<'a>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct MissingPermission<'a> {
    path: &'a str,
    actor: &'a str,
    operations: [&'static str; 1],
}

impl<'a> ExplainResponse<'a> {
    fn of(explanation: &'a Explanation) -> Self {
        let allowed_by = explanation.allowed_by.as_ref();
        Self {
            actor: explanation.actor.as_str(),
            path: explanation.path.as_str(),
            operation: explanation.operation.as_str(),
            allowed: explanation.is_allowed,
            enforced: explanation.is_enforced,
            rules: explanation.considered.iter().map(RuleBody::of).collect(),
            allowed_by: allowed_by.map(|permission| AllowedBy {
                uuid: permission.id,
                path: permission.path.as_str(),
            }),
            missing: explanation
                .denied_on
                .as_deref()
                .map(|path| Missing::of(explanation, path)),
        }
    }
}

impl<'a> RuleBody<'a> {
    fn of(rule: &'a ConsideredRule) -> Self {
        let permission = rule.permission.as_ref();
        Self {
            path: rule.path.as_str(),
            uuid: permission.map(|permission| permission.id),
            operations: permission.map_or_else(Vec::new, |permission| {
                operation_names(permission.operations)
            }),
        }
    }
}

impl<'a> Missing<'a> {
    fn of(explanation: &'a Explanation, path: &'a str) -> Self {
        let Explanation {
            actor, operation, ..
        } = explanation;
        Self {
            reason: format!(
                "no permission on {path} or on a path that covers it grants {operation} to {actor}"
            ),
            permission: MissingPermission {
                path,
                actor: actor.as_str(),
                operations: [operation.as_str()],
            },
        }
    }
}

async fn handler(Call { api, caller }: Call, query: QueryParameters) -> Result<Response, ApiError> {
    let [actor, path, operation] = ["actor", "path", "operation"].map(|name| query.required(name));
    let (actor, path, operation) = (actor?, path?, operation?);
    let path = PermissionPath::parse(path).map_err(UseCaseError::from)?;
    let actor = Actor::parse(actor).map_err(UseCaseError::from)?;
    let operation = Operation::parse(operation).map_err(UseCaseError::from)?;
    let explained = api.permissions.explain(&caller, actor, operation, path);
    rendered(&ExplainResponse::of(&explained.await?))
}
