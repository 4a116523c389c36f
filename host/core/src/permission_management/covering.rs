//! Listing the permissions that apply to a path, page by page: the permissions on the path itself and on the paths that enclose
//! it.

use super::{Permissions, about_permissions};
use crate::{
    UseCaseError,
    authorization::Caller,
    permission::{Actor, Operation, Permission, PermissionPath},
};

/// A page of the permissions that apply to a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoveringPermissions {
    /// At most [`COVERING_PERMISSIONS_MAX`] permissions: first the permissions on the path itself, then on the enclosing paths,
    /// nearest first. On each path in the order of their actors.
    pub permissions: Vec<Permission>,
    /// The enclosing paths whose permissions the caller may not read, nearest first.
    pub hidden: Vec<PermissionPath>,
    /// The position after which the next page starts; `None` for the last page.
    pub next: Option<ListPosition>,
}

/// A position in the permissions that apply to a path. No permission needs to exist at the position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPosition {
    /// The path of the last permission before the position.
    pub path: PermissionPath,
    /// Its actor.
    pub actor: Actor,
}

impl Permissions {
    /// Returns a page of the permissions that apply to a path. Omits the permissions on enclosing paths on which the caller may
    /// not read permissions. A position on a path that does not cover `path` is the start.
    ///
    /// # Errors
    /// [`UseCaseError::PermissionNotFound`] if the caller may not read the permissions on the path.
    pub async fn covering(
        &self,
        caller: &Caller,
        path: &PermissionPath,
        from: Option<&ListPosition>,
    ) -> Result<CoveringPermissions, UseCaseError> {
        let own = self
            .authorization
            .permissions_covering_all(caller, &[path.lookup()])
            .await?;
        let permit = |path: &PermissionPath| own.permit(caller, Operation::ReadAcl, &path.lookup());
        permit(path).map_err(about_permissions)?;
        let (visible, hidden) = PermissionPath::covering(path.as_str())
            .into_iter()
            .partition::<Vec<_>, _>(|path| own.allow(Operation::ReadAcl, path.as_str()));
        let from = from.and_then(|from| {
            let first = visible.iter().position(|path| *path == from.path)?;
            Some((first, &from.actor))
        });
        let mut page = CoveringPermissions {
            hidden,
            ..CoveringPermissions::default()
        };
        let first = from.map_or(0, |(first, _)| first);
        for (index, path) in visible.iter().enumerate().skip(first) {
            let after = from.filter(|(first, _)| index == *first);
            let after = after.map(|(_, actor)| actor);
            let missing = COVERING_PERMISSIONS_MAX + 1 - page.permissions.len();
            let repository = &self.repository;
            let permissions = repository.on_path_after(path, after, missing).await?;
            let permit = permit(path).map_err(about_permissions)?;
            for permission in permissions {
                if page.permissions.len() == COVERING_PERMISSIONS_MAX {
                    page.next = page.permissions.last().map(ListPosition::of);
                    return Ok(page);
                }
                permit.record_resource(permission.id);
                page.permissions.push(permission);
            }
        }
        Ok(page)
    }
}

impl ListPosition {
    fn of(permission: &Permission) -> Self {
        Self {
            path: permission.path.clone(),
            actor: permission.actor.clone(),
        }
    }
}

/// The maximum number of permissions on a page. Each is one event in the audit trail.
pub const COVERING_PERMISSIONS_MAX: usize = 100;
