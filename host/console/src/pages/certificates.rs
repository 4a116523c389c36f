//! The CAs: below each, the CAs and the other credentials that it signed, as a tree and as a graph.

use std::sync::Arc;

use axum::extract::Request;
use chrono::{DateTime, Utc};
use keywright_core::credential::{AUTHORITIES_MAX, AuthorityTree, ForestPage, SignedCredential};
use maud::{Markup, html};
use serde_json::json;

use super::graph::graph;
use crate::{
    page::{Page, PageResult, due, next_links, scrolled},
    paths::{
        CERTIFICATES, GENERATE, link, link_to_certificate, link_to_credential, link_to_rotation,
    },
    request::Fields,
    session::Visit,
    state::State,
};

const FROM: &str = "from";

/// Shows a page of the CAs.
pub(crate) async fn show(state: Arc<State>, visit: Visit, request: Request) -> PageResult {
    let query = Fields::of_query(request.uri());
    let from = query.text(FROM);
    visit.caller.trail().set_details(json!({FROM: from}));
    let certificates = &state.ports.credentials.certificates;
    let forest = certificates.forest(&visit.caller, from).await;
    let forest = forest.map_err(|failure| state.failed(failure))?;
    let now = state.ports.clock.now();
    let page = Page::of(&visit, CERTIFICATES, "Certificates");
    Ok(page.render(&html! {
        @if forest.has_more { p { "Only the newest " (AUTHORITIES_MAX) " CAs are shown." } }
        @if forest.trees.is_empty() {
            (nothing())
        } @else {
            section aria-labelledby="tree" {
                h2 id="tree" { "CAs and what they signed" }
                ul.forest { @for tree in &forest.trees { (node(tree, now)) } }
            }
            section aria-labelledby="graph" {
                h2 id="graph" { "The same CAs as a graph" }
                (scrolled("Graph of the CAs", &graph(&forest.trees, now)))
            }
        }
        (pages(&forest, from))
    }))
}

/// Renders the subject of a certificate, cut off after some characters. Its text direction does not affect the text around it.
pub(super) fn subject(text: &str) -> Markup {
    let end = text.char_indices().nth(SUBJECT_CHARACTERS_MAX);
    let shown = end.and_then(|(end, _)| text.get(..end));
    html! {
        @if text.is_empty() { "no subject" }
        @else { bdi { (shown.unwrap_or(text)) @if shown.is_some() { "…" } } }
    }
}

fn nothing() -> Markup {
    html! {
        div.empty {
            p { "There is no CA here that you may read. If you expected some, ask an administrator for permission to read them." }
            p { a.button href=(link(GENERATE, [("type", "certificate")])) { "Generate a CA" } }
        }
    }
}

fn node(tree: &AuthorityTree, now: DateTime<Utc>) -> Markup {
    let name = tree.name.as_str();
    let has_signed = !tree.below.is_empty() || !tree.signed.is_empty();
    html! {
        li {
            p.node {
                a href=(link_to_certificate(name)) { (name) }
                @if tree.is_in_rotation { " " a.mark.soon href=(link_to_rotation(name)) { "in rotation" } }
            }
            p.detail {
                @match &tree.details {
                    Some(details) => (subject(&details.subject)),
                    None => "its certificate can't be read",
                }
                @if let Some(expires_at) = tree.effective_expires_at { ", expiry: " (due(expires_at, now)) }
            }
            @if has_signed || tree.more_below > 0 {
                details open {
                    summary { "Signed" }
                    ul {
                        @for below in &tree.below { (node(below, now)) }
                        @for signed in &tree.signed { li { (signed_credential(signed)) } }
                        @if tree.more_below > 0 || tree.has_more_signed {
                            li { a href=(link_to_certificate(name)) { "Show everything that " (name) " signed" } }
                        }
                    }
                }
            }
        }
    }
}

/// Renders the name of a signed credential, as a link if the user may read it.
fn signed_credential(signed: &SignedCredential) -> Markup {
    let name = signed.name.as_str();
    html! {
        @if signed.is_readable { a href=(link_to_credential(name)) { (name) } }
        @else { (name) " " span.detail { "(you may not read it)" } }
    }
}

fn pages(forest: &ForestPage, from: &str) -> Markup {
    let next = forest.next.as_ref();
    next_links(
        (!from.is_empty()).then(|| CERTIFICATES.to_owned()),
        next.map(|next| link(CERTIFICATES, [(FROM, next.as_str())])),
    )
}

/// The maximum length of a shown subject, in characters.
const SUBJECT_CHARACTERS_MAX: usize = 200;
