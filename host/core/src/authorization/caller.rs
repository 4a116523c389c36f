//! The caller of a request, its permissions, and the resources that the request accessed, for the audit trail.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    UseCaseError,
    credential::{AFTER_SLASH, after_name},
    permission::{Actor, Grant, Operation, Operations, Permission, PermissionPath},
    response_memory::ResponseReservation,
};

/// The authenticated caller of a request.
#[derive(Debug)]
pub struct Caller {
    actor: Actor,
    authentication: Authentication,
    trail: Trail,
    response: Option<Arc<ResponseReservation>>,
    /// The memory reserved for the caller's permissions, in bytes.
    permissions_bytes: AtomicUsize,
    /// The memory reserved for parsed parameters, in bytes.
    parameters_bytes: AtomicUsize,
}

/// The means by which a caller was authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// A client certificate.
    ClientCertificate {
        /// The part of the certificate's subject that identifies the application: `app:<id>`.
        subject: String,
    },
    /// A bearer token.
    Token {
        /// The token's subject, as issued by the identity provider.
        subject: String,
    },
}

impl Caller {
    /// Creates the caller of a new request.
    pub fn new(actor: Actor, authentication: Authentication) -> Self {
        Self {
            actor,
            authentication,
            trail: Trail::default(),
            response: None,
            permissions_bytes: AtomicUsize::new(0),
            parameters_bytes: AtomicUsize::new(0),
        }
    }

    /// Sets the memory reservation of the response. Without one, its memory is not limited.
    pub fn with_response(self, response: Arc<ResponseReservation>) -> Self {
        Self {
            response: Some(response),
            ..self
        }
    }

    /// Reserves more bytes of memory for the response, before the data is read.
    ///
    /// # Errors
    /// [`UseCaseError::ResponseTooLarge`]; or [`UseCaseError::NoResponseMemory`] or [`UseCaseError::NoResponseMemoryOfActor`] if other
    /// responses currently use too much memory.
    pub fn reserve(&self, bytes: usize) -> Result<(), UseCaseError> {
        match &self.response {
            Some(response) => response.reserve(bytes),
            None => Ok(()),
        }
    }

    /// Reserves memory for all permissions of the caller. A request may read them several times, but holds them once.
    ///
    /// # Errors
    /// Like [`Caller::reserve`].
    pub(super) fn reserve_permissions(&self, bytes: usize) -> Result<(), UseCaseError> {
        self.reserve_once(&self.permissions_bytes, bytes)
    }

    /// Reserves memory for the parsed parameters that the request holds while it waits for a plugin. A request may parse them
    /// several times, but holds them once.
    ///
    /// # Errors
    /// Like [`Caller::reserve`].
    pub(crate) fn reserve_parameters(&self, bytes: usize) -> Result<(), UseCaseError> {
        self.reserve_once(&self.parameters_bytes, bytes)
    }

    fn reserve_once(&self, reserved: &AtomicUsize, bytes: usize) -> Result<(), UseCaseError> {
        let reserved = reserved.fetch_max(bytes, Ordering::Relaxed);
        self.reserve(bytes.saturating_sub(reserved))
    }

    /// Returns the caller as an actor of permissions.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Returns the means of authentication.
    pub fn authentication(&self) -> &Authentication {
        &self.authentication
    }

    /// Returns the audit trail of the request.
    pub fn trail(&self) -> &Trail {
        &self.trail
    }
}

/// The resources that a request accessed or tried to access, in order.
#[derive(Debug, Default)]
pub struct Trail {
    entries: Mutex<Entries>,
    account: Mutex<Account>,
}

/// Audit data of a request as a whole. Never a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// The requested action, if the request's path does not determine it.
    pub action: Option<&'static str>,
    /// Further details of the request.
    pub details: Option<Value>,
}

