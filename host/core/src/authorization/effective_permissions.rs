//! The permissions of one actor, evaluated for names and paths.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    credential::{AFTER_SLASH, after_name},
    permission::{Grant, Operation, Permission, PermissionPath},
};

/// The relevant permissions of one actor. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct EffectivePermissions {
    /// `None` allows everything.
    granted: Option<Arc<Granted>>,
}

/// Permissions, indexed for lookup by a name and its parent paths. Most requests have a few, for which hashing costs more than
/// comparing.
#[derive(Debug, Default)]
struct Granted {
    /// Permissions on a single name, by the name.
    on_name: BTreeMap<String, Permission>,
    /// Permissions on all names below a path, by the path without its slash and asterisk.
    below: BTreeMap<String, Permission>,
}

/// The permissions of one actor, which are read one by one: others may have granted the actor any number of them.
#[derive(Default)]
pub(super) struct PermissionsBeingRead {
    granted: Granted,
    bytes: usize,
}

impl PermissionsBeingRead {
    /// Adds a permission, unless a permission on an enclosing path that was added before allows as much. Returns the approximate
    /// memory of all permissions, in bytes: of each, its path twice, and its actor.
    pub(super) fn add(&mut self, permission: Permission) -> usize {
        if !self.granted.covers(&permission) {
            let texts = 2 * permission.path.as_str().len() + permission.actor.as_str().len();
            self.bytes += PERMISSION_FRAME_BYTES + texts;
            self.granted.insert(permission);
        }
        self.bytes
    }

    pub(super) fn finish(self) -> EffectivePermissions {
        EffectivePermissions {
            granted: Some(Arc::new(self.granted)),
        }
    }
}

