//! What must be stored, and what is.

use std::collections::BTreeMap;

use keywright_harness::{Answer, Caller};
use reqwest::Method;
use serde_json::Value;

/// Where something stands that requests change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
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

/// What stands where, the newest first. Of what a server made without telling, only some members are known.
pub(super) type Records = BTreeMap<Place, Vec<Value>>;

impl Place {
    /// What a server says that stands here; none when the server, or its database, is gone.
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

/// Whether these are the expected records, in this order and no others.
pub(super) fn are(expected: &[Value], actual: &[Value]) -> bool {
    expected.len() == actual.len()
        && expected
            .iter()
            .zip(actual)
            .all(|(expected, actual)| is(expected, actual))
}

/// Whether a record is as expected, as far as is known what to expect: an object must have all members that are known.
pub(super) fn is(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => expected
            .iter()
            .all(|(name, value)| actual.get(name).is_some_and(|member| is(value, member))),
        _ => expected == actual,
    }
}

/// What stands at a place.
pub(super) fn at<'a>(records: &'a Records, place: &Place) -> &'a [Value] {
    records.get(place).map_or(&[], Vec::as_slice)
}
