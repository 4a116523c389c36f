//! The credentials: the tree of paths, and the search by a part of the name, by type, by age and by expiry.

use axum::extract::Request;
use chrono::{DateTime, TimeDelta, Utc};
use keywright_core::credential::{
    BROWSED_ENTRIES_MAX, BrowsedEntry, BrowsedPage, Filter, KnownType, ListedCredential, PathPrefix,
};
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::{
    page::{Failure, PageError, PageResult, due, moment, next_links, table},
    paths::{BROWSE, FROM, GENERATE, TYPE, link, link_to_credential},
    request::{Fields, days_of},
    state::Visit,
};

/// Shows a page of the entries below a path, or a page of the results of a search.
pub(crate) async fn show(visit: Visit, request: Request) -> PageResult {
    let query = Fields::of_query(request.uri());
    let search = Search::of(&query);
    visit.caller.trail().set_details(search.details());
    let from = query.text(FROM);
    let (text, below) = (search.text(CONTAINING), search.text(BELOW));
    let content = match (search.has_filter(), text, below) {
        (false, "", _) => search.tree(&visit, from).await?,
        // The database has an index for this search.
        (false, _, "" | "/") => search.first_found(&visit).await?,
        _ => search.filtered(&visit, from).await?,
    };
    let form = search.form(&visit.ports().credentials.types.all());
    let page = visit.page(BROWSE, "Credentials");
    Ok(page.render(&html! { (form) (content) }))
}

