//! The overview: the credentials that expire within a year, the numbers of credentials by type, the rotations in progress, the
//! disabled plugins, and the use of the encryption keys.

use axum::extract::Request;
use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveTime, TimeDelta, Utc};
use keywright_core::{
    credential::{CredentialCounts, DueCredential, RotatingAuthorities},
    encryption_key::KeyUsage,
    ports::PluginState,
};
use maud::{Markup, html};

use super::{
    expiring::{DAYS_MAX, RANGES, all_due, link_to_due},
    keys_and_plugins::{circuit, rotation},
};
use crate::{
    page::{PageResult, due as due_at, scrolled},
    paths::{GENERATE, KEYS_AND_PLUGINS, OVERVIEW, link_to_credential, link_to_rotation},
    state::Visit,
};

pub(crate) async fn show(visit: Visit, _: Request) -> PageResult {
    let read = &visit.ports().credentials.read;
    let counts = read.count_by_type(&visit.caller).await?;
    let rotating = read.rotating_authorities(&visit.caller).await?;
    let usage = visit.ports().encryption_keys.usage().await?;
    let plugins = visit.ports().plugins.states(visit.caller.actor());
    let now = visit.ports().clock.now();
    let (times, first) = all_due(&visit, DAYS_MAX, |_| true).await?;
    let summary = Summary::of(&times, first, now);
    Ok(visit.page(OVERVIEW, "Overview").render(&html! {
        (summary.counts())
        (summary.timeline())
        (summary.first_to_expire(now))
        (types(&counts))
        (rotations(&rotating, &usage))
        (disabled_plugins(&plugins))
        (keys(usage))
    }))
}

/// The credentials that expire within a year.
struct Summary {
    expired: usize,
    /// For each range of days, the number of credentials that expire in it. Expired credentials are omitted.
    within: [(i64, usize); 3],
    /// The numbers of credentials by month, starting with the current month.
    months: Vec<(NaiveDate, usize)>,
    first: Vec<DueCredential>,
    total: usize,
}

impl Summary {
    fn of(times: &[DateTime<Utc>], mut first: Vec<DueCredential>, now: DateTime<Utc>) -> Self {
        let count_until = |time| times.partition_point(|at| *at <= time);
        let expired = count_until(now);
        let within = RANGES.map(|days| {
            let count = count_until(now + TimeDelta::days(days));
            (days, count - expired)
        });
        let mut months = Vec::new();
        let mut counted = expired;
        for ahead in 0..MONTHS {
            let day = now.date_naive().with_day(1);
            let month = day.and_then(|day| day.checked_add_months(Months::new(ahead)));
            let next = day.and_then(|day| day.checked_add_months(Months::new(ahead + 1)));
            let Some((month, next)) = month.zip(next) else {
                continue;
            };
            let start = next.and_time(NaiveTime::MIN).and_utc();
            let until = times.partition_point(|at| *at < start).max(counted);
            months.push((month, until - counted));
            counted = until;
        }
        first.truncate(SHOWN_MAX);
        Self {
            expired,
            within,
            months,
            first,
            total: times.len(),
        }
    }

    fn counts(&self) -> Markup {
        html! {
            section aria-labelledby="expiry" {
                h2 id="expiry" { "Expiry" }
                p { "The certificates and other expiring credentials that you may read. A certificate counts as expired as soon as a CA above it has expired. If a plugin sets a time for rotation, that time counts instead of the expiry." }
                dl.counts {
                    div { dt { a href=(link_to_due(0)) { "Expired" } } dd { (self.expired) } }
                    @for (days, count) in self.within {
                        div { dt { a href=(link_to_due(days)) { "Within " (days) " days" } } dd { (count) } }
                    }
                }
            }
        }
    }

    /// Renders a bar for each of the next twelve months.
    fn timeline(&self) -> Markup {
        let counts = self.months.iter().map(|(_, count)| *count);
        let most = counts.max().unwrap_or_default().max(1);
        html! {
            section aria-labelledby="timeline" {
                h2 id="timeline" { "The next twelve months" }
                (scrolled("Expiring credentials by month", &html! {
                    svg.bars viewBox="0 0 720 190" role="img" aria-label=(described(&self.months)) {
                        @for (index, (month, count)) in self.months.iter().enumerate() {
                            @let height = BAR_HEIGHT_MAX * count / most;
                            @let left = 60 * index + 8;
                            rect x=(left) y=(BAR_HEIGHT_MAX + 20 - height) width="44" height=(height.max(1)) rx="3" {}
                            text x=(left + 22) y=(BAR_HEIGHT_MAX + 14 - height) { (count) }
                            text x=(left + 22) y=(BAR_HEIGHT_MAX + 40) { (month.format("%b")) }
                        }
                    }
                }))
            }
        }
    }

