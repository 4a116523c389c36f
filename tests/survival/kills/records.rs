//! Expected and stored records.

use std::collections::BTreeMap;

use keywright_harness::{Answer, Caller};
use reqwest::Method;
use serde_json::Value;

/// A location that requests change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Location {
    /// The versions of a credential, by its name.
    Credential(String),
    /// The permission of an actor on a path.
    Permission {
        /// The path.
        path: String,
        /// The actor.
        actor: String,
    },
}

/// The records at each location, newest first. For records that the server created without returning them, only some
/// fields are known.
pub(super) type Records = BTreeMap<Location, Vec<Value>>;

impl Location {
    /// Reads the records at a location; `None` if the server or its database is gone.
    pub(super) async fn read(&self, caller: &Caller) -> Option<Vec<Value>> {
        let path = match self {
            Self::Credential(name) => format!("/api/v1/data?name={name}"),
            Self::Permission { path, actor } => {
                format!("/api/v2/permissions?path={path}&actor={actor}")
            }
        };
        let answer = Answer::try_to(caller.request(Method::GET, &path))
            .await
            .ok()?;
        match answer.status {
            404 => return Some(Vec::new()),
            503 => return None,
            _ => {}
        }
        let mut body = answer.expect(200).json();
        Some(match self {
            Self::Credential(_) => body["data"].as_array().unwrap().clone(),
            Self::Permission { .. } => vec![body.take()],
        })
    }
}

/// Returns whether these are exactly the expected records, in this order.
pub(super) fn are(expected: &[Value], actual: &[Value]) -> bool {
    expected.len() == actual.len()
        && expected
            .iter()
            .zip(actual)
            .all(|(expected, actual)| is(expected, actual))
}

/// Returns whether a record matches, as far as the expectation is known: an object must have all known fields.
pub(super) fn is(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => expected
            .iter()
            .all(|(name, value)| actual.get(name).is_some_and(|member| is(value, member))),
        _ => expected == actual,
    }
}

/// The records at a location.
pub(super) fn at<'a>(records: &'a Records, location: &Location) -> &'a [Value] {
    records.get(location).map_or(&[], Vec::as_slice)
}
