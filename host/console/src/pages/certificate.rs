//! A certificate: the contents of its versions, its public parts as files, and the credentials that it signed.

use axum::extract::Request;
use chrono::{DateTime, Utc};
use keywright_core::{
    certificate::CertificateDetails,
    credential::{
        CertificateSummary, CredentialName, CredentialVersion, HISTORY_VERSIONS_MAX,
        ListedCredential, ListedVersion, LookupName, PublicParts, SignedCredential,
    },
};
use maud::{Markup, html};

use super::{
    certificates::subject,
    download::{self, Part},
};
use crate::{
    page::{Failure, PageResult, due, moment, page_links, page_number, rfc3339, table},
    paths::{
        CERTIFICATE, CERTIFICATES, NAME, PAGE, VERSION, link, link_to_certificate,
        link_to_credential, link_to_rotation,
    },
    request::Fields,
    state::Visit,
};

/// Shows the current versions of a certificate, or one version.
pub(crate) async fn show(visit: Visit, request: Request) -> PageResult {
    let query = Fields::of_query(request.uri());
    let name = LookupName::new(query.text(NAME));
    let credentials = &visit.ports().credentials;
    let certificates = &credentials.certificates;
    let (summary, signed, has_more) = certificates
        .with_first_signed(&visit.caller, &name, SIGNED_MAX)
        .await?;
    let versions = download::versions(&visit, &name, query.text(VERSION)).await?;
    let mut read = Vec::new();
    for version in versions {
        let parts = certificates.public_parts(&version).await?;
        read.push((version, parts));
    }
    let signed = Signed::of(&visit, (signed, has_more), query.text(PAGE)).await?;
    let shown = Shown {
        summary: &summary,
        now: visit.ports().clock.now(),
    };
    let page = visit.page(CERTIFICATES, summary.certificate.name.as_str());
    Ok(page.render(&html! {
        (shown.links())
        @for (version, parts) in &read { (shown.version(version, parts)) }
        (shown.versions())
        (signed.render(summary.certificate.name.as_str(), shown.now))
    }))
}

struct Shown<'a> {
    summary: &'a CertificateSummary,
    now: DateTime<Utc>,
}

impl Shown<'_> {
    fn links(&self) -> Markup {
        let name = self.summary.certificate.name.as_str();
        let signer = self.summary.signed_by.as_ref();
        let signer = signer.filter(|signer| **signer != self.summary.certificate.name);
        html! {
            @if let Some(signer) = signer {
                p { "Signed by " a href=(link_to_certificate(signer.as_str())) { (signer.as_str()) } "." }
            }
            div.actions {
                a.button href=(link_to_credential(name)) { "Show the credential" }
                @if is_authority(self.summary) {
                    a.button href=(link_to_rotation(name)) {
                        @if self.summary.certificate.transitional().is_some() { "Continue the rotation" } @else { "Rotate this CA" }
                    }
                    a.button href=(download::link_to(name, None, Part::Trusted)) { "Download the trust bundle" }
                }
            }
        }
    }

    fn version(&self, version: &CredentialVersion, parts: &PublicParts) -> Markup {
        let active = self.summary.certificate.active();
        let title = if version.attributes.is_transitional {
            "Transitional version"
        } else if active.map(|active| active.id) == Some(version.id) {
            "Active version"
        } else {
            "Older version"
        };
        let id = version.id.to_string();
        let to = |part| download::link_to(version.name.as_str(), Some(version.id), part);
        html! {
            section aria-labelledby=(id) {
                h2 id=(id) { (title) }
                @match &parts.details {
                    Some(details) => (self.details(details, parts.effective_expires_at)),
                    None => p.empty { "The certificate of this version is missing or malformed." },
                }
                div.actions {
                    @if !parts.certificates.is_empty() {
                        a.button href=(to(Part::Certificate)) { "Download the certificate" }
                        a.button href=(to(Part::Chain)) { "Download the chain" }
                    }
                    @if !parts.authorities.is_empty() { a.button href=(to(Part::Authority)) { "Download the CA certificate" } }
                }
            }
        }
    }

    fn details(&self, details: &CertificateDetails, effective: Option<DateTime<Utc>>) -> Markup {
        let by_authority = effective.filter(|effective| *effective < details.expires_at);
        html! {
            dl {
                dt { "Subject" } dd { (subject(&details.subject)) }
                dt { "Issuer" } dd { (subject(&details.issuer)) }
                dt { "Serial number" } dd { code { (details.serial_number) } }
                dt { "Valid from" } dd { (rfc3339(details.valid_from)) }
                dt { "Valid until" } dd { (rfc3339(details.expires_at)) " (" (due(details.expires_at, self.now)) ")" }
                @if let Some(effective) = by_authority {
                    dt { "Effective expiry" } dd { (rfc3339(effective)) " (" (due(effective, self.now)) "), because a CA above it expires then" }
                }
                dt { "Key" } dd { (details.key_algorithm) @if details.key_length_bits > 0 { ", " (details.key_length_bits) " bits" } }
                dt { "Signature algorithm" } dd { (details.signature_algorithm) }
                @if !details.alternative_names.is_empty() {
                    dt { "Alternative names" }
                    dd {
                        ul.plain { @for name in &details.alternative_names { li { (subject(name)) } } }
                        @if details.more_alternative_names > 0 { p { "Not shown: " (details.more_alternative_names) " more." } }
                    }
                }
                dt { "Key usages" } dd { @if details.usages.is_empty() { "not restricted" } @else { (details.usages.join(", ")) } }
                dt { "Basic constraints" }
                dd {
                    @match details.basic_constraints {
                        None => "none",
                        Some((false, _)) => "not a CA",
                        Some((true, None)) => "a CA without a path length constraint",
                        Some((true, Some(length))) => { "a CA with the path length constraint " (length) }
                    }
                }
                @if let Some(id) = &details.subject_key_id { dt { "Subject key id" } dd { code { (id) } } }
                @if let Some(id) = &details.authority_key_id { dt { "Authority key id" } dd { code { (id) } } }
                dt { "SHA-256 fingerprint" } dd { code { (details.fingerprint) } }
            }
        }
    }

    fn versions(&self) -> Markup {
        let certificate = &self.summary.certificate;
        let shown = certificate
            .versions
            .iter()
            .take(HISTORY_VERSIONS_MAX as usize);
        let is_cut = certificate.versions.len() > HISTORY_VERSIONS_MAX as usize;
        html! {
            section aria-labelledby="versions" {
                h2 id="versions" { "Versions" }
                ul.plain { @for version in shown { li { (self.listed(version)) } } }
                @if is_cut { p { "Older versions are not shown." } }
            }
        }
    }

    fn listed(&self, version: &ListedVersion) -> Markup {
        let certificate = &self.summary.certificate;
        let id = version.id.to_string();
        let active = certificate.active().map(|active| active.id);
        let path = link(
            CERTIFICATE,
            [(NAME, certificate.name.as_str()), (VERSION, &*id)],
        );
        html! {
            a href=(path) { (id) }
            @if active == Some(version.id) { " " span.mark.active { "active" } }
            @if version.is_transitional { " " span.mark.soon { "transitional" } }
            @if let Some(facts) = &version.facts { ", expiry: " (moment(facts.expires_at, self.now)) }
        }
    }
}

