//! The public parts of a certificate as PEM files. They contain only certificates: any other text or key in a field of the
//! value is omitted.

use axum::{
    extract::Request,
    http::header::{CONTENT_DISPOSITION, CONTENT_TYPE},
    response::IntoResponse,
};
use keywright_core::{
    UseCaseError,
    credential::{CredentialVersion, LookupName},
    ports::VersionSelection,
};
use serde_json::json;
use strum::{Display, EnumString, IntoStaticStr};
use uuid::Uuid;

use crate::{
    page::PageResult,
    paths::{DOWNLOAD, NAME, VERSION, link},
    request::Fields,
    state::Visit,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Part {
    Certificate,
    /// The CA certificates of its value: the issuing CA first.
    #[strum(serialize = "ca")]
    Authority,
    /// The certificate and the CA certificates above it.
    Chain,
    /// The certificates of the active and the transitional version, which clients of a CA must trust.
    Trusted,
}

/// Returns the address of a file of one version, or of the current versions.
pub(super) fn link_to(name: &str, version: Option<Uuid>, part: Part) -> String {
    let version = version.map(|id| id.to_string());
    let version = version.as_deref().map(|id| (VERSION, id));
    let query = [(NAME, name), (PART, part.into())];
    link(DOWNLOAD, query.into_iter().chain(version))
}

pub(crate) async fn send(visit: Visit, request: Request) -> PageResult {
    let query = Fields::of_query(request.uri());
    let part: Part = query
        .text(PART)
        .parse()
        .map_err(|_| UseCaseError::NotFound)?;
    visit
        .caller
        .trail()
        .set_details(json!({PART: part.to_string()}));
    let name = LookupName::new(query.text(NAME));
    let versions = versions(&visit, &name, query.text(VERSION)).await?;
    let credentials = &visit.ports().credentials;
    let mut certificates = Vec::new();
    let mut name = String::new();
    for version in versions {
        name = file_name(version.name.as_str(), part);
        let public = credentials.certificates.public_parts(&version).await?;
        let is_first = certificates.is_empty();
        let facts = version.attributes.certificate.as_ref();
        let is_authority = facts.is_some_and(|facts| facts.is_certificate_authority);
        match part {
            Part::Certificate if is_first => certificates = public.certificates,
            Part::Authority if is_first => certificates = public.authorities,
            Part::Chain if is_first => {
                let read = &credentials.read;
                let chain = credentials.certificates.chain(&visit.caller, read, version);
                certificates = chain.await?;
            }
            Part::Trusted if is_authority => certificates.extend(public.certificates),
            _ => {}
        }
    }
    if certificates.is_empty() {
        return Err(UseCaseError::NotFound.into());
    }
    let fields = [
        (CONTENT_TYPE, "application/x-pem-file".to_owned()),
        (
            CONTENT_DISPOSITION,
            format!("attachment; filename=\"{name}\""),
        ),
    ];
    Ok((fields, certificates.concat()).into_response())
}

/// Returns the version with an id, or the current versions of the certificate if the id is empty.
pub(super) async fn versions(
    visit: &Visit,
    name: &LookupName,
    id: &str,
) -> Result<Vec<CredentialVersion>, UseCaseError> {
    let read = &visit.ports().credentials.read;
    if id.is_empty() {
        let current = VersionSelection::Current;
        return read.by_name(&visit.caller, name, current).await;
    }
    let id: Result<Uuid, _> = id.parse();
    let id = id.map_err(|_| UseCaseError::NotFound)?;
    let version = read.by_id(&visit.caller, id).await?;
    if name.is(&version.name) {
        Ok(vec![version])
    } else {
        Err(UseCaseError::NotFound)
    }
}

/// Returns a file name that no system interprets: the last part of the credential's name, in which a hyphen replaces each
/// character that is not a letter or a digit.
fn file_name(name: &str, part: Part) -> String {
    let last = name.rsplit('/').next().unwrap_or_default();
    let safe = last.chars().map(|character| {
        if character.is_ascii_alphanumeric() {
            character
        } else {
            '-'
        }
    });
    let safe: String = safe.take(FILE_NAME_CHARACTERS_MAX).collect();
    format!("keywright-{safe}-{part}.pem")
}

/// The maximum number of characters of the credential's name in a file name.
const FILE_NAME_CHARACTERS_MAX: usize = 64;

const PART: &str = "part";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_has_only_safe_characters() {
        for (name, expected) in [
            ("/team/root-ca", "keywright-root-ca-ca.pem"),
            ("/a/..", "keywright----ca.pem"),
            ("/a/con.txt", "keywright-con-txt-ca.pem"),
            ("/(x):[y]", "keywright--x---y--ca.pem"),
        ] {
            assert_eq!(file_name(name, Part::Authority), expected);
        }
        let longest = file_name(&"a".repeat(255), Part::Chain);
        assert_eq!(longest, format!("keywright-{}-chain.pem", "a".repeat(64)));
    }
}
