//! Cookies, queries and forms, and the checks against requests from other sites.

use std::time::Duration;

use axum::{
    body::to_bytes,
    extract::Request,
    http::{
        HeaderMap, HeaderName, Method, StatusCode, Uri,
        header::{ACCEPT, CONTENT_TYPE, COOKIE, ORIGIN},
        request::Parts,
    },
};
use zeroize::Zeroizing;

use crate::{
    page::{CSRF_FIELD, PageError},
    session::Session,
};

/// Returns the value of a cookie; `None` if it is absent or there are several of this name.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    // Split as bytes, because other cookies of the host need not be ASCII. Only ASCII whitespace is trimmed: any subdomain can
    // set a cookie whose name has other whitespace before the prefix `__Host-`.
    let fields = headers.get_all(COOKIE).iter();
    let mut values = fields
        .flat_map(|field| field.as_bytes().split(|byte| *byte == b';'))
        .filter_map(|pair| str::from_utf8(pair.trim_ascii()).ok()?.split_once('='))
        .filter(|(found, _)| *found == name)
        .map(|(_, value)| value);
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

/// Refuses requests from other sites, except safe ones, which reveal nothing to these sites.
///
/// Current browsers send `Sec-Fetch-Site` with every request. Older browsers must send the origin. Because of the pages'
/// referrer policy, browsers can send the origin `null` with forms, which is accepted only with `Sec-Fetch-Site`.
pub(crate) fn check_site(request: &Parts, origin: &str) -> Result<(), PageError> {
    if request.method.is_safe() {
        return Ok(());
    }
    let field = |name: &HeaderName| {
        let mut values = request.headers.get_all(name).iter();
        let value = values
            .next()
            .map(|value| value.to_str().unwrap_or_default());
        if values.next().is_some() {
            Some("")
        } else {
            value
        }
    };
    let is_own = match (field(&SEC_FETCH_SITE), field(&ORIGIN)) {
        (Some(site), None | Some("null")) => site == SAME_ORIGIN,
        (Some(site), Some(sender)) => site == SAME_ORIGIN && sender == origin,
        (None, sender) => sender == Some(origin),
    };
    if is_own {
        return Ok(());
    }
    let message = "the request came from another site; use the console's own pages";
    Err(PageError::new(StatusCode::FORBIDDEN, message))
}

/// Returns whether a browser followed a link on another site.
pub(crate) fn is_cross_site_navigation(request: &Parts) -> bool {
    let site = request.headers.get(SEC_FETCH_SITE);
    matches!(request.method, Method::GET | Method::HEAD)
        && site.is_some_and(|site| site == "cross-site")
}

/// Returns whether the user caused a request, by opening a page or submitting a form. The script also refreshes pages, and other
/// pages of the same site can embed pages as images. Older browsers do not send the destination.
pub(crate) fn is_by_user(method: &Method, headers: &HeaderMap) -> bool {
    let destination = headers.get(SEC_FETCH_DEST);
    !method.is_safe() || destination.is_none_or(|destination| destination == "document")
}

/// Returns whether the script requests a text instead of a page.
pub(crate) fn accepts_text(headers: &HeaderMap) -> bool {
    headers
        .get(ACCEPT)
        .is_some_and(|accepted| accepted == "text/plain")
}

pub(crate) struct Fields(Vec<(String, Zeroizing<String>)>);

impl Fields {
    /// Returns the fields of a request's query.
    pub(crate) fn of_query(uri: &Uri) -> Self {
        Self::parse(uri.query().unwrap_or_default().as_bytes())
    }