/// A page of the credentials that a certificate signed.
struct Signed {
    entries: Vec<(CredentialName, Option<ListedCredential>)>,
    number: usize,
    pages: usize,
    has_more: bool,
}

impl Signed {
    async fn of(
        visit: &Visit,
        (mut signed, has_more): (Vec<SignedCredential>, bool),
        page: &str,
    ) -> Result<Self, Failure> {
        signed.sort_by_cached_key(|signed| signed.name.folded());
        let pages = signed.len().div_ceil(ENTRIES_MAX);
        let number = page_number(page, pages);
        let names = signed.into_iter().map(|signed| signed.name);
        let names = names.skip((number - 1) * ENTRIES_MAX);
        let names: Vec<_> = names.take(ENTRIES_MAX).collect();
        let read = &visit.ports().credentials.read;
        let listed = read.all_listed(&visit.caller, &names).await?;
        Ok(Self {
            entries: names.into_iter().zip(listed).collect(),
            number,
            pages,
            has_more,
        })
    }

    fn render(&self, name: &str, now: DateTime<Utc>) -> Markup {
        let rows = html! { @for (name, listed) in &self.entries { (row(name.as_str(), listed.as_ref(), now)) } };
        html! {
            @if !self.entries.is_empty() {
                section aria-labelledby="signed" {
                    h2 id="signed" { "Signed credentials" }
                    (table("Table of the credentials", &["Name", "Type", "Expires"], &rows))
                    (page_links(self.number, self.pages, |page| {
                        link(CERTIFICATE, [(NAME, name), (PAGE, &page.to_string())])
                    }))
                    @if self.has_more { p { "Only the first " (SIGNED_MAX) " are shown." } }
                }
            }
        }
    }
}

fn row(name: &str, listed: Option<&ListedCredential>, now: DateTime<Utc>) -> Markup {
    html! {
        tr {
            @match listed {
                Some(listed) => {
                    th scope="row" { a href=(link_to_credential(name)) { (name) } }
                    td { (listed.credential_type.as_str()) }
                    td { @if let Some(due_at) = listed.due_at { (due(due_at, now)) } }
                }
                None => { th scope="row" { (name) } td colspan="2" { "You may not read this credential, or it has no active version." } }
            }
        }
    }
}

/// Returns whether the active version is a CA.
fn is_authority(summary: &CertificateSummary) -> bool {
    let active = summary.certificate.active();
    let facts = active.and_then(|active| active.facts.as_ref());
    facts.is_some_and(|facts| facts.is_certificate_authority)
}

/// The maximum number of signed credentials on a page.
const ENTRIES_MAX: usize = 100;

/// The maximum number of signed credentials on all pages.
const SIGNED_MAX: u32 = 1_000;
