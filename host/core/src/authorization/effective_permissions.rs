//! Evaluating permissions.

use std::{collections::HashMap, sync::Arc};

use crate::permission::{Grant, Operation, Permission, PermissionPath};

/// The relevant permissions of one actor. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct EffectivePermissions {
    /// `None` allows everything.
    granted: Option<Arc<Granted>>,
}

/// Permissions, indexed for lookup by a name and its parent paths.
#[derive(Debug, Default)]
struct Granted {
    /// Permissions on a single name, by the name.
    on_name: HashMap<String, Permission>,
    /// Permissions on all names below a path, by the path without its slash and asterisk.
    below: HashMap<String, Permission>,
}

impl EffectivePermissions {
    /// Evaluates the permissions of one actor.
    pub(crate) fn of(permissions: Vec<Permission>) -> Self {
        let mut granted = Granted::default();
        for permission in permissions {
            if let Some(path) = permission.path.enclosing() {
                granted.below.insert(path.to_owned(), permission);
            } else {
                let name = permission.path.as_str().to_owned();
                granted.on_name.insert(name, permission);
            }
        }
        Self {
            granted: Some(Arc::new(granted)),
        }
    }

    /// Returns permissions that allow everything that `self` or `others` allow.
    pub(crate) fn and(&self, others: &Self) -> Self {
        let (Some(granted), Some(others)) = (&self.granted, &others.granted) else {
            return Self::everything();
        };
        let permissions = [granted, others]
            .into_iter()
            .flat_map(|granted| granted.all());
        Self::of(permissions.cloned().collect())
    }

    /// Returns permissions that allow nothing.
    pub(super) fn none() -> Self {
        Self::of(Vec::new())
    }

    /// Returns permissions that allow everything.
    pub(super) fn everything() -> Self {
        Self { granted: None }
    }

    /// Returns whether an operation is allowed on a name, or on the permissions of a path. All decisions go through this function.
    pub(crate) fn allow(&self, operation: Operation, name: &str) -> bool {
        self.granted.is_none() || self.allowing(operation, name).is_some()
    }

    /// Returns whether an operation is allowed on at least one name.
    pub(crate) fn allow_somewhere(&self, operation: Operation) -> bool {
        self.granted.as_ref().is_none_or(|granted| {
            let mut all = granted.all();
            all.any(|permission| permission.operations.contain(operation))
        })
    }

    /// Returns the permission that allows an operation on a name, the most specific if there are several.
    pub(crate) fn allowing(&self, operation: Operation, name: &str) -> Option<&Permission> {
        let granted = self.granted.as_ref()?;
        let below = PermissionPath::enclosing_each(name).map(|path| granted.below.get(path));
        std::iter::once(granted.on_name.get(name))
            .chain(below)
            .flatten()
            .find(|permission| permission.operations.contain(operation))
    }

    /// Returns each path that covers a name, the most specific first, with its permission, if any.
    pub(crate) fn considered(
        &self,
        name: &str,
    ) -> impl Iterator<Item = (PermissionPath, Option<&Permission>)> {
        let covering = PermissionPath::covering(name).into_iter();
        covering.map(|path| {
            let permission = self.granted.as_ref().and_then(|granted| granted.on(&path));
            (path, permission)
        })
    }
}

impl Grant {
    /// Returns whether these permissions of the actor together already allow every operation of the grant.
    #[must_use]
    pub fn is_covered_by(&self, permissions: Vec<Permission>) -> bool {
        let permissions = EffectivePermissions::of(permissions);
        let path = self.path.as_str();
        self.operations
            .iter()
            .all(|operation| permissions.allow(operation, path))
    }
}

impl Granted {
    fn all(&self) -> impl Iterator<Item = &Permission> {
        self.on_name.values().chain(self.below.values())
    }

    fn on(&self, path: &PermissionPath) -> Option<&Permission> {
        match path.enclosing() {
            Some(path) => self.below.get(path),
            None => self.on_name.get(path.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use crate::permission::{Actor, Operations};

    use super::*;

    fn effective(permissions: &[(&str, Operation)]) -> EffectivePermissions {
        let permissions = permissions.iter().map(|(path, operation)| Permission {
            id: Uuid::nil(),
            path: PermissionPath::parse(path).unwrap(),
            actor: Actor::parse("someone").unwrap(),
            operations: Operations::of([*operation]).unwrap(),
        });
        EffectivePermissions::of(permissions.collect())
    }

    #[test]
    fn a_permission_covers_only_its_name_or_names_below_its_path() {
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
            let effective = effective(&[(path, Operation::Read)]);
            assert_eq!(
                effective.allow(Operation::Read, name),
                is_allowed,
                "{path} {name}"
            );
        }
    }

    #[test]
    fn a_permission_allows_only_its_operations() {
        for granted in Operation::ALL {
            let effective = effective(&[("/*", granted)]);
            for requested in Operation::ALL {
                assert_eq!(effective.allow(requested, "/a"), requested == granted);
            }
        }
    }

    #[test]
    fn the_most_specific_allowing_permission_is_returned() {
        let effective = effective(&[
            ("/*", Operation::Read),
            ("/a/*", Operation::Read),
            ("/a/b", Operation::Write),
        ]);
        let allowing = |operation| {
            let permission = effective.allowing(operation, "/a/b");
            permission.map(|permission| permission.path.as_str())
        };
        assert_eq!(allowing(Operation::Read), Some("/a/*"));
        assert_eq!(allowing(Operation::Write), Some("/a/b"));
        assert_eq!(allowing(Operation::Delete), None);
    }

    #[test]
    fn considered_permissions_include_the_allowing_permission() {
        let effective = effective(&[("/*", Operation::Read), ("/a/b", Operation::Write)]);
        for name in ["/a/b", "/a/*", "/a", "/*"] {
            let considered: Vec<_> = effective.considered(name).collect();
            let covering: Vec<_> = considered.iter().map(|(path, _)| path.clone()).collect();
            assert_eq!(covering, PermissionPath::covering(name), "{name}");
            for operation in Operation::ALL {
                let mut found = considered.iter().filter_map(|(_, permission)| *permission);
                let allowing = found.find(|permission| permission.operations.contain(operation));
                assert_eq!(effective.allowing(operation, name), allowing, "{name}");
            }
        }
    }

    #[test]
    fn an_operation_without_a_permission_is_allowed_nowhere() {
        for path in ["/a", "/a/*"] {
            let effective = effective(&[(path, Operation::Read)]);
            for operation in Operation::ALL {
                let is_allowed = operation == Operation::Read;
                assert_eq!(effective.allow_somewhere(operation), is_allowed, "{path}");
            }
        }
        assert!(!EffectivePermissions::of(Vec::new()).allow_somewhere(Operation::Read));
        assert!(EffectivePermissions::everything().allow_somewhere(Operation::Read));
    }

    #[test]
    fn permissions_add_up() {
        let effective = effective(&[("/a/*", Operation::Read), ("/a/b", Operation::Delete)]);
        assert!(effective.allow(Operation::Read, "/a/b"));
        assert!(effective.allow(Operation::Delete, "/a/b"));
        assert!(!effective.allow(Operation::Delete, "/a/c"));
        assert!(!effective.allow(Operation::Write, "/a/b"));
    }
}
