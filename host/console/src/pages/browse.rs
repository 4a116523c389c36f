//! The credentials: the tree of paths, and the search by a part of the name.

use std::sync::Arc;

use axum::extract::Request;
use chrono::{DateTime, Utc};
use keywright_core::credential::{BROWSED_ENTRIES_MAX, BrowsedEntry, ListedCredential, PathPrefix};
use maud::{Markup, html};
use serde_json::json;

use crate::{
    page::{Page, PageError, PageResult, due, moment},
    paths::{BROWSE, GENERATE, link, link_to_credential},
    request::Fields,
    session::Visit,
    state::State,
};

const BELOW: &str = "path";
const CONTAINING: &str = "name-like";
const FROM: &str = "from";

/// Shows the results of a search, or else a page of the entries below a path.
pub(crate) async fn show(state: Arc<State>, visit: Visit, request: Request) -> PageResult {
    let query = Fields::of_query(request.uri());
    let text = query.text(CONTAINING).trim();
    let content = if text.is_empty() {
        entries(&state, &visit, &query).await?
    } else {
        results(&state, &visit, text).await?
    };
    let page = Page::of(&visit, BROWSE, "Credentials");
    Ok(page.render(&html! { (search(text)) (content) }))
}

async fn entries(state: &State, visit: &Visit, query: &Fields) -> Result<Markup, PageError> {
    let path = query.text(BELOW);
    let details = json!({BELOW: if path.is_empty() { "/" } else { path }});
    visit.caller.trail().set_details(details);
    let (below, from) = (PathPrefix::new(path), query.text(FROM));
    let read = &state.ports.credentials.read;
    let browsed = read.browse(&visit.caller, &below, from).await;
    let page = browsed.map_err(|failure| state.failed(failure))?;
    let now = state.ports.clock.now();
    Ok(html! {
        (ancestors(&below))
        @let has_other_pages = page.next.is_some() || !from.is_empty();
        @if !page.entries.is_empty() {
            (table(&page.entries, below.as_str(), now))
        } @else if has_other_pages {
            p.empty { "This page has no entries. Open another page." }
        } @else {
            (nothing_below(&below))
        }
        @if has_other_pages {
            nav.pages aria-label="Pages" {
                @if !from.is_empty() { a.button href=(to_path(below.as_str())) { "First page" } }
                @if let Some(next) = &page.next {
                    a.button href=(link(BROWSE, [(BELOW, below.as_str()), (FROM, next)])) { "Next page" }
                }
            }
        }
    })
}

async fn results(state: &State, visit: &Visit, text: &str) -> Result<Markup, PageError> {
    visit.caller.trail().set_details(json!({CONTAINING: text}));
    let read = &state.ports.credentials.read;
    let found = read.first_found(&visit.caller, text).await;
    let found = found.map_err(|failure| state.failed(failure))?;
    let entries = found.credentials.into_iter().map(BrowsedEntry::Credential);
    let entries: Vec<_> = entries.collect();
    Ok(html! {
        @if entries.is_empty() {
            p.empty {
                "No credential that you may read has " strong { (text) } " in its name. "
                "Search for a shorter part of the name, or " a href=(BROWSE) { "browse all paths" } "."
            }
        } @else {
            (table(&entries, "", state.ports.clock.now()))
        }
        @if found.has_more {
            p { "Only the newest " (BROWSED_ENTRIES_MAX) " credentials are shown. Search for a longer part of the name." }
        }
    })
}

fn search(text: &str) -> Markup {
    html! {
        form.search role="search" action=(BROWSE) {
            label for="search" { "Part of the name" }
            input id="search" type="search" name=(CONTAINING) value=(text) maxlength="255" autocomplete="off" spellcheck="false";
            button { "Search" }
        }
    }
}

/// Renders the path with a link to each path above it.
fn ancestors(below: &PathPrefix) -> Markup {
    let path = below.as_str();
    let ends = path.match_indices('/').map(|(position, _)| position + 1);
    let ends: Vec<usize> = ends.collect();
    let part = |index: usize| {
        let start = index
            .checked_sub(1)
            .and_then(|before| ends.get(before))
            .copied()
            .unwrap_or(0);
        let end = ends.get(index).copied().unwrap_or(path.len());
        (
            path.get(..end).unwrap_or(path),
            path.get(start..end).unwrap_or_default(),
        )
    };
    html! {
        nav.ancestors aria-label="Path" {
            ol {
                @for (whole, label) in (0..ends.len()).map(part) {
                    li { a href=(to_path(whole)) aria-current=[(whole == path).then_some("location")] { (label) } }
                }
            }
        }
    }
}

fn nothing_below(below: &PathPrefix) -> Markup {
    html! {
        div.empty {
            p {
                "There is no credential below " code { (below.as_str()) } " that you may read. "
                "If you expected some, ask an administrator for permission to read this path."
            }
            p { a.button href=(GENERATE) { "Generate a credential" } }
        }
    }
}

fn table(entries: &[BrowsedEntry], below: &str, now: DateTime<Utc>) -> Markup {
    html! {
        div.scrolled tabindex="0" role="region" aria-label="Credentials" {
            table {
                thead { tr { th scope="col" { "Name" } th scope="col" { "Type" } th scope="col" { "Age" } th scope="col" { "Expires" } } }
                tbody {
                    @for entry in entries {
                        @match entry {
                            BrowsedEntry::Folder(path) => (folder(path, below)),
                            BrowsedEntry::Credential(credential) => (row(credential, below, now)),
                        }
                    }
                }
            }
        }
    }
}

fn folder(path: &str, below: &str) -> Markup {
    let label = path.get(below.len()..).unwrap_or(path);
    html! {
        tr {
            th scope="row" { a.folder href=(to_path(path)) { (label) } }
            td { "path" }
            td {}
            td {}
        }
    }
}

fn row(listed: &ListedCredential, below: &str, now: DateTime<Utc>) -> Markup {
    let name = listed.name.as_str();
    let label = name.get(below.len()..).unwrap_or(name);
    html! {
        tr {
            th scope="row" { a href=(link_to_credential(name)) { (label) } }
            td { (listed.credential_type.as_str()) }
            td { (moment(listed.version_created_at, now)) }
            td { @if let Some(due_at) = listed.due_at { (due(due_at, now)) } }
        }
    }
}

fn to_path(path: &str) -> String {
    if path == "/" {
        BROWSE.to_owned()
    } else {
        link(BROWSE, [(BELOW, path)])
    }
}
