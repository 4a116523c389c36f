//! The overview: the credentials that expire within a year, and the use of the encryption keys.

use std::sync::Arc;

use axum::{extract::Request, response::Response};
use chrono::{DateTime, Datelike, Months, TimeDelta, Utc};
use keywright_core::{
    credential::{FindNames, FoundCredential},
    encryption_key::KeyUsage,
};
use maud::{Markup, html};
use serde_json::json;

use super::{browse, credential};
use crate::{
    State, Visit,
    page::{Page, Refusal},
};

/// The path of the page.
pub(crate) const PATH: &str = "/console/overview";

/// Shows the overview.
pub(crate) async fn show(state: Arc<State>, visit: Visit, _: Request) -> Result<Response, Refusal> {
    let details = json!({"path": "/", "expires-within-days": DAYS_AHEAD});
    visit.caller.trail().set_details(details);
    let failed = |failure| state.failed(failure);
    let read = &state.ports.credentials.read;
    let found = read.find(&visit.caller, FindNames::below("/"), Some(DAYS_AHEAD));
    let mut due: Vec<_> = found
        .await
        .map_err(failed)?
        .into_iter()
        .filter_map(Due::of)
        .collect();
    due.sort_by_key(|due| due.at);
    let usage = state.ports.encryption_keys.usage().await.map_err(failed)?;
    let now = state.ports.clock.now();
    Ok(Page::of(&visit, PATH, "Overview").render(&html! {
        (counts(&due, now))
        (timeline(&due, now))
        (next(&due, now))
        (keys(usage))
    }))
}

/// A credential that expires, or should be rotated.
struct Due {
    found: FoundCredential,
    at: DateTime<Utc>,
}

impl Due {
    fn of(found: FoundCredential) -> Option<Self> {
        let at = found.rotate_at.or(found.expires_at)?;
        Some(Self { found, at })
    }
}

fn counts(due: &[Due], now: DateTime<Utc>) -> Markup {
    let within = |days| {
        due.iter()
            .filter(|due| due.at <= now + TimeDelta::days(days))
            .count()
    };
    html! {
        section aria-labelledby="expiry" {
            h2 id="expiry" { "Expiry" }
            p { "Certificates, and other credentials with an expiry, that you may read. A credential that should be rotated earlier counts by that time." }
            dl.counts {
                div { dt { "Expired" } dd { (within(0)) } }
                @for days in [7, 30, 90] {
                    div { dt { "Within " (days) " days" } dd { (within(days) - within(0)) } }
                }
            }
        }
    }
}

/// Renders a bar for each of the next twelve months, the current one first.
fn timeline(due: &[Due], now: DateTime<Utc>) -> Markup {
    let months = (0..MONTHS).filter_map(|ahead| {
        let month = now
            .date_naive()
            .with_day(1)?
            .checked_add_months(Months::new(ahead))?;
        let is_in = |due: &&Due| {
            due.at > now && (due.at.year(), due.at.month()) == (month.year(), month.month())
        };
        Some((month, due.iter().filter(is_in).count()))
    });
    let months: Vec<_> = months.collect();
    let most = months
        .iter()
        .map(|(_, count)| *count)
        .max()
        .unwrap_or_default()
        .max(1);
    html! {
        section aria-labelledby="timeline" {
            h2 id="timeline" { "The next twelve months" }
            div.scrolled tabindex="0" role="region" aria-labelledby="timeline" {
                svg.bars viewBox="0 0 720 190" role="img" aria-label=(described(&months)) {
                    @for (index, (month, count)) in months.iter().enumerate() {
                        @let height = BAR_HEIGHT_MAX * count / most;
                        @let left = 60 * index + 8;
                        rect x=(left) y=(BAR_HEIGHT_MAX + 20 - height) width="44" height=(height.max(1)) rx="3" {}
                        text x=(left + 22) y=(BAR_HEIGHT_MAX + 14 - height) { (count) }
                        text x=(left + 22) y=(BAR_HEIGHT_MAX + 40) { (month.format("%b")) }
                    }
                }
            }
        }
    }
}

fn described(months: &[(chrono::NaiveDate, usize)]) -> String {
    let months = months
        .iter()
        .map(|(month, count)| format!("{}: {count}", month.format("%B %Y")));
    format!(
        "Expiring credentials by month. {}.",
        months.collect::<Vec<_>>().join(", ")
    )
}

fn next(due: &[Due], now: DateTime<Utc>) -> Markup {
    html! {
        section aria-labelledby="next" {
            h2 id="next" { "First to expire" }
            @if due.is_empty() {
                p.empty { "No credential that you may read expires within a year. Certificates appear here once they are generated or set." }
            } @else {
                ul.plain {
                    @for due in due.iter().take(SHOWN_MAX) {
                        @let name = due.found.name.as_str();
                        li { a href=(credential::link_to(name)) { (name) } " " (browse::due(due.at, now)) }
                    }
                }
                @if due.len() > SHOWN_MAX { p { (due.len() - SHOWN_MAX) " more expire within a year." } }
            }
        }
    }
}

fn keys(usage: KeyUsage) -> Markup {
    html! {
        section aria-labelledby="keys" {
            h2 id="keys" { "Encryption keys" }
            p { "All stored versions on this server, by the key that encrypts them." }
            dl.counts {
                div { dt { "Active key" } dd { (usage.active_key) } }
                div { dt { "Inactive keys" } dd { (usage.inactive_keys) } }
                div { dt { "Unknown keys" } dd { (usage.unknown_keys) } }
            }
            @if usage.inactive_keys > 0 { p { "A rotation of the encryption key is not complete." } }
            @if usage.unknown_keys > 0 { p { "Versions of unknown keys can't be read. Ask an administrator to configure their keys." } }
        }
    }
}

/// The number of days after which an expiry is not shown.
const DAYS_AHEAD: i64 = 366;

const MONTHS: u32 = 12;

const BAR_HEIGHT_MAX: usize = 140;

/// The number of credentials that the list shows.
const SHOWN_MAX: usize = 20;
