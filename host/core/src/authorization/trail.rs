//! What a request has touched, for the audit trail.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;
use uuid::Uuid;

use crate::permission::{Actor, Operation, Operations, Permission, PermissionPath};

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
    /// Whom the permission lets do what, where it is one that is to be changed.
    pub granted: Option<Granted>,
    /// Whether the response had the value of this version although the operation is not `read`: a value that was stored
    /// before the request.
    pub is_value_disclosed: bool,
}

/// Whom a permission lets do what. Changing several permissions on one path touches each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Whom.
    pub actor: Actor,
    /// What was asked for, or what is taken away; none where that is not known.
    pub operations: Option<Operations>,
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

    /// Records that the response has the value of a version that is stored at a place already.
    pub(super) fn disclose(&self, place: Place, resource_id: Uuid, version_id: Uuid) {
        self.identify(place, resource_id, Some(version_id));
        let mut entries = self.entries();
        let Some(operation) = entries.touched.get(place.0).map(|entry| entry.operation) else {
            return;
        };
        let is_disclosed = |entry: &&mut Touched| {
            entry.operation == operation && entry.version_id == Some(version_id)
        };
        for entry in entries.touched.iter_mut().filter(is_disclosed) {
            entry.is_value_disclosed = true;
        }
    }

    /// Says which permission on a path is to be changed. It is said before the caller is let pass, so that refused attempts
    /// are told whole too, and each permission of a request has a place of its own.
    pub(crate) fn ask_to_change(&self, path: &PermissionPath, granted: Granted) {
        let mut entries = self.entries();
        let next = Place(entries.touched.len());
        let name = path.lookup().asked().to_owned();
        let what = (Operation::WriteAcl.as_str(), name.clone());
        entries.places.entry(what).or_insert(next);
        entries.touched.push(Touched {
            operation: Operation::WriteAcl,
            name,
            resource_id: None,
            version_id: None,
            granted: Some(granted),
            is_value_disclosed: false,
        });
    }

    /// Says which permission it is that was changed: what was said of its actor before, on the path that stands at the
    /// place, was about this one.
    pub(super) fn identify_permission(&self, place: Place, permission: &Permission) {
        let mut entries = self.entries();
        let Some(path) = entries.touched.get(place.0).map(|entry| entry.name.clone()) else {
            return;
        };
        let of_actor = |entry: &&mut Touched| {
            let granted = entry.granted.as_ref();
            entry.operation == Operation::WriteAcl
                && entry.name == path
                && granted.is_some_and(|granted| granted.actor == permission.actor)
        };
        let mut is_told = false;
        for entry in entries.touched.iter_mut().filter(of_actor) {
            entry.resource_id = Some(permission.id);
            if let Some(granted) = &mut entry.granted {
                granted.operations.get_or_insert(permission.operations);
            }
            is_told = true;
        }
        if let (false, Some(entry)) = (is_told, entries.touched.get_mut(place.0)) {
            entry.resource_id = Some(permission.id);
            entry.granted = Some(Granted {
                actor: permission.actor.clone(),
                operations: Some(permission.operations),
            });
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
            granted: None,
            is_value_disclosed: false,
        }
    }

    fn permission(id: u128, actor: &str, operation: Operation) -> Permission {
        Permission {
            id: Uuid::from_u128(id),
            path: PermissionPath::parse("/a").unwrap(),
            actor: Actor::parse(actor).unwrap(),
            operations: Operations::of([operation]).unwrap(),
        }
    }

    #[test]
    fn each_permission_that_is_to_be_changed_is_told_by_its_actor_and_what_was_asked_for() {
        let trail = Trail::default();
        let read = Operations::of([Operation::Read]);
        for (actor, operations) in [("one", read), ("two", None), ("three", read)] {
            let permission = permission(1, actor, Operation::Read);
            let actor = permission.actor;
            trail.ask_to_change(&permission.path, Granted { actor, operations });
        }
        let place = trail.push(touched(Operation::WriteAcl, "/a"));
        trail.identify_permission(place, &permission(1, "one", Operation::Write));
        trail.identify_permission(place, &permission(2, "two", Operation::Write));
        let seen: Vec<_> = trail
            .touched()
            .into_iter()
            .map(|touched| (touched.resource_id, touched.granted.unwrap().operations))
            .collect();
        let id = |id| Some(Uuid::from_u128(id));
        let write = Operations::of([Operation::Write]);
        assert_eq!(seen, [(id(1), read), (id(2), write), (None, read)]);
    }

    #[test]
    fn a_permission_that_is_asked_for_by_its_id_is_told_at_its_place() {
        let trail = Trail::default();
        let place = trail.push(touched(Operation::WriteAcl, "/a"));
        let permission = permission(1, "one", Operation::Read);
        trail.identify(place, permission.id, None);
        trail.identify_permission(place, &permission);
        let granted = Granted {
            operations: Some(permission.operations),
            actor: permission.actor,
        };
        let seen = trail.touched();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].granted, Some(granted));
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
    fn a_disclosed_value_is_recorded_with_its_version_alone() {
        let trail = Trail::default();
        let id = Uuid::from_u128;
        let write = trail.push(touched(Operation::Write, "/a"));
        let read = trail.push(touched(Operation::Read, "/a"));
        trail.identify(read, id(1), Some(id(3)));
        trail.identify(write, id(1), Some(id(2)));
        trail.disclose(write, id(1), id(3));
        let seen: Vec<_> = trail
            .touched()
            .into_iter()
            .map(|touched| {
                (
                    touched.operation,
                    touched.version_id,
                    touched.is_value_disclosed,
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                (Operation::Write, Some(id(2)), false),
                (Operation::Read, Some(id(3)), false),
                (Operation::Write, Some(id(3)), true),
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
