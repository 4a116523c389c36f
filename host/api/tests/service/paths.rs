//! Different spellings of paths: no spelling of a protected path is treated as an open one.

use std::{collections::HashMap, fmt::Write};

use axum::http::{Method, StatusCode, Uri};
use proptest::{
    prelude::*,
    sample::select,
    test_runner::{Config, TestCaseError, TestRunner},
};
use tokio::runtime::Runtime;

use crate::harness::Service;

/// Paths that require authentication.
const PROTECTED: [&str; 12] = [
    "/version",
    "/management",
    "/api/v1/data?path=",
    "/api/v1/data?name=/absent",
    "/api/v1/data/7c3b2d1e-0000-4000-8000-000000000000",
    "/api/v1/regenerate",
    "/api/v1/bulk-regenerate",
    "/api/v1/interpolate",
    "/api/v1/certificates",
    "/api/v1/certificates/7c3b2d1e-0000-4000-8000-000000000000/versions",
    "/api/v1/certificates/7c3b2d1e-0000-4000-8000-000000000000/regenerate",
    "/unknown/path",
];

/// Paths that require no authentication.
const OPEN: [&str; 7] = [
    "/info",
    "/health",
    "/identity/info",
    "/identity/token_keys",
    "/identity/.well-known/openid-configuration",
    "/identity/oauth/token",
    "/identity/oauth/token/revoke/x",
];

/// Parent segments. The first half are equivalent to `..`; the others must not be treated as such.
const STEPS: [&str; 14] = [
    "/..",
    "/%2e%2e",
    "/.%2E",
    "//..",
    "/./..",
    "/..//",
    "/x/../..",
    "/..;",
    "/..;x",
    "/..%2f",
    "/%252e%252e",
    "\\..",
    "/%c0%ae%c0%ae",
    "/..%00",
];

/// Other segments that parsers interpret differently.
const PIECES: [&str; 38] = [
    "/",
    "//",
    ".",
    "..",
    "/.",
    "/./",
    "/x",
    "%2e",
    "%2f",
    "%2F",
    "%5c",
    "\\",
    ";",
    ";x=",
    "/;",
    "%3b",
    "%00",
    "%0a",
    "%20",
    "%",
    "%2",
    "%zz",
    "%25",
    "%252f",
    "%c0%af",
    "%ef%bc%8f",
    "\u{ff0f}",
    "\u{212a}",
    "?",
    "?name=/absent",
    "#",
    "%3f",
    "%23",
    ":",
    "@",
    "*",
    "https://a",
    "/oauth/token",
];

const METHODS: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];

#[test]
fn each_spelling_of_a_path_gets_the_same_response() {
    let client = Client::new();
    let paths: Vec<_> = PROTECTED.into_iter().chain(OPEN).collect();
    let spellings = (select(paths), prop::collection::vec(any::<u8>(), 256))
        .prop_map(|(path, choices): (&str, Vec<u8>)| (path, spelled(path, &choices)));
    check(
        &(spellings, select(&METHODS[..])),
        |((plain, spelled), method)| {
            for has_token in [false, true] {
                let expected = client.response(&method, plain, has_token);
                prop_assert_eq!(client.response(&method, &spelled, has_token), expected);
            }
            if PROTECTED.contains(&plain) {
                let (status, _) = client.response(&method, &spelled, false);
                prop_assert_eq!(status, StatusCode::UNAUTHORIZED);
            }
            Ok(())
        },
    );
}

#[test]
fn without_a_token_only_open_paths_are_reached() {
    let client = Client::new();
    // A HEAD response has no body to distinguish it from others.
    let methods: Vec<_> = METHODS
        .into_iter()
        .filter(|method| method != Method::HEAD)
        .collect();
    let open: HashMap<_, Vec<_>> = methods
        .iter()
        .map(|method| {
            let responses = OPEN.map(|path| client.response(method, path, false));
            (method.clone(), responses.into())
        })
        .collect();
    check(&(confusing(), select(methods)), |(target, method)| {
        if let Ok(uri) = target.parse::<Uri>() {
            let response = client.response(&method, &target, false);
            let is_expected = if names_user(&uri) {
                response.0 == StatusCode::BAD_REQUEST
            } else {
                response.0 == StatusCode::UNAUTHORIZED || open[&method].contains(&response)
            };
            prop_assert!(is_expected, "{response:?}");
        }
        Ok(())
    });
}