    /// Receives the form of a request, and checks the session's token in it. This is the only way to read a form.
    pub(crate) async fn of_form(request: Request, session: &Session) -> Result<Self, PageError> {
        let media_type = request.headers().get(CONTENT_TYPE);
        let media_type = media_type.and_then(|text| text.to_str().ok());
        if media_type.and_then(|text| text.split(';').next()) != Some(FORM_TYPE) {
            let message = "the request must be a URL-encoded form";
            return Err(PageError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let receiving = to_bytes(request.into_body(), FORM_BYTES_MAX);
        let received = tokio::time::timeout(FORM_TIME_MAX, receiving).await;
        let received = received.map_err(|_| {
            let message = "the form took too long to arrive";
            PageError::new(StatusCode::REQUEST_TIMEOUT, message)
        })?;
        let body = received.map_err(|_| {
            let message = format!("a form must have at most {FORM_BYTES_MAX} bytes");
            PageError::new(StatusCode::PAYLOAD_TOO_LARGE, message)
        })?;
        let body = Zeroizing::new(Vec::from(body));
        // Fields are counted before they are parsed, because a parsed field of two bytes takes thirty times the memory.
        if body
            .split(|byte| *byte == b'&')
            .nth(FORM_FIELDS_MAX)
            .is_some()
        {
            let message = format!("a form must have at most {FORM_FIELDS_MAX} fields");
            return Err(PageError::new(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        let fields = Self::parse(&body);
        fields.check_token(session)?;
        Ok(fields)
    }

    fn parse(encoded: &[u8]) -> Self {
        let pairs = form_urlencoded::parse(encoded).into_owned();
        Self(
            pairs
                .map(|(name, value)| (name, Zeroizing::new(value)))
                .collect(),
        )
    }

    fn check_token(&self, session: &Session) -> Result<(), PageError> {
        if session.has_csrf_token(self.text(CSRF_FIELD)) {
            return Ok(());
        }
        let message = "the form does not belong to your session; open the page again";
        Err(PageError::new(StatusCode::FORBIDDEN, message))
    }

    /// Returns the first value of a field; empty if the field is absent.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.all(name).next().unwrap_or_default()
    }

    /// Returns all values of a field.
    pub(crate) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let found = self.0.iter().filter(move |(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Parses the number of days in a field of a query.
///
/// The length of the text is limited, because long details are omitted from the audit trail: leading zeros could hide other fields.
pub(crate) fn days_of(field: &str, text: &str, days_max: i64) -> Result<i64, PageError> {
    let days = text
        .parse()
        .ok()
        .filter(|days| (0..=days_max).contains(days));
    days.filter(|_| text.len() <= DAYS_CHARACTERS_MAX)
        .ok_or_else(|| {
            PageError::bad_request(format!(
                "{field} must be a whole number from 0 to {days_max}"
            ))
        })
}

/// The longest number of days.
const DAYS_CHARACTERS_MAX: usize = 5;

const FORM_TYPE: &str = "application/x-www-form-urlencoded";

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

const SAME_ORIGIN: &str = "same-origin";

/// Maximum size of a form: the largest value with each byte percent-encoded, and its metadata.
const FORM_BYTES_MAX: usize = 320 * 1024;

/// Maximum number of fields of a form: more than the parts of a schema, each of which can be a field.
const FORM_FIELDS_MAX: usize = 10_000;

/// Maximum time for a form to arrive.
const FORM_TIME_MAX: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const OWN: &str = "https://console.example";

    fn is_accepted(fields: &[(&'static str, &'static str)]) -> bool {
        let mut request = Request::new(axum::body::Body::empty());
        *request.method_mut() = Method::POST;
        for (name, value) in fields {
            let headers = request.headers_mut();
            headers.append(*name, value.parse().unwrap());
        }
        check_site(&request.into_parts().0, OWN).is_ok()
    }

    #[test]
    fn only_requests_of_own_pages_are_accepted() {
        for (fields, is_own) in [
            (&[][..], false),
            (&[("origin", OWN)], true),
            (&[("origin", "null")], false),
            (&[("origin", "https://console.example.org")], false),
            (&[("origin", OWN), ("origin", OWN)], false),
            (&[("sec-fetch-site", "same-origin")], true),
            (
                &[("sec-fetch-site", "same-origin"), ("origin", "null")],
                true,
            ),
            (&[("sec-fetch-site", "same-origin"), ("origin", OWN)], true),
            (
                &[
                    ("sec-fetch-site", "same-origin"),
                    ("origin", "https://other.example"),
                ],
                false,
            ),
            (&[("sec-fetch-site", "same-site"), ("origin", OWN)], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", OWN)], false),
            (&[("sec-fetch-site", "none")], false),
        ] {
            assert_eq!(is_accepted(fields), is_own, "{fields:?}");
        }
    }

    #[test]
    fn only_opened_pages_and_forms_are_requests_of_the_user() {
        for (method, destination, expected) in [
            ("GET", None, true),
            ("GET", Some("document"), true),
            ("GET", Some("empty"), false),
            ("GET", Some("image"), false),
            ("HEAD", Some("empty"), false),
            ("POST", Some("empty"), true),
        ] {
            let mut request = Request::builder().method(method);
            if let Some(destination) = destination {
                request = request.header(SEC_FETCH_DEST, destination);
            }
            let request = request.body(()).unwrap();
            let is_by_user = is_by_user(request.method(), request.headers());
            assert_eq!(is_by_user, expected, "{method} {destination:?}");
        }
    }

    #[test]
    fn a_repeated_cookie_counts_as_absent() {
        let mut headers = HeaderMap::new();
        let field = HeaderValue::from_bytes(b"a=\xff; b=2; \xc2\xa0c=3");
        headers.insert(COOKIE, field.unwrap());
        assert_eq!(cookie(&headers, "b"), Some("2"));
        assert_eq!(cookie(&headers, "c"), None);
        headers.append(COOKIE, "b=3".parse().unwrap());
        assert_eq!(cookie(&headers, "b"), None);
    }
}
