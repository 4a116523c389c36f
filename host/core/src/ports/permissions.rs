//! Permissions in a database.

use async_trait::async_trait;
use uuid::Uuid;

use crate::{
    credential::{CredentialName, LookupName},
    permission::{Actor, Grant, Operations, Permission, PermissionPath},
    ports::RepositoryFailure,
};

/// Permissions in a database. There is at most one for an actor on a path.
#[async_trait]
pub trait PermissionRepository: Send + Sync {
    /// The permissions of an actor on any of these paths, in no order, by one query.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn of_actor_on(
        &self,
        actor: &Actor,
        paths: &[PermissionPath],
    ) -> Result<Vec<Permission>, RepositoryFailure>;

    /// As [`PermissionRepository::of_actor_on`], with the name of a credential as it is stored, by the same query. Without
    /// any such permission, the name may be missing although there is such a credential.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn of_actor_on_name(
        &self,
        actor: &Actor,
        paths: &[PermissionPath],
        name: &LookupName,
    ) -> Result<(Vec<Permission>, Option<CredentialName>), RepositoryFailure>;

    /// All permissions of an actor, in no order.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn of_actor(&self, actor: &Actor) -> Result<Vec<Permission>, RepositoryFailure>;

    /// Makes sure that each of these is there, all in one transaction: adds the permission, or its operations to those
    /// that the actor has on the path already.
    ///
    /// # Errors
    /// When the database can't answer; then nothing was changed, unless the answer to the commit was lost.
    async fn grant(&self, grants: &[Grant]) -> Result<(), RepositoryFailure>;

    /// Does what [`PermissionRepository::grant`] does, unless one of the actors may do all that it is to be granted already,
    /// by permissions on that path or on one that encloses it. Looks and changes in one transaction, and returns the
    /// permissions as they are then, in the order of the grants; none when nothing was changed.
    ///
    /// # Errors
    /// When the database can't answer; then nothing was changed, unless the answer to the commit was lost.
    async fn grant_uncovered(
        &self,
        grants: &[Grant],
    ) -> Result<Option<Vec<Permission>>, RepositoryFailure>;

    /// The permission with this id, if there is one.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn by_id(&self, id: Uuid) -> Result<Option<Permission>, RepositoryFailure>;

    /// The permissions on exactly this path, in the order in which they were added.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn on_path(&self, path: &PermissionPath) -> Result<Vec<Permission>, RepositoryFailure>;

    /// Adds a permission; none when the actor has one on the path already, which stays as it is.
    ///
    /// # Errors
    /// When the database can't answer; then nothing was added, unless the answer to the commit was lost.
    async fn add(&self, grant: &Grant) -> Result<Option<Permission>, RepositoryFailure>;

    /// Gives the permission with this id these operations in the place of those that it has, and returns it as it is then;
    /// none when there is none.
    ///
    /// # Errors
    /// When the database can't answer; then nothing was changed, unless the answer to the commit was lost.
    async fn replace_operations(
        &self,
        id: Uuid,
        operations: Operations,
    ) -> Result<Option<Permission>, RepositoryFailure>;

    /// Deletes the permission with this id and returns it; none when there is none.
    ///
    /// # Errors
    /// When the database can't answer; then nothing was deleted, unless the answer to the commit was lost.
    async fn delete(&self, id: Uuid) -> Result<Option<Permission>, RepositoryFailure>;

    /// Deletes the permission that an actor has on exactly this path and returns it; none when there is none.
    ///
    /// # Errors
    /// When the database can't answer; then nothing was deleted, unless the answer to the commit was lost.
    async fn delete_of_actor_on(
        &self,
        actor: &Actor,
        path: &PermissionPath,
    ) -> Result<Option<Permission>, RepositoryFailure>;
}
