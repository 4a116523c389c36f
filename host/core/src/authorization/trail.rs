//! What a request has touched, for the audit trail.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;
use uuid::Uuid;

use crate::permission::Operation;

/// What a request has touched, or tried to, in that order.
#[derive(Debug, Default)]
pub struct Trail {
    entries: Mutex<Entries>,
    account: Mutex<Account>,
}

/// What there is to say of a request as a whole, beside what it touched. Never a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// What it asked for, where its address alone leaves that open.
    pub action: Option<&'static str>,
    /// More of what it asked for.
    pub details: Option<Value>,
}

/// A resource that a request has touched, or tried to. Never a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// What was to be done with it.
    pub operation: Operation,
    /// The credential's name as it was asked for, or the path of a permission.
    pub name: String,
    /// The id of the credential or of the permission, once it is known.
    pub resource_id: Option<Uuid>,
    /// The id of the credential's version, once it is known.
    pub version_id: Option<Uuid>,
}

/// What was touched, and where it stands: a document to be interpolated may refer to thousands of credentials.
#[derive(Debug, Default)]
struct Entries {
    touched: Vec<Touched>,
    /// The first place of each operation on each name.
    places: HashMap<(&'static str, String), Place>,
    /// The ids that are known of what stands at a place, or belongs to it.
    identified: HashSet<(Place, Uuid, Option<Uuid>)>,
}

/// The place of a resource in a trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place(usize);

impl Trail {
    /// What was touched so far.
    #[must_use]
    pub fn touched(&self) -> Vec<Touched> {
        self.entries().touched.clone()
    }

    /// What was said of the request as a whole so far.
    #[must_use]
    pub fn account(&self) -> Account {
        self.account_mut().clone()
    }

    /// Says what the request asks for, where its address alone leaves that open.
    pub fn tell_action(&self, action: &'static str) {
        self.account_mut().action = Some(action);
    }

    /// Says more of what the request asks for. A value must never be in it.
    pub fn tell_details(&self, details: Value) {
        self.account_mut().details = Some(details);
    }

    /// The place of a resource, which it gets when it is first touched in this way.
    pub(super) fn push(&self, touched: Touched) -> Place {
        let mut entries = self.entries();
        let next = Place(entries.touched.len());
        let what = (touched.operation.as_str(), touched.name.clone());
        let place = *entries.places.entry(what).or_insert(next);
        if place == next {
            entries.touched.push(touched);
        }
        place
    }

    /// Says which resource it is that stands at a place; where that is said already, it is another one of the same name.
    pub(super) fn identify(&self, place: Place, resource_id: Uuid, version_id: Option<Uuid>) {
        let mut entries = self.entries();
        if !entries.identified.insert((place, resource_id, version_id)) {
            return;
        }
        let Some(entry) = entries.touched.get_mut(place.0) else {
            return;
        };
        let identified = Touched {
            resource_id: Some(resource_id),
            version_id,
            ..entry.clone()
        };
        if entry.resource_id.is_none() {
            *entry = identified;
        } else {
            entries.touched.push(identified);
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn account_mut(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(operation: Operation, name: &str) -> Touched {
        Touched {
            operation,
            name: name.to_owned(),
            resource_id: None,
            version_id: None,
        }
    }

    #[test]
    fn a_resource_is_written_down_once_for_each_operation_and_once_for_each_version() {
        let trail = Trail::default();
        let id = Uuid::from_u128;
        let read = trail.push(touched(Operation::Read, "/a"));
        trail.push(touched(Operation::Write, "/a"));
        let read_again = trail.push(touched(Operation::Read, "/a"));
        for place in [read, read_again] {
            trail.identify(place, id(1), Some(id(2)));
            trail.identify(place, id(1), Some(id(3)));
        }
        let seen: Vec<_> = trail
            .touched()
            .into_iter()
            .map(|touched| (touched.operation, touched.version_id))
            .collect();
        assert_eq!(
            seen,
            [
                (Operation::Read, Some(id(2))),
                (Operation::Write, None),
                (Operation::Read, Some(id(3))),
            ]
        );
    }

    #[test]
    fn nothing_is_told_of_a_request_until_it_is() {
        let trail = Trail::default();
        assert_eq!(trail.account(), Account::default());
        trail.tell_action("FIND");
        trail.tell_details(Value::from("a"));
        let account = trail.account();
        assert_eq!(
            (account.action, account.details),
            (Some("FIND"), Some(Value::from("a")))
        );
    }
}