#[test]
fn confusing_targets_with_a_token_respond_like_plain_paths() {
    let client = Client::new();
    let known: Vec<_> = PROTECTED
        .into_iter()
        .chain(OPEN)
        .chain(["/api/v1/data", "/api/v1/data?"])
        .map(|path| client.response(&Method::GET, path, true))
        .collect();
    check(&confusing(), |target| {
        if let Ok(uri) = target.parse::<Uri>() {
            let response = client.response(&Method::GET, &target, true);
            let is_expected = if names_user(&uri) {
                response.0 == StatusCode::BAD_REQUEST
            } else {
                known.contains(&response)
            };
            prop_assert!(is_expected, "{response:?}");
        }
        Ok(())
    });
}

/// A service and its responses.
struct Client {
    service: Service,
    runtime: Runtime,
}

impl Client {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        Self {
            service: runtime.block_on(Service::new()),
            runtime,
        }
    }

    fn response(&self, method: &Method, target: &str, has_token: bool) -> (StatusCode, String) {
        let mut headers = vec![("content-type", "application/json".to_owned())];
        if has_token {
            headers.push(("authorization", self.service.token()));
        }
        let request = self
            .service
            .send_with(method.as_str(), target, &headers, "");
        let response = self.runtime.block_on(request);
        (response.status, response.text)
    }
}

fn names_user(uri: &Uri) -> bool {
    uri.authority()
        .is_some_and(|authority| authority.as_str().contains('@'))
}

/// Returns a random spelling of a path, with the same query.
fn spelled(target: &str, choices: &[u8]) -> String {
    const BEGINNINGS: [&str; 4] = ["", "/..", "/.", "/../%2e%2E"];
    const SLASHES: [&str; 8] = [
        "/",
        "/",
        "/",
        "//",
        "/./",
        "/%2e/",
        "/x/../",
        "/x/y/%2E./.%2e//",
    ];
    const ENDS: [&str; 6] = ["", "/", "//", "/.", "/x/..", "/%2e/"];
    let mut choices = choices.iter().map(|choice| usize::from(*choice)).cycle();
    let mut chosen = |count: usize| choices.next().unwrap() % count;
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (target, String::new()),
    };
    let mut spelled = BEGINNINGS[chosen(4)].to_owned();
    for byte in path.bytes() {
        match (byte, chosen(3)) {
            (b'/', _) => write!(spelled, "{}", SLASHES[chosen(8)]),
            (_, 0) => write!(spelled, "%{byte:02x}"),
            (_, 1) => write!(spelled, "%{byte:02X}"),
            (byte, _) => write!(spelled, "{}", char::from(byte)),
        }
        .unwrap();
    }
    spelled + ENDS[chosen(6)] + &query
}

/// Returns a target that parsers could interpret differently: from one path to another through parent segments, or joined from
/// random segments.
fn confusing() -> impl Strategy<Value = String> {
    prop_oneof![crossing(), pieces()]
}

/// Goes up from one path, about as often as necessary, and down to another.
fn crossing() -> impl Strategy<Value = String> {
    let paths: Vec<_> = PROTECTED.into_iter().chain(OPEN).collect();
    let step = prop_oneof![
        12 => select(&STEPS[..7]),
        1 => select(&STEPS[7..]),
    ];
    let steps = prop::collection::vec(step, 9);
    (select(paths.clone()), steps, -1_isize..2, select(paths)).prop_map(
        |(from, steps, more, to)| {
            let from = from.split('?').next().unwrap();
            let needed = from.matches('/').count().saturating_add_signed(more);
            format!("{from}{}{to}", steps[..needed].concat())
        },
    )
}

/// Joins segments, usually with a leading slash.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        2 => select(PROTECTED.to_vec()).prop_map(str::to_owned),
        2 => select(OPEN.to_vec()).prop_map(str::to_owned),
        3 => select(&STEPS[..]).prop_map(str::to_owned),
        3 => select(&PIECES[..]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => any::<u8>().prop_map(|byte| format!("%{byte:02x}")),
    ];
    let pieces = prop::collection::vec(piece, 1..6).prop_map(|pieces| pieces.concat());
    (prop::bool::weighted(0.8), pieces).prop_map(|(begins_with_a_slash, pieces)| {
        if begins_with_a_slash {
            format!("/{}", pieces.trim_start_matches('/'))
        } else {
            pieces
        }
    })
}

/// Tests a property with many inputs, and reports the smallest failing one.
fn check<S: Strategy>(inputs: &S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = Config {
        cases: 2_000,
        failure_persistence: None,
        ..Config::default()
    };
    let tried = TestRunner::new(config).run(inputs, property);
    assert!(tried.is_ok(), "{}", tried.unwrap_err());
}
