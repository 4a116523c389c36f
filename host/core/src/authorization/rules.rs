//! What permissions allow.

use std::collections::HashMap;

use crate::{
    Failure,
    authorization::{Caller, Permit, decide},
    credential::LookupName,
    permission::{Operation, Permission, PermissionPath},
};

/// The permissions of one actor, as far as they matter for what is asked.
#[derive(Debug)]
pub struct Rules {
    /// None: everything is allowed.
    by_path: Option<HashMap<String, Permission>>,
}

impl Rules {
    /// The rules that permissions of one actor are.
    #[must_use]
    pub fn of(permissions: Vec<Permission>) -> Self {
        let by_path = permissions
            .into_iter()
            .map(|permission| (permission.path.as_str().to_owned(), permission))
            .collect();
        Self {
            by_path: Some(by_path),
        }
    }

    /// No rules are enforced.
    #[must_use]
    pub fn everything() -> Self {
        Self { by_path: None }
    }

    /// As [`super::Authorization::permit`], by these rules, which must be about the caller.
    ///
    /// # Errors
    /// As there.
    pub fn permit<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        name: &LookupName,
    ) -> Result<Permit<'a>, Failure> {
        decide(
            self,
            operation,
            name,
            Permit::asked(caller, operation, name),
        )
    }

    /// Whether an operation is allowed on a name, or on the permissions with a path. This is the one decision.
    #[must_use]
    pub fn allow(&self, operation: Operation, name: &str) -> bool {
        self.by_path.is_none() || self.allowing(operation, name).is_some()
    }

    /// The permission that allows an operation on a name, the nearest when there are several.
    #[must_use]
    pub fn allowing(&self, operation: Operation, name: &str) -> Option<&Permission> {
        self.considered(name)
            .filter_map(|(_, permission)| permission)
            .find(|permission| permission.operations.contain(operation))
    }

    /// Each path that covers a name, the nearest first, with the permission on it, if there is one.
    pub fn considered(
        &self,
        name: &str,
    ) -> impl Iterator<Item = (PermissionPath, Option<&Permission>)> {
        let covering = PermissionPath::covering(name).into_iter();
        covering.map(|path| {
            let by_path = self.by_path.as_ref();
            let permission = by_path.and_then(|by_path| by_path.get(path.as_str()));
            (path, permission)
        })
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::permission::{Actor, Operations};

    fn rules(permissions: &[(&str, Operation)]) -> Rules {
        let permissions = permissions.iter().map(|(path, operation)| Permission {
            id: Uuid::nil(),
            path: PermissionPath::parse(path).unwrap(),
            actor: Actor::parse("someone").unwrap(),
            operations: Operations::of([*operation]).unwrap(),
        });
        Rules::of(permissions.collect())
    }

    #[test]
    fn a_permission_covers_its_name_or_what_is_below_its_path_and_nothing_else() {
        for (path, name, is_allowed) in [
            ("/a/b", "/a/b", true),
            ("/a/b", "/a/b/c", false),
            ("/a/b", "/A/b", false),
            ("/a/*", "/a/b", true),
            ("/a/*", "/a/b/c", true),
            ("/a/*", "/a", false),
            ("/a/*", "/ab", false),
            ("/*", "/a", true),
            ("/*", "/a/*", true),
            ("/a/*", "/a/*", true),
            ("/a/b", "/a/*", false),
        ] {
            let rules = rules(&[(path, Operation::Read)]);
            assert_eq!(
                rules.allow(Operation::Read, name),
                is_allowed,
                "{path} {name}"
            );
        }
    }

    #[test]
    fn an_operation_allows_no_other() {
        for granted in Operation::ALL {
            let rules = rules(&[("/*", granted)]);
            for asked in Operation::ALL {
                assert_eq!(rules.allow(asked, "/a"), asked == granted);
            }
        }
    }

    #[test]
    fn the_nearest_of_those_that_allow_is_told() {
        let rules = rules(&[
            ("/*", Operation::Read),
            ("/a/*", Operation::Read),
            ("/a/b", Operation::Write),
        ]);
        let allowing = |operation| {
            let permission = rules.allowing(operation, "/a/b");
            permission.map(|permission| permission.path.as_str())
        };
        assert_eq!(allowing(Operation::Read), Some("/a/*"));
        assert_eq!(allowing(Operation::Write), Some("/a/b"));
        assert_eq!(allowing(Operation::Delete), None);
    }

    #[test]
    fn permissions_add_up() {
        let rules = rules(&[("/a/*", Operation::Read), ("/a/b", Operation::Delete)]);
        assert!(rules.allow(Operation::Read, "/a/b"));
        assert!(rules.allow(Operation::Delete, "/a/b"));
        assert!(!rules.allow(Operation::Delete, "/a/c"));
        assert!(!rules.allow(Operation::Write, "/a/b"));
    }
}
