//! `GET /api/v2/permissions/explain`: why an actor may do something on a path, or may not.

use std::sync::Arc;

use axum::{Extension, extract::State, http::Uri, response::Response};
use keywright_core::{
    Failure,
    authorization::Caller,
    permission::{Actor, ConsideredRule, Explanation, Operation, PermissionPath},
};
use serde::Serialize;
use uuid::Uuid;

use super::{failed, operation_names};
use crate::{
    Api,
    request::{QueryParameters, QueryRefused},
    response::{ApiFailure, rendered},
};

/// What is to be explained, as the query has it.
struct ExplainRequest<'a> {
    actor: &'a str,
    path: &'a str,
    operation: &'a str,
}

impl<'a> ExplainRequest<'a> {
    fn read(query: &'a QueryParameters) -> Result<Self, QueryRefused> {
        Ok(Self {
            actor: query.required("actor")?,
            path: query.required("path")?,
            operation: query.required("operation")?,
        })
    }

    fn parsed(&self) -> Result<(Actor, Operation, PermissionPath), Failure> {
        let path = PermissionPath::parse(self.path)?;
        let actor = Actor::parse(self.actor)?;
        Ok((actor, Operation::parse(self.operation)?, path))
    }
}

#[derive(Serialize)]
struct ExplainResponse<'a> {
    actor: &'a str,
    path: &'a str,
    operation: &'static str,
    allowed: bool,
    enforced: bool,
    rules: Vec<RuleBody<'a>>,
    allowed_by: Option<AllowedBy<'a>>,
    missing: Option<Missing<'a>>,
}

/// A path that covers the one that was asked about, and what stands there for the actor.
#[derive(Serialize)]
struct RuleBody<'a> {
    path: &'a str,
    uuid: Option<Uuid>,
    operations: Vec<&'static str>,
}

#[derive(Serialize)]
struct AllowedBy<'a> {
    uuid: Uuid,
    path: &'a str,
}

/// What no permission allows, in words, and the least permission that would allow it.
#[derive(Serialize)]
struct Missing<'a> {
    reason: String,
    permission: MissingPermission<'a>,
}

#[derive(Serialize)]
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
            missing: allowed_by.is_none().then(|| Missing::of(explanation)),
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
    fn of(explanation: &'a Explanation) -> Self {
        let Explanation {
            actor,
            path,
            operation,
            ..
        } = explanation;
        Self {
            reason: format!(
                "no permission of {actor} on {path}, or on a path that encloses it, has the operation {operation}"
            ),
            permission: MissingPermission {
                path: path.as_str(),
                actor: actor.as_str(),
                operations: [operation.as_str()],
            },
        }
    }
}

/// Explains why an actor may do something on a path, or may not.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    uri: Uri,
) -> Result<Response, ApiFailure> {
    let query = QueryParameters::of(&uri);
    let request = ExplainRequest::read(&query)?;
    let (actor, operation, path) = request.parsed().map_err(failed)?;
    let explained = api.permissions.explain(&caller, actor, operation, path);
    let explanation = explained.await.map_err(failed)?;
    rendered(&ExplainResponse::of(&explanation))
}
