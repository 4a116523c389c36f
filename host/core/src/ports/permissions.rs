//! Permissions in a database.

use async_trait::async_trait;

use crate::{
    permission::{Actor, Grant, Permission, PermissionPath},
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

    /// All permissions of an actor, in no order.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn of_actor(&self, actor: &Actor) -> Result<Vec<Permission>, RepositoryFailure>;

    /// Makes sure that each of these is there, all in one transaction: adds the permission, or its operations to those
    /// that the actor has on the path already.
    ///
    /// # Errors
    /// When the database can't answer; then nothing was changed.
    async fn grant(&self, grants: &[Grant]) -> Result<(), RepositoryFailure>;
}