/// A resource that a request accessed or tried to access. Never a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessedResource {
    /// The requested operation.
    pub operation: Operation,
    /// The requested name of the credential, or the path of the permission. Empty if the request has only an unknown id.
    pub name: String,
    /// The id of the credential or the permission, once it is found, or the unknown id in the request.
    pub resource_id: Option<Uuid>,
    /// The id of the credential's version, once it is found, or the unknown id in the request.
    pub version_id: Option<Uuid>,
    /// The actor and the operations of a permission to change.
    pub granted: Option<Granted>,
    /// Whether the response contained the value of this version, although the operation is not `read` and the version was stored
    /// before the request.
    pub is_value_disclosed: bool,
}

impl AccessedResource {
    pub(super) fn new(operation: Operation, name: &str) -> Self {
        Self {
            operation,
            name: name.to_owned(),
            resource_id: None,
            version_id: None,
            granted: None,
            is_value_disclosed: false,
        }
    }
}

/// The actor and the operations of a permission. Changing several permissions on one path records each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The actor.
    pub actor: Actor,
    /// The requested or revoked operations; `None` if unknown.
    pub operations: Option<Operations>,
}

/// The accessed resources, with indexes, because a document to interpolate may refer to thousands of credentials. Most requests
/// access a few, for which hashing costs more than comparing.
#[derive(Debug, Default)]
struct Entries {
    accessed: Vec<AccessedResource>,
    /// The first position of each operation on each name.
    positions: BTreeMap<(&'static str, String), Position>,
    /// The known ids of the resources at a position.
    identified: BTreeSet<(Position, Uuid, Option<Uuid>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position(usize);

impl Trail {
    /// Locks the trail and returns the resources accessed so far.
    pub fn accessed(&self) -> impl Deref<Target = [AccessedResource]> {
        MutexGuard::map(self.entries.lock(), |entries| {
            entries.accessed.as_mut_slice()
        })
    }

    /// Returns the audit data of the request as a whole.
    pub fn account(&self) -> Account {
        self.account.lock().clone()
    }

    /// Records the requested action, if the request's path does not determine it.
    pub fn set_action(&self, action: &'static str) {
        self.account.lock().action = Some(action);
    }

    /// Records further details of the request. They must never contain a value.
    pub fn set_details(&self, details: Value) {
        self.account.lock().details = Some(details);
    }

    /// Adds a resource unless the trail already contains this operation on this name. Returns its position.
    pub(super) fn push(&self, accessed: AccessedResource) -> Position {
        let mut entries = self.entries.lock();
        let next = Position(entries.accessed.len());
        let key = (accessed.operation.as_str(), accessed.name.clone());
        let position = *entries.positions.entry(key).or_insert(next);
        if position == next {
            entries.accessed.push(accessed);
        }
        position
    }

    /// Records the id of the resource at a position. If it already has another id, adds another resource of the same name.
    pub(super) fn identify(&self, position: Position, resource_id: Uuid, version_id: Option<Uuid>) {
        let mut entries = self.entries.lock();
        if !entries
            .identified
            .insert((position, resource_id, version_id))
        {
            return;
        }
        let Some(entry) = entries.accessed.get_mut(position.0) else {
            return;
        };
        let identified = AccessedResource {
            resource_id: Some(resource_id),
            version_id,
            ..entry.clone()
        };
        if entry.resource_id.is_none() {
            *entry = identified;
        } else {
            entries.accessed.push(identified);
        }
    }

    /// Records that the response contains the value of an existing version, although the request accessed it for an operation
    /// other than `read`.
    pub fn disclose(&self, version_id: Uuid) {
        let mut entries = self.entries.lock();
        let is_disclosed = |entry: &&mut AccessedResource| {
            entry.operation != Operation::Read && entry.version_id == Some(version_id)
        };
        for entry in entries.accessed.iter_mut().filter(is_disclosed) {
            entry.is_value_disclosed = true;
        }
    }

    /// Records a requested change of a permission before the caller is authorized, so that refused attempts are recorded
    /// completely. Each permission in a request gets its own entry.
    pub(crate) fn record_change_request(&self, path: &PermissionPath, granted: Granted) {
        let mut entries = self.entries.lock();
        let next = Position(entries.accessed.len());
        let lookup = path.lookup();
        let accessed = AccessedResource::new(Operation::WriteAcl, lookup.requested());
        let key = (accessed.operation.as_str(), accessed.name.clone());
        entries.positions.entry(key).or_insert(next);
        entries.accessed.push(AccessedResource {
            granted: Some(granted),
            ..accessed
        });
    }

    /// Records the id of a changed permission in the entries for its actor, or in the entry at this position if the actor has
    /// no entry. A request changes permissions on one path only.
    pub(super) fn identify_permission(&self, position: Position, permission: &Permission) {
        let mut entries = self.entries.lock();
        let of_actor = |entry: &&mut AccessedResource| {
            let granted = entry.granted.as_ref();
            granted.is_some_and(|granted| granted.actor == permission.actor)
        };
        let mut is_recorded = false;
        for entry in entries.accessed.iter_mut().filter(of_actor) {
            entry.resource_id = Some(permission.id);
            if let Some(granted) = &mut entry.granted {
                granted.operations.get_or_insert(permission.operations);
            }
            is_recorded = true;
        }
        if let (false, Some(entry)) = (is_recorded, entries.accessed.get_mut(position.0)) {
            entry.resource_id = Some(permission.id);
            entry.granted = Some(Granted {
                actor: permission.actor.clone(),
                operations: Some(permission.operations),
            });
        }
    }
}

/// The relevant permissions of one actor. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct EffectivePermissions {
    /// `None` allows everything.
    granted: Option<Arc<IndexedPermissions>>,
}

/// Permissions, indexed for lookup by a name and its parent paths. Most requests have a few, for which hashing costs more than
/// comparing.
#[derive(Debug, Default)]
struct IndexedPermissions {
    /// Permissions on a single name, by the name.
    on_name: BTreeMap<String, Permission>,
    /// Permissions on all names below a path, by the path without its slash and asterisk.
    below: BTreeMap<String, Permission>,
}

/// The permissions of one actor, which are read one by one: others may have granted the actor any number of them.
#[derive(Default)]
pub(super) struct PermissionsBeingRead {
    granted: IndexedPermissions,
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
            granted: Some(Arc::new(IndexedPermissions::of(permissions))),
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
    pub(crate) fn none() -> Self {
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

    /// Returns whether reading is allowed on at least one name.
    pub(crate) fn allow_reading(&self) -> bool {
        self.granted.as_ref().is_none_or(|granted| {
            let mut all = granted.all();
            all.any(|permission| permission.operations.contain(Operation::Read))
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
        let whole = range_below(prefix.strip_suffix('/').unwrap_or(prefix));
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

impl IndexedPermissions {
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
    use super::*;

    #[test]
    fn a_resource_is_recorded_once_per_operation_and_version() {
        let trail = Trail::default();
        let id = Uuid::from_u128;
        let read = trail.push(AccessedResource::new(Operation::Read, "/a"));
        trail.push(AccessedResource::new(Operation::Write, "/a"));
        let read_again = trail.push(AccessedResource::new(Operation::Read, "/a"));
        for position in [read, read_again] {
            trail.identify(position, id(1), Some(id(2)));
            trail.identify(position, id(1), Some(id(3)));
        }
        let seen: Vec<_> = trail
            .accessed()
            .iter()
            .map(|accessed| (accessed.operation, accessed.version_id))
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
    fn a_disclosed_value_is_recorded_only_with_its_version() {
        let trail = Trail::default();
        let id = Uuid::from_u128;
        let write = trail.push(AccessedResource::new(Operation::Write, "/a"));
        let read = trail.push(AccessedResource::new(Operation::Read, "/a"));
        trail.identify(read, id(1), Some(id(3)));
        trail.identify(write, id(1), Some(id(2)));
        trail.identify(write, id(1), Some(id(3)));
        trail.disclose(id(3));
        let seen: Vec<_> = trail
            .accessed()
            .iter()
            .map(|accessed| {
                (
                    accessed.operation,
                    accessed.version_id,
                    accessed.is_value_disclosed,
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
}