/// The fields of the query that are not empty, without the position of the page.
struct Search(Vec<(&'static str, String)>);

impl Search {
    fn of(query: &Fields) -> Self {
        let fields = [
            BELOW,
            CONTAINING,
            TYPE,
            OLDER_THAN_DAYS,
            EXPIRES_WITHIN_DAYS,
        ];
        let fields = fields.map(|name| (name, query.text(name).trim().to_owned()));
        let given = fields.into_iter().filter(|(_, text)| !text.is_empty());
        Self(given.collect())
    }

    fn text(&self, name: &str) -> &str {
        let field = self.0.iter().find(|(known, _)| *known == name);
        field.map(|(_, text)| text.as_str()).unwrap_or_default()
    }

    fn below(&self) -> PathPrefix {
        PathPrefix::new(self.text(BELOW))
    }

    fn has_filter(&self) -> bool {
        self.0
            .iter()
            .any(|(name, _)| ![BELOW, CONTAINING].contains(name))
    }

    fn details(&self) -> Value {
        let mut details: Map<_, _> = self
            .0
            .iter()
            .map(|(name, text)| ((*name).to_owned(), text.as_str().into()))
            .collect();
        if self.0.is_empty() {
            details.insert(BELOW.to_owned(), "/".into());
        }
        details.into()
    }

    /// Returns the number of days in a field, as a duration.
    fn days(&self, name: &str) -> Result<Option<TimeDelta>, PageError> {
        match self.text(name) {
            "" => Ok(None),
            text => days_of(name, text, DAYS_MAX).map(|days| Some(TimeDelta::days(days))),
        }
    }

    /// Renders the entries directly below a path.
    async fn tree(&self, visit: &Visit, from: &str) -> Result<Markup, Failure> {
        let below = self.below();
        let read = &visit.ports().credentials.read;
        let page = read.browse(&visit.caller, &below, from).await?;
        let nothing = || nothing_below(&below);
        Ok(self.page(
            &page,
            below.as_str(),
            from,
            visit.ports().clock.now(),
            nothing,
        ))
    }

    /// Renders the credentials below a path that meet conditions.
    async fn filtered(&self, visit: &Visit, from: &str) -> Result<Markup, Failure> {
        let now = visit.ports().clock.now();
        let filter = Filter {
            name_like: self.text(CONTAINING).to_owned(),
            credential_type: self.text(TYPE).to_owned(),
            created_before: self.days(OLDER_THAN_DAYS)?.map(|age| now - age),
            due_until: self.days(EXPIRES_WITHIN_DAYS)?.map(|time| now + time),
        };
        let read = &visit.ports().credentials.read;
        let page = read
            .filter(&visit.caller, &self.below(), from, &filter)
            .await?;
        let nothing = || {
            html! {
                p.empty {
                    "There is no matching credential below " code { (self.below().as_str()) } " that you may read. "
                    "Remove a filter, or " a href=(BROWSE) { "browse all paths" } "."
                }
            }
        };
        Ok(self.page(&page, "", from, now, nothing))
    }

    /// Renders the first credentials whose names contain a text.
    async fn first_found(&self, visit: &Visit) -> Result<Markup, Failure> {
        let text = self.text(CONTAINING);
        let read = &visit.ports().credentials.read;
        let found = read.first_found(&visit.caller, text).await?;
        let entries = found.credentials.into_iter().map(BrowsedEntry::Credential);
        let entries: Vec<_> = entries.collect();
        Ok(html! {
            @if entries.is_empty() {
                p.empty {
                    "No credential that you may read has " strong { (text) } " in its name. "
                    "Search for a shorter part of the name, or " a href=(BROWSE) { "browse all paths" } "."
                }
            } @else {
                (table_of(&entries, "", visit.ports().clock.now()))
            }
            @if found.has_more {
                p { "Only the newest " (BROWSED_ENTRIES_MAX) " credentials are shown. Search for a longer part of the name." }
            }
        })
    }

    /// Renders a page of entries, with their names below a path, and the links to other pages.
    fn page(
        &self,
        page: &BrowsedPage,
        below: &str,
        from: &str,
        now: DateTime<Utc>,
        nothing: impl Fn() -> Markup,
    ) -> Markup {
        let has_other_pages = page.next.is_some() || !from.is_empty();
        let position = |from: &str| {
            let fields = self.0.iter().map(|(name, text)| (*name, text.as_str()));
            let from = (!from.is_empty()).then_some((FROM, from));
            link(BROWSE, fields.chain(from))
        };
        html! {
            (ancestors(&self.below()))
            @if !page.entries.is_empty() {
                (table_of(&page.entries, below, now))
            } @else if has_other_pages {
                p.empty { "This page has no entries. Open another page." }
            } @else {
                (nothing())
            }
            (next_links(
                (!from.is_empty()).then(|| position("")),
                page.next.as_deref().map(position),
            ))
        }
    }

    fn form(&self, types: &[KnownType]) -> Markup {
        let below = self.text(BELOW);
        let types = types
            .iter()
            .map(|known| (known.name.as_str(), known.name.clone()));
        let days = |label: fn(&str) -> String| DAYS.map(|days| (days, label(days)));
        html! {
            form.search role="search" action=(BROWSE) {
                @if !below.is_empty() { input type="hidden" name=(BELOW) value=(below); }
                label for="search" { "Part of the name" }
                input id="search" type="search" name=(CONTAINING) value=(self.text(CONTAINING)) maxlength="255" autocomplete="off" spellcheck="false";
                button { "Search" }
                details.filters open[self.has_filter()] {
                    summary { "Filters" }
                    div.choices {
                        (self.choice(TYPE, "Type", "Any", &types.collect::<Vec<_>>()))
                        (self.choice(OLDER_THAN_DAYS, "Age", "Any", &days(|days| format!("Older than {days} days"))))
                        (self.choice(EXPIRES_WITHIN_DAYS, "Expiry", "With or without expiry", &days(within)))
                    }
                }
            }
        }
    }

    /// Renders a selection of labelled texts. If the query has another text, adds that.
    fn choice(&self, name: &str, label: &str, none: &str, choices: &[(&str, String)]) -> Markup {
        let given = self.text(name);
        let is_other = !given.is_empty() && choices.iter().all(|(text, _)| *text != given);
        html! {
            div.field {
                label for=(name) { (label) }
                select id=(name) name=(name) {
                    option value="" { (none) }
                    @for (text, label) in choices { option value=(text) selected[*text == given] { (label) } }
                    @if is_other { option value=(given) selected { (given) } }
                }
            }
        }
    }
}

fn within(days: &str) -> String {
    format!("Expired, or within {days} days")
}

/// Renders the path with a link to each path above it.
fn ancestors(below: &PathPrefix) -> Markup {
    let path = below.as_str();
    let mut end = 0;
    let parts = path.split_inclusive('/').map(|label| {
        end += label.len();
        (path.get(..end).unwrap_or(path), label)
    });
    html! {
        nav.ancestors aria-label="Path" {
            ol {
                @for (whole, label) in parts {
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

fn table_of(entries: &[BrowsedEntry], below: &str, now: DateTime<Utc>) -> Markup {
    let rows = html! {
        @for entry in entries {
            @match entry {
                BrowsedEntry::Folder(path) => (folder(path, below)),
                BrowsedEntry::Credential(credential) => (row(credential, below, now)),
            }
        }
    };
    table("Credentials", &["Name", "Type", "Age", "Expires"], &rows)
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

const BELOW: &str = "path";
const CONTAINING: &str = "name-like";
/// The minimum age.
const OLDER_THAN_DAYS: &str = "older-than-days";
/// The maximum time until the expiry.
const EXPIRES_WITHIN_DAYS: &str = "expires-within-days";

/// The numbers of days to choose from.
const DAYS: [&str; 4] = ["7", "30", "90", "365"];

const DAYS_MAX: i64 = 36_500;