impl EffectivePermissions {
    /// Evaluates the permissions of one actor.
    pub(crate) fn of(permissions: Vec<Permission>) -> Self {
        Self {
            granted: Some(Arc::new(Granted::of(permissions))),
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

    pub(super) fn allow_everything(&self) -> bool {
        self.granted.is_none()
    }

    /// Returns whether an operation is allowed on a name, or on the permissions of a path. All decisions go through this function.
    pub(crate) fn allow(&self, operation: Operation, name: &str) -> bool {
        self.allow_everything() || self.allowing(operation, name).is_some()
    }

    /// Returns whether everything that `others` allow is allowed.
    pub(crate) fn include(&self, others: &Self) -> bool {
        let Some(others) = &others.granted else {
            return self.allow_everything();
        };
        others.all().all(|permission| {
            let mut operations = permission.operations.iter();
            operations.all(|operation| self.allow(operation, permission.path.as_str()))
        })
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

    /// Returns the ranges of names in lower case on which an operation may be allowed and that begin with a prefix, which ends
    /// with a slash. Each range excludes its second bound. The ranges are in order and don't overlap. Permissions distinguish
    /// case, so each name of a range must still be checked.
    pub(crate) fn ranges(&self, operation: Operation, prefix: &str) -> Vec<(String, String)> {
        let whole = range_below(prefix.trim_end_matches('/'));
        let Some(granted) = &self.granted else {
            return vec![whole];
        };
        let mut ranges: Vec<(String, String)> = Vec::new();
        for permission in granted.all() {
            if !permission.operations.contain(operation) {
                continue;
            }
            let (from, before) = permission.path.enclosing().map_or_else(
                || range_of(permission.path.as_str().to_ascii_lowercase()),
                |path| range_below(&path.to_ascii_lowercase()),
            );
            let range = (from.max(whole.0.clone()), before.min(whole.1.clone()));
            if range.0 < range.1 {
                ranges.push(range);
            }
        }
        ranges.sort();
        let mut merged: Vec<(String, String)> = Vec::new();
        for (from, before) in ranges {
            match merged.last_mut() {
                Some(last) if from <= last.1 => last.1 = before.max(last.1.clone()),
                _ => merged.push((from, before)),
            }
        }
        merged
    }

    /// Returns the paths on which an operation is allowed, in alphabetical order, without paths that another one of them covers.
    pub(crate) fn outermost(&self, operation: Operation) -> Vec<PermissionPath> {
        let Some(granted) = &self.granted else {
            return vec![PermissionPath::everything()];
        };
        let allows = |permission: &&Permission| permission.operations.contain(operation);
        let paths = granted.all().filter(allows).map(|granted| &granted.path);
        let is_outermost = |path: &&PermissionPath| {
            let covering = PermissionPath::covering(path.as_str());
            let mut others = covering.iter().filter(|covering| covering != path);
            !others.any(|path| granted.on(path).as_ref().is_some_and(allows))
        };
        let mut outermost: Vec<_> = paths.filter(is_outermost).cloned().collect();
        outermost.sort_by(|one, other| one.as_str().cmp(other.as_str()));
        outermost
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
    pub fn is_covered_by(&self, permissions: Vec<Permission>) -> bool {
        let permissions = EffectivePermissions::of(permissions);
        let path = self.path.as_str();
        self.operations
            .iter()
            .all(|operation| permissions.allow(operation, path))
    }
}

impl Granted {
    fn of(permissions: Vec<Permission>) -> Self {
        let mut granted = Self::default();
        for permission in permissions {
            granted.insert(permission);
        }
        granted
    }

    fn insert(&mut self, permission: Permission) {
        if let Some(path) = permission.path.enclosing() {
            self.below.insert(path.to_owned(), permission);
        } else {
            let name = permission.path.as_str().to_owned();
            self.on_name.insert(name, permission);
        }
    }

    /// Returns whether a permission on an enclosing path allows all operations of this permission.
    fn covers(&self, permission: &Permission) -> bool {
        let enclosing = PermissionPath::enclosing_each(permission.path.as_str());
        let mut others = enclosing.filter_map(|path| self.below.get(path));
        others.any(|other| other.operations.union(permission.operations) == other.operations)
    }

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

/// The memory of a permission without its texts, in bytes.
const PERMISSION_FRAME_BYTES: usize = 150;

/// Returns the range that only contains this name in lower case.
fn range_of(folded: String) -> (String, String) {
    let before = after_name(&folded);
    (folded, before)
}

/// Returns the range of the names below a path without its last slash.
fn range_below(path: &str) -> (String, String) {
    (format!("{path}/"), format!("{path}{AFTER_SLASH}"))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::permission::{Actor, Operations};

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
    fn outermost_paths_cover_all_others_and_none_is_covered() {
        use Operation::{Read, Write};
        for (permissions, outermost) in [
            (&[][..], &[][..]),
            (&[("/*", Read), ("/a", Read), ("/a/*", Read)], &["/*"]),
            (
                &[("/*", Write), ("/b", Read), ("/a/*", Read)],
                &["/a/*", "/b"],
            ),
            (&[("/a/*", Read), ("/a", Read)], &["/a", "/a/*"]),
            (
                &[("/a/*", Read), ("/a/b/*", Read), ("/a/b/c", Read)],
                &["/a/*"],
            ),
            (&[("/a/*", Read), ("/A/b", Read)], &["/A/b", "/a/*"]),
        ] {
            let found = effective(permissions).outermost(Read);
            let found: Vec<_> = found.iter().map(PermissionPath::as_str).collect();
            assert_eq!(found, outermost);
        }
        let everything = EffectivePermissions::everything().outermost(Read);
        assert_eq!(everything, [PermissionPath::everything()]);
    }

    #[test]
    fn permissions_include_those_that_they_cover() {
        use Operation::{Read, Write};
        let some = effective(&[("/a/*", Read), ("/b", Write)]);
        for (others, is_included) in [
            (&[][..], true),
            (&[("/a/*", Read), ("/a/b/*", Read), ("/b", Write)], true),
            (&[("/a/*", Write)], false),
            (&[("/b/*", Write)], false),
        ] {
            assert_eq!(some.include(&effective(others)), is_included, "{others:?}");
        }
        let everything = EffectivePermissions::everything();
        assert!(everything.include(&some) && everything.include(&everything));
        assert!(!some.include(&everything));
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
    fn permissions_on_covered_paths_cost_no_memory() {
        use Operation::{Delete, Read, Write};
        let granted = |permissions: &[(&str, &[Operation])]| {
            let permissions = permissions.iter().map(|(path, operations)| Permission {
                id: Uuid::nil(),
                path: PermissionPath::parse(path).unwrap(),
                actor: Actor::parse("a").unwrap(),
                operations: Operations::of(operations.iter().copied()).unwrap(),
            });
            let mut read = PermissionsBeingRead::default();
            let bytes = permissions.map(|permission| read.add(permission)).last();
            (read.finish(), bytes)
        };
        let (read, both) = (&[Read][..], &[Read, Write][..]);
        let (kept, kept_bytes) = granted(&[("/a/*", both), ("/b", both), ("/a/d/*", &[Delete])]);
        let (all, all_bytes) = granted(&[
            ("/a/*", both),
            ("/a/b", read),
            ("/a/b/*", both),
            ("/a/b/c/*", read),
            ("/a/d/*", &[Delete]),
            ("/b", both),
        ]);
        assert_eq!(all_bytes, kept_bytes);
        for name in ["/a/b", "/a/b/c", "/a/d/e", "/b"] {
            for operation in Operation::ALL {
                let allows = kept.allow(operation, name);
                assert_eq!(all.allow(operation, name), allows, "{operation} {name}");
            }
        }
    }
}