    fn first_to_expire(&self, now: DateTime<Utc>) -> Markup {
        html! {
            section aria-labelledby="first" {
                h2 id="first" { "First to expire" }
                @if self.first.is_empty() {
                    p.empty { "No credential that you may read expires within a year. Certificates appear here once they are generated or set." }
                } @else {
                    ul.plain {
                        @for due in &self.first {
                            @let name = due.name.as_str();
                            li { a href=(link_to_credential(name)) { (name) } " " (due_at(due.at, now)) }
                        }
                    }
                    @if self.total > self.first.len() { p { "Not shown: " (self.total - self.first.len()) " more." } }
                }
            }
        }
    }
}

fn described(months: &[(NaiveDate, usize)]) -> String {
    let months = months
        .iter()
        .map(|(month, count)| format!("{}: {count}", month.format("%B %Y")));
    format!(
        "Expiring credentials by month. {}.",
        months.collect::<Vec<_>>().join(", ")
    )
}

fn keys(usage: KeyUsage) -> Markup {
    html! {
        section aria-labelledby="keys" {
            h2 id="keys" { "Encryption keys" }
            p { "The number of stored versions that each kind of key encrypts." }
            dl.counts {
                div { dt { "Active key" } dd { (usage.active_key) } }
                div { dt { "Inactive keys" } dd { (usage.inactive_keys) } }
                div { dt { "Keys not configured" } dd { (usage.unknown_keys) } }
            }
            p { a href=(KEYS_AND_PLUGINS) { "Show each key" } }
        }
    }
}

const MONTHS: u32 = 12;

const BAR_HEIGHT_MAX: usize = 140;

/// The maximum number of listed credentials.
const SHOWN_MAX: usize = 20;

fn types(counts: &CredentialCounts) -> Markup {
    html! {
        section aria-labelledby="types" {
            h2 id="types" { "Credentials by type" }
            @if counts.by_type.is_empty() {
                p.empty {
                    "There is no credential that you may read. Ask an administrator for permission to read a path, or "
                    a href=(GENERATE) { "generate a credential" } "."
                }
            } @else {
                dl.counts {
                    @for (credential_type, count) in &counts.by_type {
                        div { dt { (credential_type.as_str()) } dd { (count) } }
                    }
                }
            }
            @if !counts.is_complete { p { "You may read more than the " (counts.total()) " credentials that were counted." } }
        }
    }
}

/// Renders the rotations of CAs and of the encryption key that are not complete.
fn rotations(authorities: &RotatingAuthorities, usage: &KeyUsage) -> Markup {
    let key_rotation = rotation(usage);
    html! {
        section aria-labelledby="rotations" {
            h2 id="rotations" { "Rotations in progress" }
            @if authorities.names.is_empty() && key_rotation.is_none() {
                p.empty { "No CA that you may read has a transitional version, and all versions are encrypted with the active key. To rotate a CA, open its certificate and select " strong { "Rotate this CA" } "." }
            }
            @if !authorities.names.is_empty() {
                p { "CAs with a transitional version:" }
                ul.plain {
                    @for name in &authorities.names { li { a href=(link_to_rotation(name.as_str())) { (name.as_str()) } } }
                }
            }
            @if authorities.has_more { p { "Only the " (authorities.names.len()) " oldest CAs are shown." } }
            @if let Some(key_rotation) = key_rotation { (key_rotation) }
        }
    }
}

fn disabled_plugins(states: &[PluginState]) -> Markup {
    let open = states
        .iter()
        .filter_map(|plugin| Some((plugin, plugin.circuit_open_for?)));
    let open: Vec<_> = open.collect();
    html! {
        section aria-labelledby="circuits" {
            h2 id="circuits" { "Disabled plugins" }
            @if open.is_empty() {
                p.empty { "No plugin is disabled for you. A plugin that keeps failing in your calls appears here; see " a href=(KEYS_AND_PLUGINS) { "all plugins" } "." }
            } @else {
                ul.plain {
                    @for (plugin, open_for) in open { li { a href=(KEYS_AND_PLUGINS) { (plugin.identity.name) } ": " (circuit(open_for)) } }
                }
                p { "The reasons are in the server's log." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_expiry_counts_in_its_range_and_its_month() {
        let now: DateTime<Utc> = "2026-11-26T12:00:00Z".parse().unwrap();
        let times = [
            "2026-11-26T12:00:00Z",
            "2026-11-26T12:00:01Z",
            "2026-12-03T12:00:00Z",
            "2026-12-03T12:00:01Z",
            "2026-12-31T23:59:59Z",
            "2027-01-01T00:00:00Z",
            "2027-10-31T23:59:59Z",
            "2027-11-01T00:00:00Z",
        ];
        let times = times.map(|time| time.parse().unwrap());
        let summary = Summary::of(&times, Vec::new(), now);
        assert_eq!(summary.expired, 1);
        assert_eq!(summary.within, [(7, 2), (30, 3), (90, 5)]);
        let counts: Vec<_> = summary.months.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [1, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(summary.total, 8);
    }
}
