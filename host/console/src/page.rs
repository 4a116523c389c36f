//! The frame of every page, the header fields of every response, and pages of errors.

use axum::{
    http::{
        HeaderName, HeaderValue, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY,
            X_CONTENT_TYPE_OPTIONS,
        },
    },
    response::{IntoResponse, Response},
};
use chrono::{DateTime, SecondsFormat, Utc};
use keywright_core::UseCaseError;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::{paths, session::Session};

pub(crate) struct Page<'a> {
    title: &'a str,
    session: Option<&'a Session>,
    section: &'a str,
    leads_to: Option<&'a str>,
    refusal: Option<&'a PageError>,
}

impl<'a> Page<'a> {
    /// Creates a page without a session.
    pub(crate) fn new(title: &'a str) -> Self {
        Self {
            title,
            session: None,
            section: "",
            leads_to: None,
            refusal: None,
        }
    }

    /// Creates a page of a session, in the section of the navigation with this path.
    pub(crate) fn of(session: &'a Session, section: &'a str, title: &'a str) -> Self {
        Self {
            session: Some(session),
            section,
            ..Self::new(title)
        }
    }

    /// Makes the browser open another page at once.
    pub(crate) fn leading_to(self, path: &'a str) -> Self {
        Self {
            leads_to: Some(path),
            ..self
        }
    }

    /// Shows the reason to refuse a request above the content, if there is one, and sets its status.
    pub(crate) fn refusing(self, refusal: Option<&'a PageError>) -> Self {
        Self { refusal, ..self }
    }

    pub(crate) fn render(&self, content: &Markup) -> Response {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    @if let Some(path) = self.leads_to {
                        meta http-equiv="refresh" content={ "0; url=" (path) };
                    }
                    title { (self.title) " · Keywright" }
                    link rel="stylesheet" href=(paths::STYLE);
                    script src=(paths::SCRIPT) defer {}
                    link rel="icon" type="image/svg+xml" href=(paths::ICON);
                }
                body {
                    a.skip href="#content" { "Skip to the content" }
                    header {
                        span.brand { "Keywright" }
                        @if let Some(session) = self.session { (navigation(session, self.section)) }
                    }
                    main id="content" tabindex="-1" {
                        h1 { (self.title) }
                        @if let Some(refusal) = self.refusal { p.failure role="alert" { (sentence(&refusal.message)) } }
                        (content)
                    }
                }
            }
        };
        let media_type = [(CONTENT_TYPE, "text/html; charset=utf-8")];
        let status = self
            .refusal
            .map_or(StatusCode::OK, |refusal| refusal.status);
        (status, media_type, page.into_string()).into_response()
    }
}

fn navigation(session: &Session, section: &str) -> Markup {
    html! {
        nav aria-label="Console" {
            ul {
                @for (path, label) in SECTIONS {
                    li { a href=(path) aria-current=[(path == section).then_some("page")] { (label) } }
                }
            }
        }
        form.session method="post" action=(paths::LOGOUT) {
            (csrf_field(session))
            span { (session.actor.as_str()) }
            button { "Log out" }
        }
    }
}

/// Returns the hidden field with the session's token that each form must contain.
pub(crate) fn csrf_field(session: &Session) -> Markup {
    html! { input type="hidden" name=(CSRF_FIELD) value=(session.csrf_token()); }
}

/// Renders a time as its distance from now, with the exact time as a title.
pub(crate) fn moment(time: DateTime<Utc>, now: DateTime<Utc>) -> Markup {
    let exact = rfc3339(time);
    html! { time datetime=(exact) title=(exact) { (distance(time, now)) } }
}

pub(crate) fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Renders the time at which a version is due, with a mark if the time has passed or is soon.
pub(crate) fn due(due_at: DateTime<Utc>, now: DateTime<Utc>) -> Markup {
    html! {
        (moment(due_at, now))
        @if due_at <= now { " " span.mark.late { "expired" } }
        @else if is_soon(due_at, now) { " " span.mark.soon { "soon" } }
    }
}

