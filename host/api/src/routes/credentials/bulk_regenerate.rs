//! `POST /api/v1/bulk-regenerate`: regenerates everything that an authority signed, or that a plugin made.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use keywright_core::{
    authorization::Caller,
    credential::{
        BulkRegenerate, CredentialName, DigestMalformed, FindNames, LookupName, NameMalformed,
        PluginDigest,
    },
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    Api,
    description::{Described, LookedUpName, Tag},
    request::{BodyRefused, RequestObject, read_json_body},
    response::{ApiFailure, Endpoint, rendered},
};
use serde_json::json;

/// The members of the body: one of `signed_by` and `generated_by` must be there.
#[derive(JsonSchema)]
#[schemars(
    rename = "BulkRegenerateRequest",
    deny_unknown_fields,
    extend("anyOf" = [{"required": [SIGNED_BY]}, {"required": [GENERATED_BY]}])
)]
struct BulkRegenerateRequest {
    /// The name of the authority that signed what is regenerated.
    #[schemars(with = "Option<LookedUpName>")]
    signed_by: Option<String>,
    /// The plugin that made what is regenerated: the SHA-256 of its component.
    #[schemars(regex(pattern = "^(sha256:)?[0-9A-Fa-f]{64}$"))]
    generated_by: Option<String>,
    /// With `generated_by`: regenerates only what is strictly below this path.
    path: Option<String>,
    /// Whether it is only told what would be regenerated.
    #[schemars(default)]
    dry_run: bool,
}

/// A request in order.
struct Asked {
    of: BulkRegenerate,
    is_dry_run: bool,
}

impl BulkRegenerateRequest {
    fn read(mut members: RequestObject<'_>) -> Result<Self, BodyRefused> {
        let request = Self {
            signed_by: members.take_text(SIGNED_BY)?,
            generated_by: members.take_text(GENERATED_BY)?,
            path: members.take_text(PATH)?,
            dry_run: members.take_boolean("dry_run")?.unwrap_or(false),
        };
        members.finish()?;
        Ok(request)
    }

    fn check(self) -> Result<Asked, BodyRefused> {
        let of = match (self.signed_by, self.generated_by) {
            (Some(_), Some(_)) => return Err(refused(GENERATED_BY, "left out beside signed_by")),
            (_, None) if self.path.is_some() => {
                return Err(refused(PATH, "left out without generated_by"));
            }
            (signed_by, None) => BulkRegenerate::SignedBy(authority(signed_by)?),
            (None, Some(digest)) => BulkRegenerate::GeneratedBy {
                digest: PluginDigest::parse(&digest)
                    .map_err(|_| refused(GENERATED_BY, DigestMalformed::EXPECTED))?,
                names: FindNames::below(&self.path.unwrap_or_default()),
            },
        };
        Ok(Asked {
            of,
            is_dry_run: self.dry_run,
        })
    }
}

/// The name of the authority, which must be there. A malformed one is one that signed nothing.
fn authority(signed_by: Option<String>) -> Result<LookupName, BodyRefused> {
    let signed_by = signed_by.unwrap_or_default();
    if CredentialName::parse(&signed_by) == Err(NameMalformed::Missing) {
        return Err(refused(SIGNED_BY, "the name of a certificate authority"));
    }
    Ok(LookupName::new(&signed_by))
}

fn refused(member: &'static str, expected: &'static str) -> BodyRefused {
    BodyRefused::MemberMalformed { member, expected }
}

/// The names of what was regenerated.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RegeneratedCredentials")]
struct BulkRegenerateBody<'a> {
    /// Their names, in alphabetical order.
    regenerated_credentials: Vec<&'a str>,
    /// Only with `dry_run`, and then true: these would be regenerated, and nothing was.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    dry_run: bool,
}

/// What the description says of it.
pub(crate) fn describe() -> Described {
    Described::new("bulkRegenerate", Tag::Credentials, "Regenerates everything that an authority signed, or that a plugin made")
        .text("With `signed_by`, the certificates that an authority signed, the credentials of other types for which it signed one, and what those that are authorities signed, down to the leaves. \
            With `generated_by`, the credentials that the caller may read and whose newest version a plugin made. All of them or none.")
        .body::<BulkRegenerateRequest>()
        .asked("authority", json!({"signed_by": "/demo/root"}))
        .asked("plugin", json!({
            "generated_by": "sha256:a920db1cf1d55e175bd5a81064b2c41f12e33e63e0aace47c9a5027cb92fdee1",
            "path": "/demo",
            "dry_run": true,
        }))
        .answer::<BulkRegenerateBody<'_>>(200, "What was regenerated, or with `dry_run` would be; nothing where there is nothing.")
        .answered("one", json!({"regenerated_credentials": ["/demo/web"]}))
        .answered("dry run", json!({"regenerated_credentials": ["/demo/web"], "dry_run": true}))
        .fails(400, "The name or the digest is missing or malformed, one of the credentials can't be regenerated, or the plugin would make them again.")
        .fails(403, "The caller may not write one of the credentials.")
        .fails(404, "The caller may not read the authority, or one of those below it.")
        .fails(413, "There are more credentials than are written together.")
        .fails(422, "The body has a member that is not known.")
}

/// Regenerates many credentials, or tells which it would.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
) -> Result<Response, ApiFailure> {
    let body = read_json_body(request, &api.limits).await?;
    let asked = RequestObject::parse(&body)
        .and_then(BulkRegenerateRequest::read)
        .and_then(BulkRegenerateRequest::check)
        .map_err(|refused| ApiFailure::body(&refused, Endpoint::Other))?;
    let names = if asked.is_dry_run {
        api.credentials
            .to_be_bulk_regenerated(&caller, &asked.of)
            .await
    } else {
        api.credentials.bulk_regenerate(&caller, &asked.of).await
    }
    .map_err(|failure| ApiFailure::of(failure, Endpoint::Other))?;
    rendered(&BulkRegenerateBody {
        regenerated_credentials: names.iter().map(CredentialName::as_str).collect(),
        dry_run: asked.is_dry_run,
    })
}

const SIGNED_BY: &str = "signed_by";
const GENERATED_BY: &str = "generated_by";
const PATH: &str = "path";
