//! The credentials that expire within a number of days, by the expiry of their chain.

use std::{collections::HashMap, sync::Arc};

use axum::{extract::Request, http::StatusCode, response::Response};
use chrono::{DateTime, TimeDelta, Utc};
use keywright_core::credential::{CredentialName, EffectiveExpiry, FindNames, FoundCredential};
use maud::{Markup, html};
use serde_json::json;

use crate::{
    page::{Page, PageError, due, page_links},
    paths::{EXPIRING, OVERVIEW, link, link_to_credential},
    request::Fields,
    session::Visit,
    state::State,
};

/// A credential that expires, or should be rotated.
pub(super) struct Due {
    pub(super) name: CredentialName,
    pub(super) at: DateTime<Utc>,
    /// Whether a CA above it expires first.
    pub(super) is_by_authority: bool,
}

/// Returns the credentials that the user may read and that are due within this many days or earlier, in order of time. They are
/// summed up on a thread for blocking work, because there can be hundreds of thousands.
pub(super) async fn all_due<T: Send + 'static>(
    state: &State,
    visit: &Visit,
    days: i64,
    sum_up: impl FnOnce(Vec<Due>) -> T + Send + 'static,
) -> Result<T, PageError> {
    let details = json!({"path": "/", "expires-within-days": days});
    visit.caller.trail().set_details(details);
    let failed = |failure| state.failed(failure);
    let credentials = &state.ports.credentials;
    let names = FindNames::below("/");
    let certificates = &credentials.certificates;
    let effective = certificates.effective_expiries(&visit.caller, &names, days);
    let effective = effective.await.map_err(failed)?;
    let found = credentials.read.find(&visit.caller, names, Some(days));
    let found = found.await.map_err(failed)?;
    // The thread holds the memory that is reserved for them.
    let caller = Arc::clone(&visit.caller);
    let summing = tokio::task::spawn_blocking(move || {
        let summary = sum_up(in_order(found, effective));
        drop(caller);
        summary
    });
    summing.await.map_err(|_| {
        let message = "the server failed to sum up the credentials";
        PageError::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    })
}

/// Shows the credentials that are due within a number of days, or those that are past due.
pub(crate) async fn show(
    state: Arc<State>,
    visit: Visit,
    request: Request,
) -> Result<Response, PageError> {
    let query = Fields::of_query(request.uri());
    let days = query.text(WITHIN_DAYS).parse().unwrap_or(RANGES[1]);
    if !(0..=DAYS_MAX).contains(&days) {
        let message = format!("{WITHIN_DAYS} must be between 0 and {DAYS_MAX}");
        let refusal = PageError::new(StatusCode::BAD_REQUEST, &message);
        return Err(refusal.with_link(OVERVIEW, "Back to the overview"));
    }
    let number: usize = query.text(PAGE).parse().unwrap_or(1);
    let number = number.max(1);
    let now = state.ports.clock.now();
    let shown = move |due: Vec<Due>| {
        let is_shown = |due: &Due| is_within(due.at, now, days);
        let count = due.iter().filter(|due| is_shown(due)).count();
        let page = due.into_iter().filter(is_shown);
        let page = page.skip((number - 1).saturating_mul(ENTRIES_MAX));
        (count, page.take(ENTRIES_MAX).collect::<Vec<_>>())
    };
    let (count, entries) = all_due(&state, &visit, days, shown).await?;
    let title = if days == 0 {
        "Expired credentials".to_owned()
    } else {
        format!("Expiring within {days} days")
    };
    let page = Page::of(&visit, OVERVIEW, &title);
    Ok(page.render(&html! {
        (ranges(days))
        @if entries.is_empty() {
            p.empty { "No credential that you may read is on this page." }
        } @else {
            (table(&entries, now))
        }
        (page_links(number, count.div_ceil(ENTRIES_MAX), |page| {
            link(EXPIRING, [(WITHIN_DAYS, &*days.to_string()), (PAGE, &page.to_string())])
        }))
    }))
}

/// Returns whether a time counts as within this many days: it has not passed, unless there are no days.
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

fn table(entries: &[Due], now: DateTime<Utc>) -> Markup {
    html! {
        div.scrolled tabindex="0" role="region" aria-label="Credentials" {
            table {
                thead { tr { th scope="col" { "Name" } th scope="col" { "Due" } th scope="col" { "First to expire" } } }
                tbody {
                    @for entry in entries {
                        tr {
                            th scope="row" { a href=(link_to_credential(entry.name.as_str())) { (entry.name.as_str()) } }
                            td { (due(entry.at, now)) }
                            td { @if entry.is_by_authority { "a CA above it" } @else { "itself" } }
                        }
                    }
                }
            }
        }
    }
}

/// Merges the results of both searches. A certificate is due when the first certificate of its chain expires.
fn in_order(found: Vec<FoundCredential>, effective: Vec<EffectiveExpiry>) -> Vec<Due> {
    let own = found.into_iter().filter_map(|found| {
        Some(Due {
            at: found.rotate_at.or(found.expires_at)?,
            name: found.name,
            is_by_authority: false,
        })
    });
    let mut due: HashMap<String, Due> =
        own.map(|due| (due.name.as_str().to_owned(), due)).collect();
    for effective in effective {
        let found = Due {
            name: effective.name,
            at: effective.link.expires_at,
            is_by_authority: effective.link.depth > 0,
        };
        let known = due.get(found.name.as_str());
        if known.is_none_or(|known| found.at < known.at) {
            due.insert(found.name.as_str().to_owned(), found);
        }
    }
    let mut due: Vec<_> = due.into_values().collect();
    due.sort_unstable_by(|one, other| {
        let name = |due: &Due| due.name.folded();
        one.at
            .cmp(&other.at)
            .then_with(|| name(one).cmp(&name(other)))
    });
    due
}

/// The ranges of the overview, in days.
pub(super) const RANGES: [i64; 3] = [7, 30, 90];

/// The maximum number of days.
pub(super) const DAYS_MAX: i64 = 366;

/// The maximum number of entries on a page.
const ENTRIES_MAX: usize = 100;

const WITHIN_DAYS: &str = "within-days";
const PAGE: &str = "page";

#[cfg(test)]
mod tests {
    use keywright_core::credential::ChainLink;

    use super::*;

    #[test]
    fn the_first_expiry_of_a_chain_counts() {
        let time = |days| DateTime::UNIX_EPOCH + TimeDelta::days(days);
        let name = |name: &str| CredentialName::parse(name).unwrap();
        let found = |text: &str, days| FoundCredential {
            name: name(text),
            version_created_at: time(0),
            expires_at: Some(time(days)),
            rotate_at: None,
            is_imported: false,
            is_stale: None,
        };
        let effective = |text: &str, depth, days| EffectiveExpiry {
            name: name(text),
            version_created_at: time(0),
            link: ChainLink {
                depth,
                name: None,
                version_id: None,
                expires_at: time(days),
            },
        };
        let due = in_order(
            vec![found("/leaf", 9), found("/token", 3), found("/new", 4)],
            vec![
                effective("/leaf", 1, 5),
                effective("/below", 2, 1),
                effective("/new", 0, 8),
            ],
        );
        let due: Vec<_> = due
            .iter()
            .map(|due| (due.name.as_str(), due.at, due.is_by_authority))
            .collect();
        let expected = [
            ("/below", time(1), true),
            ("/token", time(3), false),
            ("/new", time(4), false),
            ("/leaf", time(5), true),
        ];
        assert_eq!(due, expected);
    }
}
