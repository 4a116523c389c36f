//! Permits, the proof of authorization, and the permissions of one actor, which grant them.

use std::{collections::BTreeMap, iter, sync::Arc};

use uuid::Uuid;

use super::caller::{AccessedResource, Caller, Position, Trail};
use crate::{
    UseCaseError,
    credential::{AFTER_SLASH, CredentialName, LookupName, after_name},
    permission::{Grant, Operation, Permission, PermissionPath},
};

/// Proof that a caller may perform one operation on one credential, or on its permissions. Only `authorization` creates
/// permits, and only returns them after the permissions of the caller have allowed the operation.
#[derive(Debug)]
pub struct Permit<'a> {
    trail: &'a Trail,
    position: Position,
    operation: Operation,
    name: LookupName,
    /// The stored name, if its casing differs and the operation was also allowed on it.
    stored_name: Option<LookupName>,
    /// The permissions that allow the operation. They also apply to the name in its stored casing.
    permissions: EffectivePermissions,
    /// Whether versions may be decrypted before they are deleted.
    may_open_deleted: bool,
}

impl<'a> Permit<'a> {
    /// Records the requested operation in the trail. The result permits nothing until it is granted.
    pub(super) fn request(caller: &'a Caller, operation: Operation, name: &LookupName) -> Self {
        Self::on(
            caller.trail(),
            operation,
            name,
            EffectivePermissions::none(),
        )
    }

    /// Returns the permit if these permissions allow its operation on a name. All permits are granted here or by [`Permit::by`].
    ///
    /// # Errors
    /// [`UseCaseError::WriteNotPermitted`] if the caller may not write, [`UseCaseError::NotFound`] for all other operations.
    pub(super) fn granted_if_allowed(
        self,
        permissions: &EffectivePermissions,
        name: &str,
    ) -> Result<Self, UseCaseError> {
        self.check(permissions, name)?;
        Ok(self.by(permissions))
    }

    /// Checks that these permissions allow the operation on a name, unless the caller needs no permission on it.
    pub(super) fn check(
        &self,
        permissions: &EffectivePermissions,
        name: &str,
    ) -> Result<(), UseCaseError> {
        if self.permissions.allow_everything() || permissions.allow(self.operation, name) {
            return Ok(());
        }
        Err(match self.operation {
            Operation::Write => UseCaseError::WriteNotPermitted,
            Operation::Read | Operation::Delete | Operation::ReadAcl | Operation::WriteAcl => {
                UseCaseError::NotFound
            }
        })
    }

    /// Returns the permit with these permissions, which allow the operation.
    pub(super) fn by(self, permissions: &EffectivePermissions) -> Self {
        Self {
            permissions: permissions.clone(),
            ..self
        }
    }

    /// Returns the permit with the stored name, in another casing, on which the operation was also allowed.
    pub(super) fn also_on(self, stored: &CredentialName) -> Self {
        Self {
            stored_name: Some(stored.lookup()),
            ..self
        }
    }

    /// Returns the casings of the name on which the operation was allowed.
    pub(super) fn names(&self) -> impl Iterator<Item = &LookupName> {
        iter::once(&self.name).chain(&self.stored_name)
    }

    /// Returns the name of the credential, as requested.
    pub(crate) fn name(&self) -> &LookupName {
        &self.name
    }

    /// Returns whether versions of this credential may be decrypted: the permit must be for this credential and for reading,
    /// for writing, or for deleting with [`Permit::with_decryption`].
    pub(crate) fn opens(&self, name: &CredentialName) -> bool {
        let may_open = match self.operation {
            Operation::Read | Operation::Write => true,
            Operation::Delete => self.may_open_deleted,
            Operation::ReadAcl | Operation::WriteAcl => false,
        };
        may_open && self.covers(name)
    }

    /// Returns whether a version of this credential may be encrypted: the permit must be for writing this credential.
    pub(crate) fn seals(&self, name: &CredentialName) -> bool {
        self.operation == Operation::Write && self.covers(name)
    }

    /// Returns the permit to delete with decryption allowed, because the response contains the deleted version and dependent
    /// versions are regenerated. Has no effect on permits for other operations.
    pub(crate) fn with_decryption(self) -> Self {
        Self {
            may_open_deleted: true,
            ..self
        }
    }

    /// Returns a permit on another credential, which the server itself must read or write to perform the permitted
    /// operation. The caller needs no permission on it. Review every call.
    pub(crate) fn extended_to(&self, operation: Operation, name: &LookupName) -> Self {
        Self::on(
            self.trail,
            operation,
            name,
            EffectivePermissions::everything(),
        )
    }

    pub(crate) fn record_version(&self, credential_id: Uuid, version_id: Uuid) {
        self.trail
            .identify(self.position, credential_id, Some(version_id));
    }

    /// Records in the trail that the response contains the value of an existing version although this permit is not for
    /// reading.
    pub(crate) fn record_disclosure(&self, credential_id: Uuid, version_id: Uuid) {
        self.trail
            .disclose(self.position, credential_id, version_id);
    }

    /// Records the changed permission in the trail, with its actor and operations.
    pub(crate) fn record_permission(&self, permission: &Permission) {
        self.trail.identify_permission(self.position, permission);
    }

    /// Records the id of the credential or the permission in the trail.
    pub(crate) fn record_resource(&self, resource_id: Uuid) {
        self.trail.identify(self.position, resource_id, None);
    }

    fn on(
        trail: &'a Trail,
        operation: Operation,
        name: &LookupName,
        permissions: EffectivePermissions,
    ) -> Self {
        let position = trail.push(AccessedResource::new(operation, name.requested()));
        Self {
            trail,
            position,
            operation,
            name: name.clone(),
            stored_name: None,
            permissions,
            may_open_deleted: false,
        }
    }

    /// Returns whether the permit is for this credential, and the permissions also allow the operation on this casing of its
    /// name. Check everything that was read by the permitted name: another writer may have recreated the credential in another
    /// casing.
    pub(crate) fn covers(&self, name: &CredentialName) -> bool {
        self.name.is(name) && self.permissions.allow(self.operation, name.as_str())
    }
}

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

    /// Like [`super::Authorization::permit`], but with these permissions, which must be the caller's.
    pub(crate) fn permit<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        name: &LookupName,
    ) -> Result<Permit<'a>, UseCaseError> {
        Permit::request(caller, operation, name).granted_if_allowed(self, name.requested())
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
        iter::once(granted.on_name.get(name))
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
mod tests;
