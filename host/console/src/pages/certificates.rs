//! The CAs: below each, the CAs and the other credentials that it signed, as a tree and as a graph.

use axum::extract::Request;
use chrono::{DateTime, Utc};
use keywright_core::credential::{
    AUTHORITIES_MAX, AuthorityTree, FOREST_SIGNED_MAX, ForestPage, SignedCredential,
};
use maud::{Markup, html};
use serde_json::json;

use crate::{
    page::{PageResult, due, is_soon, last_characters, next_links, scrolled},
    paths::{
        CERTIFICATES, FROM, GENERATE, TYPE, link, link_to_certificate, link_to_credential,
        link_to_rotation,
    },
    request::Fields,
    state::Visit,
};

pub(crate) async fn show(visit: Visit, request: Request) -> PageResult {
    let query = Fields::of_query(request.uri());
    let from = query.text(FROM);
    visit.caller.trail().set_details(json!({FROM: from}));
    let certificates = &visit.ports().credentials.certificates;
    let forest = certificates.forest(&visit.caller, from).await?;
    let now = visit.ports().clock.now();
    let page = visit.page(CERTIFICATES, "Certificates");
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
            p { a.button href=(link(GENERATE, [(TYPE, "certificate")])) { "Generate a CA" } }
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

/// Renders trees as a graph: an SVG in which a line leads from each CA to the CAs that it signed. All of its contents are also
/// in the list of the same page.
pub(super) fn graph(trees: &[AuthorityTree], now: DateTime<Utc>) -> Markup {
    let mut placed = Placed::default();
    for tree in trees {
        placed.place(tree, 0);
    }
    let width = (placed.depth + 1) * COLUMN_WIDTH;
    let height = placed.rows * ROW_HEIGHT;
    html! {
        svg.graph width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } role="img" aria-labelledby="graph-title graph-text" {
            title id="graph-title" { "CAs and the CAs that they signed" }
            desc id="graph-text" { "A line leads from each CA to the CAs that it signed. The list above has the same content as text." }
            @for (from, to) in &placed.lines { path d=(curve(*from, *to)) {} }
            @for node in &placed.nodes { (boxed(node, now)) }
        }
    }
}

/// The upper left corner of a box.
type Corner = (usize, usize);

#[derive(Default)]
struct Placed<'a> {
    nodes: Vec<(Corner, &'a AuthorityTree)>,
    lines: Vec<(Corner, Corner)>,
    rows: usize,
    depth: usize,
}

impl<'a> Placed<'a> {
    /// Places a CA, and the CAs that it signed in the next column, the first of them in the same row. Returns its corner.
    fn place(&mut self, tree: &'a AuthorityTree, depth: usize) -> Corner {
        let corner = (depth * COLUMN_WIDTH, self.rows * ROW_HEIGHT);
        self.depth = self.depth.max(depth);
        self.nodes.push((corner, tree));
        for below in &tree.below {
            let child = self.place(below, depth + 1);
            self.lines.push((corner, child));
        }
        if tree.below.is_empty() {
            self.rows += 1;
        }
        corner
    }
}

fn boxed(((left, top), tree): &(Corner, &AuthorityTree), now: DateTime<Utc>) -> Markup {
    let expires_at = tree.effective_expires_at;
    let mark = match expires_at {
        Some(time) if time <= now => Some("late"),
        Some(time) if is_soon(time, now) => Some("soon"),
        _ => None,
    };
    let state = match (mark, tree.is_in_rotation) {
        (Some("late"), _) => "expired",
        (_, true) => "in rotation",
        (Some(_), _) => "soon",
        (None, false) => "",
    };
    html! {
        g {
            rect class=[mark] x=(left + 1) y=(top + 6) width=(BOX_WIDTH) height=(BOX_HEIGHT) rx="6" {}
            text x=(left + 12) y=(top + 25) { (last_characters(tree.name.as_str(), NAME_CHARACTERS_MAX)) }
            text.detail x=(left + 12) y=(top + 42) {
                @match expires_at {
                    Some(time) => { "until " (time.format("%Y-%m-%d")) }
                    None => "expiry unknown",
                }
                @if !state.is_empty() { ", " (state) }
            }
            text.detail x=(left + 12) y=(top + 58) { (signed_count(tree)) }
        }
    }
}

/// Returns how many credentials a CA signed, except the CAs below it.
fn signed_count(tree: &AuthorityTree) -> String {
    match (tree.signed.len(), tree.has_more_signed) {
        (_, true) => format!("signed more than {FOREST_SIGNED_MAX}"),
        (0, false) => String::new(),
        (1, false) => "signed 1 credential".to_owned(),
        (count, false) => format!("signed {count} credentials"),
    }
}

/// Returns a line between two boxes, from the right side of the first to the left side of the second.
fn curve((from_left, from_top): Corner, (to_left, to_top): Corner) -> String {
    let (x, y) = (from_left + BOX_WIDTH + 1, from_top + 6 + BOX_HEIGHT / 2);
    let (to_x, to_y) = (to_left + 1, to_top + 6 + BOX_HEIGHT / 2);
    let middle = usize::midpoint(x, to_x);
    format!("M{x} {y} C{middle} {y} {middle} {to_y} {to_x} {to_y}")
}

const BOX_WIDTH: usize = 230;
const BOX_HEIGHT: usize = 62;
const COLUMN_WIDTH: usize = 280;
const ROW_HEIGHT: usize = 76;

/// The maximum length of a name in a box, in characters.
const NAME_CHARACTERS_MAX: usize = 26;