/// Returns whether a time is less than [`SOON_DAYS`] days away.
pub(crate) fn is_soon(due_at: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    due_at.signed_duration_since(now).num_days() < SOON_DAYS
}

/// Replaces the beginning of a text of more than `count_max` characters with an ellipsis.
pub(crate) fn last_characters(text: &str, count_max: usize) -> String {
    let count = text.chars().count();
    if count <= count_max {
        return text.to_owned();
    }
    let end = text.chars().skip(count + 1 - count_max);
    std::iter::once('…').chain(end).collect()
}

/// Renders content that can be wider than the page in a box that scrolls, also with the keyboard.
pub(crate) fn scrolled(label: &str, content: &Markup) -> Markup {
    html! { div.scrolled tabindex="0" role="region" aria-label=(label) { (content) } }
}

/// Renders a table that can be wider than the page.
pub(crate) fn table(label: &str, columns: &[&str], rows: &Markup) -> Markup {
    scrolled(
        label,
        &html! {
            table {
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody { (rows) }
            }
        },
    )
}

/// Returns the number of the requested page of a list, or the nearest one.
pub(crate) fn page_number(requested: &str, count: usize) -> usize {
    requested.parse().unwrap_or(1).clamp(1, count.max(1))
}

/// Renders links to other pages of a list with this many pages. `link` returns the address of a page.
pub(crate) fn page_links(number: usize, count: usize, link: impl Fn(usize) -> String) -> Markup {
    html! {
        @if count > 1 {
            nav.pages aria-label="Pages" {
                @if number > 1 { a.button href=(link(number - 1)) { "Previous page" } }
                span { "Page " (number) " of " (count) }
                @if number < count { a.button href=(link(number + 1)) { "Next page" } }
            }
        }
    }
}

/// Renders links to the first and to the next page of a list whose number of pages is unknown.
pub(crate) fn next_links(first: Option<String>, next: Option<String>) -> Markup {
    html! {
        @if first.is_some() || next.is_some() {
            nav.pages aria-label="Pages" {
                @if let Some(first) = first { a.button href=(first) { "First page" } }
                @if let Some(next) = next { a.button href=(next) { "Next page" } }
            }
        }
    }
}

/// Returns the distance of a time from now in its largest unit.
fn distance(time: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let seconds = time.signed_duration_since(now).num_seconds();
    let (unit, unit_seconds) = UNITS
        .into_iter()
        .find(|(_, unit_seconds)| seconds.abs() >= *unit_seconds)
        .unwrap_or(("moment", 1));
    let count = seconds.abs() / unit_seconds;
    match (unit, count, seconds >= 0) {
        ("moment", ..) => "just now".to_owned(),
        (unit, 1, true) => format!("in 1 {unit}"),
        (unit, count, true) => format!("in {count} {unit}s"),
        (unit, 1, false) => format!("1 {unit} ago"),
        (unit, count, false) => format!("{count} {unit}s ago"),
    }
}

/// The page that responds to a request, or the reason to refuse the request.
pub(crate) type PageResult = Result<Response, Failure>;

/// The reason to refuse a request: of the console itself, or of a use case. [`State::error`](crate::state::State::error) returns
/// the page.
pub(crate) enum Failure {
    Page(PageError),
    UseCase(UseCaseError),
}

impl From<PageError> for Failure {
    fn from(error: PageError) -> Self {
        Self::Page(error)
    }
}

impl<E: Into<UseCaseError>> From<E> for Failure {
    fn from(failure: E) -> Self {
        Self::UseCase(failure.into())
    }
}

/// The reason to refuse a request, shown on a page.
#[derive(Debug)]
pub(crate) struct PageError {
    pub(crate) status: StatusCode,
    message: String,
    link: Option<(String, &'static str)>,
}

impl PageError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            link: Some((paths::BROWSE.to_owned(), "Back to the credentials")),
        }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn with_link(self, path: &str, label: &'static str) -> Self {
        Self {
            link: Some((path.to_owned(), label)),
            ..self
        }
    }

    /// Returns the page without the navigation.
    pub(crate) fn into_response(self) -> Response {
        self.into_response_to(None)
    }

    /// Returns the page with the navigation, if the request has a session.
    pub(crate) fn into_response_to(self, session: Option<&Session>) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let page = Page {
            session,
            refusal: Some(&self),
            ..Page::new(title)
        };
        page.render(&html! {
            @if let Some((path, label)) = &self.link { p { a.button href=(path) { (label) } } }
        })
    }
}

