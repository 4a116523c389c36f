//! Stored permissions.

use async_trait::async_trait;
use uuid::Uuid;

use crate::{
    credential::{CredentialName, LookupName},
    permission::{Actor, Grant, Operations, Permission, PermissionPath},
    ports::{Receive, RepositoryError},
};

/// Stored permissions. An actor has at most one permission on a path.
///
/// If a method that writes fails, it has written nothing, unless the commit succeeded and its response was lost.
#[async_trait]
pub trait PermissionRepository: Send + Sync {
    /// Returns the permissions of an actor on any of these paths, in no particular order, with one query.
    async fn of_actor_on(
        &self,
        actor: &Actor,
        paths: &[PermissionPath],
    ) -> Result<Vec<Permission>, RepositoryError>;

    /// Like [`PermissionRepository::of_actor_on`], and also returns the stored name of a credential with the same query. If
    /// there is no such permission, the name may be `None` even if the credential exists.
    async fn of_actor_on_name(
        &self,
        actor: &Actor,
        paths: &[PermissionPath],
        name: &LookupName,
    ) -> Result<(Vec<Permission>, Option<CredentialName>), RepositoryError>;

    /// Passes all permissions of an actor to the receiver until there are no more or the receiver stops. Permissions usually follow
    /// the permissions on their enclosing paths.
    async fn of_actor(
        &self,
        actor: &Actor,
        receive: Receive<'_, Permission>,
    ) -> Result<(), RepositoryError>;

    /// Adds each of these permissions, or adds its operations to the actor's existing permission on the path, in one
    /// transaction.
    async fn grant(&self, grants: &[Grant]) -> Result<(), RepositoryError>;

    /// Like [`PermissionRepository::grant`], but changes nothing if the existing permissions of one of the actors already
    /// cover this actor's grant. Permissions on enclosing paths count, too. The check and the change are one transaction. Returns the
    /// resulting permissions in the order of the grants, or the first such actor if nothing was changed. Each caller
    /// adds one long list at a time.
    async fn grant_uncovered(
        &self,
        caller: &Actor,
        grants: &[Grant],
    ) -> Result<Result<Vec<Permission>, Actor>, RepositoryError>;

    /// Returns the permission with this id, or `None`.
    async fn by_id(&self, id: Uuid) -> Result<Option<Permission>, RepositoryError>;

    /// Returns the first `count_max` permissions on exactly this path, in the order in which they were added.
    async fn on_path(
        &self,
        path: &PermissionPath,
        count_max: usize,
    ) -> Result<Vec<Permission>, RepositoryError>;

    /// Returns the first `count_max` permissions on exactly this path whose actors come after an actor, or the first of all, in the
    /// order of their actors.
    async fn on_path_after(
        &self,
        path: &PermissionPath,
        after: Option<&Actor>,
        count_max: usize,
    ) -> Result<Vec<Permission>, RepositoryError>;

    /// Adds a permission. Returns `None` and changes nothing if the actor already has a permission on the path.
    async fn add(&self, grant: &Grant) -> Result<Option<Permission>, RepositoryError>;

    /// Replaces the operations of the permission with this id. Returns the changed permission, or `None` if it does not
    /// exist.
    async fn replace_operations(
        &self,
        id: Uuid,
        operations: Operations,
    ) -> Result<Option<Permission>, RepositoryError>;

    /// Deletes the permission with this id. Returns it, or `None` if it does not exist.
    async fn delete(&self, id: Uuid) -> Result<Option<Permission>, RepositoryError>;

    /// Deletes the permission of an actor on exactly this path. Returns it, or `None` if it does not exist.
    async fn delete_of_actor_on(
        &self,
        actor: &Actor,
        path: &PermissionPath,
    ) -> Result<Option<Permission>, RepositoryError>;
}
