//! `GET /api/v1/data` with `path`, `name-like`, `generated_by` or `derived_from` searches for credentials.

use std::sync::Arc;

use axum::response::Response;
use keywright_core::{
    authorization::Caller,
    credential::{
        CredentialName, DigestError, EffectiveExpiry, FindNames, FoundCredential, LookupName,
        PluginDigest,
    },
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    Api,
    audit::actions,
    description::Timestamp,
    request::{QueryError, QueryParameters},
    response::{ApiError, LazyList, list_bytes, rendered, rendered_list, timestamp},
};

pub(super) struct FindRequest {
    names: FindNames,
    restriction: Restriction,
}

/// A further restriction of the found credentials.
enum Restriction {
    None,
    Expiry {
        within_days: i64,
        /// Whether to check the whole chain of the active version, instead of only the latest version.
        is_effective: bool,
    },
    GeneratedBy(PluginDigest),
    DerivedFrom(LookupName),
}

impl FindRequest {
    /// Returns whether the query is a search, even if it also has a name.
    pub(super) fn is_search(query: &QueryParameters) -> bool {
        [PATH, NAME_LIKE, GENERATED_BY, DERIVED_FROM]
            .into_iter()
            .any(|parameter| query.has(parameter))
    }

    /// Validates the search parameters, even if the query is not a search.
    pub(super) fn check_parameters(query: &QueryParameters) -> Result<(), QueryError> {
        query.integer(EXPIRES_WITHIN_DAYS)?;
        query.boolean(EFFECTIVE)?;
        Ok(())
    }

    pub(super) fn record(caller: &Caller, query: &QueryParameters) {
        let parameters = [
            PATH,
            NAME_LIKE,
            EXPIRES_WITHIN_DAYS,
            EFFECTIVE,
            GENERATED_BY,
            DERIVED_FROM,
        ];
        let details = parameters.into_iter().filter_map(|parameter| {
            let text = query.text(parameter).ok()??;
            Some((parameter.to_owned(), Value::from(text)))
        });
        caller.trail().set_action(actions::FIND);
        caller.trail().set_details(Value::Object(details.collect()));
    }

    pub(super) fn read(query: &QueryParameters) -> Result<Self, QueryError> {
        let generated_by = generated_by(query)?;
        let derived_from = query.text(DERIVED_FROM)?.map(LookupName::new);
        let is_by_provenance = generated_by.is_some() || derived_from.is_some();
        let names = match (query.text(PATH)?, query.text(NAME_LIKE)?) {
            (None, None) if is_by_provenance => FindNames::below(EVERYTHING),
            (None, None) => return Err(QueryError::Missing(PATH)),
            (Some(_), Some(_)) => return Err(QueryError::Exclusive(PATH, NAME_LIKE)),
            (Some(path), None) => FindNames::below(path),
            (None, Some(part)) => FindNames::containing(part),
        };
        let is_effective = query.boolean(EFFECTIVE)?;
        let within_days = query.integer(EXPIRES_WITHIN_DAYS)?;
        if derived_from.is_some() {
            for (other, is_given) in [
                (EXPIRES_WITHIN_DAYS, within_days.is_some()),
                (GENERATED_BY, generated_by.is_some()),
            ] {
                if is_given {
                    return Err(QueryError::Exclusive(other, DERIVED_FROM));
                }
            }
        }
        let restriction = match (within_days, is_effective, generated_by) {
            (None, Some(true), _) => {
                return Err(QueryError::Dependent(EFFECTIVE, EXPIRES_WITHIN_DAYS));
            }
            (Some(_), _, Some(_)) => {
                return Err(QueryError::Exclusive(EXPIRES_WITHIN_DAYS, GENERATED_BY));
            }
            (Some(within_days), is_effective, None) => Restriction::Expiry {
                within_days,
                is_effective: is_effective.unwrap_or(false),
            },
            (None, _, Some(digest)) => Restriction::GeneratedBy(digest),
            (None, _, None) => derived_from.map_or(Restriction::None, Restriction::DerivedFrom),
        };
        Ok(Self { names, restriction })
    }
}