/// Renders a text such that browsers show and copy exactly this text. Otherwise they would omit a line break at its start, and
/// change carriage returns. HTML can't contain U+0000, so its symbol is shown.
pub(crate) fn exact(text: &str) -> Markup {
    let markup = html! { pre tabindex="0" { "\n" (text) } };
    let markup = markup.into_string().replace('\r', "&#13;");
    PreEscaped(markup.replace('\0', "\u{2400}"))
}

/// Renders a text that the script can copy, unless it is not shown exactly.
pub(crate) fn copyable(name: &str, text: &str) -> Markup {
    let name = (!text.contains('\0')).then_some(name);
    html! { div.copyable data-copy=[name] { (exact(text)) } }
}

fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

/// Returns a redirection that the browser follows with GET.
pub(crate) fn see_other(path: &str) -> Response {
    match HeaderValue::try_from(path) {
        Ok(path) => (StatusCode::SEE_OTHER, [(LOCATION, path)]).into_response(),
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}

/// Sets the header fields of every response.
pub(crate) fn secured(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in EVERY_RESPONSE {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

pub(crate) fn style() -> Response {
    let media_type = [(CONTENT_TYPE, "text/css; charset=utf-8")];
    (media_type, include_str!("style.css")).into_response()
}

pub(crate) fn script() -> Response {
    let media_type = [(CONTENT_TYPE, "text/javascript; charset=utf-8")];
    (media_type, include_str!("script.js")).into_response()
}

pub(crate) fn icon() -> Response {
    let media_type = [(CONTENT_TYPE, "image/svg+xml")];
    (media_type, include_str!("icon.svg")).into_response()
}

/// The field of a form that contains the session's token.
pub(crate) const CSRF_FIELD: &str = "csrf_token";

const SECTIONS: [(&str, &str); 7] = [
    (paths::BROWSE, "Credentials"),
    (paths::OVERVIEW, "Overview"),
    (paths::CERTIFICATES, "Certificates"),
    (paths::PERMISSIONS, "Permissions"),
    (paths::KEYS_AND_PLUGINS, "Keys and plugins"),
    (paths::GENERATE, "Generate"),
    (paths::SET, "Set"),
];

/// The number of remaining days below which an expiry is marked.
const SOON_DAYS: i64 = 30;

/// The units of distances in time, in seconds.
const UNITS: [(&str, i64); 5] = [
    ("year", 31_536_000),
    ("month", 2_592_000),
    ("day", 86_400),
    ("hour", 3_600),
    ("minute", 60),
];

/// Pages may only load the console's own files, and only send requests to the console. There are no inline scripts and styles.
const POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; \
     form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

const EVERY_RESPONSE: [(HeaderName, &str); 6] = [
    (CACHE_CONTROL, "no-store"),
    (CONTENT_SECURITY_POLICY, POLICY),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn a_long_text_is_cut_off_at_its_beginning() {
        assert_eq!(last_characters("/ab", 3), "/ab");
        assert_eq!(last_characters("/abc", 3), "…bc");
    }

    #[test]
    fn a_distance_has_its_largest_unit() {
        let now = DateTime::UNIX_EPOCH;
        for (seconds, expected) in [
            (0, "just now"),
            (-59, "just now"),
            (-60, "1 minute ago"),
            (7_200, "in 2 hours"),
            (86_400, "in 1 day"),
            (-5_184_000, "2 months ago"),
            (400 * 86_400, "in 1 year"),
        ] {
            let time = now + TimeDelta::seconds(seconds);
            assert_eq!(distance(time, now), expected);
        }
    }
}
