//! The credentials that expire within a number of days. For certificates, the first expiry in the chain counts.

use axum::{extract::Request, http::StatusCode};
use chrono::{DateTime, TimeDelta, Utc};
use keywright_core::credential::DueCredential;
use maud::{Markup, html};
use serde_json::json;

use crate::{
    page::{Failure, PageError, PageResult, due, page_links, page_number, table},
    paths::{EXPIRING, OVERVIEW, PAGE, link, link_to_credential},
    request::{Fields, days_of},
    state::Visit,
};

/// Returns the times of all credentials that the user may read and that are due within this many days or earlier, and the first
/// credentials with a selected time, both in order.
pub(super) async fn all_due(
    visit: &Visit,
    days: i64,
    selects: impl Fn(DateTime<Utc>) -> bool + Send + Sync,
) -> Result<(Vec<DateTime<Utc>>, Vec<DueCredential>), Failure> {
    let details = json!({"path": "/", "expires-within-days": days});
    visit.caller.trail().set_details(details);
    let credentials = &visit.ports().credentials;
    let due = credentials.due(&visit.caller, days, selects).await?;
    // There can be hundreds of thousands of times.
    let sorting = tokio::task::spawn_blocking(|| due.in_order());
    sorting.await.map_err(|_| {
        let message = "the server could not sort the credentials";
        PageError::new(StatusCode::INTERNAL_SERVER_ERROR, message).into()
    })
}

/// Shows the credentials that expire within a number of days, or the expired credentials.
pub(crate) async fn show(visit: Visit, request: Request) -> PageResult {
    let query = Fields::of_query(request.uri());
    let days = match query.text(WITHIN_DAYS) {
        "" => Ok(RANGES[1]),
        text => days_of(WITHIN_DAYS, text, DAYS_MAX),
    };
    let days = days.map_err(|refusal| refusal.with_link(OVERVIEW, "Back to the overview"))?;
    let now = visit.ports().clock.now();
    let selects = |at| is_within(at, now, days);
    let (times, first) = all_due(&visit, days, selects).await?;
    let more = times.iter().filter(|at| selects(**at)).count() - first.len();
    let pages = first.chunks(ENTRIES_MAX);
    let count = pages.len();
    let number = page_number(query.text(PAGE), count);
    let entries = pages.into_iter().nth(number - 1).unwrap_or_default();
    let title = if days == 0 {
        "Expired credentials".to_owned()
    } else {
        format!("Expiring within {days} days")
    };
    let page = visit.page(OVERVIEW, &title);
    Ok(page.render(&html! {
        (ranges(days))
        @if entries.is_empty() {
            p.empty { "No credential that you may read is in this list." }
        } @else {
            (table_of(entries, now))
        }
        (page_links(number, count, |page| {
            link(EXPIRING, [(WITHIN_DAYS, &*days.to_string()), (PAGE, &page.to_string())])
        }))
        @if more > 0 { p { "Not shown: " (more) " more." } }
    }))
}

/// Returns whether a time is in the list for this number of days. The list for 0 days contains the times that have passed.
pub(super) fn is_within(at: DateTime<Utc>, now: DateTime<Utc>, days: i64) -> bool {
    (days == 0) == (at <= now) && at <= now + TimeDelta::days(days)
}

/// Returns the address of the list for a number of days.
pub(super) fn link_to_due(days: i64) -> String {
    link(EXPIRING, [(WITHIN_DAYS, &*days.to_string())])
}

fn ranges(days: i64) -> Markup {
    html! {
        nav.pages aria-label="Ranges" {
            @for range in [0].into_iter().chain(RANGES) {
                a.button href=(link_to_due(range)) aria-current=[(range == days).then_some("page")] {
                    @if range == 0 { "Expired" } @else { "Within " (range) " days" }
                }
            }
        }
    }
}

fn table_of(entries: &[DueCredential], now: DateTime<Utc>) -> Markup {
    let rows = html! {
        @for entry in entries {
            tr {
                th scope="row" { a href=(link_to_credential(entry.name.as_str())) { (entry.name.as_str()) } }
                td { (due(entry.at, now)) }
                td { @if entry.is_by_authority { "a CA above it" } @else { "the credential itself" } }
            }
        }
    };
    table("Credentials", &["Name", "Expires", "Expires first"], &rows)
}

/// The ranges of the overview, in days.
pub(super) const RANGES: [i64; 3] = [7, 30, 90];

/// The maximum number of days.
pub(super) const DAYS_MAX: i64 = 366;

/// The maximum number of entries on a page.
const ENTRIES_MAX: usize = 100;

const WITHIN_DAYS: &str = "within-days";