fn generated_by(query: &QueryParameters) -> Result<Option<PluginDigest>, QueryError> {
    let digest = query.text(GENERATED_BY)?.map(PluginDigest::parse);
    digest.transpose().map_err(|_| QueryError::Malformed {
        parameter: GENERATED_BY,
        expected: DigestError::EXPECTED,
    })
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FoundCredentials")]
pub(super) struct FindResponse<'a> {
    #[schemars(with = "Vec<FoundBody<'a>>")]
    credentials: LazyList<'a, FoundBody<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FoundCredential")]
struct FoundBody<'a> {
    /// The credential's name, with the casing of its first version.
    name: &'a str,
    /// When the active version was created.
    #[schemars(with = "Timestamp")]
    version_created_at: String,
    /// When the latest version expires; with `effective`, when the first certificate of its chain expires. Only in a search by
    /// expiry, and absent if the version only has a `rotation_date`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    expiry_date: Option<String>,
    /// When the latest version should be rotated, if its plugin returned it. Only in a search by expiry.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    rotation_date: Option<String>,
    /// The certificate of the chain that expires first. Only with `effective`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LinkBody")]
    expiring_link: Option<LinkBody<'a>>,
    /// Always true: `generated_by` is the claim of the caller who imported the credential. Only in a search by `generated_by`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    imported: Option<bool>,
    /// Whether the latest version was derived from a version of the input that is not active. Only in a search by `derived_from`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    stale: Option<bool>,
}

/// The certificate of a chain that expires first.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ExpiringLink")]
struct LinkBody<'a> {
    /// The name of its credential; null if unknown.
    name: Option<&'a str>,
    /// The id of its version; null if unknown.
    version_id: Option<Uuid>,
    /// Its position in the chain; 0 is the credential's own certificate.
    depth: u32,
}

impl<'a> FoundBody<'a> {
    fn of(found: &'a FoundCredential) -> Self {
        Self {
            name: found.name.as_str(),
            version_created_at: timestamp(found.version_created_at),
            expiry_date: found.expires_at.map(timestamp),
            rotation_date: found.rotate_at.map(timestamp),
            expiring_link: None,
            imported: found.is_imported.then_some(true),
            stale: found.is_stale,
        }
    }

    fn of_effective(expiry: &'a EffectiveExpiry) -> Self {
        let link = &expiry.link;
        Self {
            name: expiry.name.as_str(),
            version_created_at: timestamp(expiry.version_created_at),
            expiry_date: Some(timestamp(link.expires_at)),
            rotation_date: None,
            expiring_link: Some(LinkBody {
                name: link.name.as_ref().map(CredentialName::as_str),
                version_id: link.version_id,
                depth: link.depth,
            }),
            imported: None,
            stale: None,
        }
    }
}

pub(super) async fn response(
    api: &Api,
    caller: Arc<Caller>,
    request: FindRequest,
) -> Result<Response, ApiError> {
    let credentials = &api.credentials;
    let names = request.names;
    let found = match request.restriction {
        Restriction::Expiry {
            within_days,
            is_effective: true,
        } => {
            let expiries = credentials
                .certificates
                .effective_expiries(&caller, &names, within_days)
                .await?;
            let bytes = list_bytes(expiries.len());
            return rendered_list(caller, expiries, bytes, |expiries| {
                rendered(&FindResponse {
                    credentials: LazyList::new(expiries, FoundBody::of_effective),
                })
            })
            .await;
        }
        Restriction::Expiry { within_days, .. } => {
            credentials
                .read
                .find(&caller, names, Some(within_days))
                .await
        }
        Restriction::GeneratedBy(digest) => {
            credentials
                .read
                .find_generated_by(&caller, &digest, &names)
                .await
        }
        Restriction::DerivedFrom(input) => {
            credentials
                .read
                .find_derived_from(&caller, &input, &names)
                .await
        }
        Restriction::None => credentials.read.find(&caller, names, None).await,
    }?;
    let bytes = list_bytes(found.len());
    rendered_list(caller, found, bytes, |found| {
        rendered(&FindResponse {
            credentials: LazyList::new(found, FoundBody::of),
        })
    })
    .await
}

const PATH: &str = "path";
const NAME_LIKE: &str = "name-like";
const EXPIRES_WITHIN_DAYS: &str = "expires-within-days";
const EFFECTIVE: &str = "effective";
const GENERATED_BY: &str = "generated_by";
const DERIVED_FROM: &str = "derived_from";

/// The path above all names.
const EVERYTHING: &str = "";
