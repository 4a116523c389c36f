//! The address of a request in the audit trail.

use std::borrow::Cow;

use axum::http::Uri;

use super::event::{REQUEST_BYTES_MAX, cut};

/// Returns the path and query, truncated to their limit. Only known query parameters are included: others could be a token or
/// a value sent by mistake, which must not be stored for years.
pub(super) fn shown(uri: &Uri) -> String {
    let mut text = uri.path().to_owned();
    for (index, pair) in uri.query().into_iter().flat_map(pairs).enumerate() {
        text.push(if index == 0 { '?' } else { '&' });
        text.push_str(if is_known(pair) { pair } else { NOT_SHOWN });
        if text.len() > REQUEST_BYTES_MAX {
            break;
        }
    }
    match cut(&text, REQUEST_BYTES_MAX) {
        Cow::Borrowed(_) => text,
        Cow::Owned(cut) => cut,
    }
}

fn pairs(query: &str) -> impl Iterator<Item = &str> {
    query.split('&').filter(|pair| !pair.is_empty())
}

fn is_known(pair: &str) -> bool {
    form_urlencoded::parse(pair.as_bytes())
        .next()
        .is_some_and(|(name, _)| PARAMETERS.contains(&name.as_ref()))
}

/// The known query parameters. None of them contains a credential's value.
const PARAMETERS: [&str; 11] = [
    "actor",
    "credential_name",
    "current",
    "effective",
    "expires-within-days",
    "generated_by",
    "name",
    "name-like",
    "operation",
    "path",
    "versions",
];

/// The placeholder for an unknown parameter.
const NOT_SHOWN: &str = "not-shown";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::routes;

    #[test]
    fn every_documented_parameter_is_known() {
        for parameter in routes()
            .iter()
            .flat_map(|route| route.described().parameters)
        {
            assert!(PARAMETERS.contains(&parameter.name), "{}", parameter.name);
        }
    }

    #[test]
    fn only_known_parameters_are_shown() {
        for (uri, expected) in [
            ("/a", "/a"),
            ("/a?", "/a"),
            ("/a?name=%2Fb&current=true", "/a?name=%2Fb&current=true"),
            ("/a?na%6De=b", "/a?na%6De=b"),
            ("/a?path=", "/a?path="),
            ("/a?name=b&value=secret", "/a?name=b&not-shown"),
            ("/a?secret", "/a?not-shown"),
            ("/a?secret&&name=b", "/a?not-shown&name=b"),
            ("/a?Name=secret", "/a?not-shown"),
        ] {
            assert_eq!(shown(&uri.parse().unwrap()), expected);
        }
    }

    #[test]
    fn a_long_address_is_cut() {
        let long = |length: usize| format!("/a?name={}", "b".repeat(length - "/a?name=".len()));
        let fitting = long(REQUEST_BYTES_MAX);
        assert_eq!(shown(&fitting.parse().unwrap()), fitting);
        let cut = shown(&long(REQUEST_BYTES_MAX + 1).parse().unwrap());
        assert_eq!(cut.len(), REQUEST_BYTES_MAX + "…".len());
        assert!(cut.ends_with("b…"));
    }
}
