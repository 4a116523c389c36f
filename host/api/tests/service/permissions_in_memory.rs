//! A permission repository in memory.

use std::sync::Mutex;

use async_trait::async_trait;
use keywright_core::{
    credential::{CredentialName, LookupName},
    permission::{Actor, Grant, Operation, Operations, Permission, PermissionPath},
    ports::{PermissionRepository, RepositoryError},
};
use uuid::Uuid;

use crate::harness::ACTOR;

pub(crate) struct PermissionsInMemory {
    permissions: Mutex<Vec<Permission>>,
}

impl Default for PermissionsInMemory {
    /// Grants everything to [`ACTOR`].
    fn default() -> Self {
        let everything = permission(Grant {
            path: PermissionPath::parse("/*").unwrap(),
            actor: Actor::parse(ACTOR).unwrap(),
            operations: Operations::of(Operation::ALL).unwrap(),
        });
        Self {
            permissions: Mutex::new(vec![everything]),
        }
    }
}

impl PermissionsInMemory {
    fn chosen(&self, is_chosen: impl Fn(&Permission) -> bool) -> Vec<Permission> {
        let mut permissions = self.permissions.lock().unwrap().clone();
        permissions.retain(is_chosen);
        permissions
    }

    fn granted(&self, grant: Grant) -> Permission {
        let mut permissions = self.permissions.lock().unwrap();
        let existing = permissions
            .iter_mut()
            .find(|permission| permission.actor == grant.actor && permission.path == grant.path);
        if let Some(existing) = existing {
            existing.operations = existing.operations.union(grant.operations);
            return existing.clone();
        }
        permissions.push(permission(grant));
        permissions.last().cloned().unwrap()
    }

    fn removed(&self, is_removed: impl Fn(&Permission) -> bool) -> Option<Permission> {
        let mut permissions = self.permissions.lock().unwrap();
        let position = permissions.iter().position(is_removed)?;
        Some(permissions.remove(position))
    }
}

#[async_trait]
impl PermissionRepository for PermissionsInMemory {
    async fn of_actor_on(
        &self,
        actor: &Actor,
        paths: &[PermissionPath],
    ) -> Result<Vec<Permission>, RepositoryError> {
        Ok(
            self.chosen(|permission| {
                permission.actor == *actor && paths.contains(&permission.path)
            }),
        )
    }

    /// Returns no name, because this repository contains no credentials.
    async fn of_actor_on_name(
        &self,
        actor: &Actor,
        paths: &[PermissionPath],
        _: &LookupName,
    ) -> Result<(Vec<Permission>, Option<CredentialName>), RepositoryError> {
        Ok((self.of_actor_on(actor, paths).await?, None))
    }

    async fn of_actor(&self, actor: &Actor) -> Result<Vec<Permission>, RepositoryError> {
        Ok(self.chosen(|permission| permission.actor == *actor))
    }

    async fn grant(&self, grants: &[Grant]) -> Result<(), RepositoryError> {
        for grant in grants {
            self.granted(grant.clone());
        }
        Ok(())
    }

    async fn grant_uncovered(
        &self,
        grants: &[Grant],
    ) -> Result<Option<Vec<Permission>>, RepositoryError> {
        for grant in grants {
            let of_actor = self.chosen(|permission| permission.actor == grant.actor);
            if grant.is_covered_by(of_actor) {
                return Ok(None);
            }
        }
        let granted = grants.iter().map(|grant| self.granted(grant.clone()));
        Ok(Some(granted.collect()))
    }

    async fn by_id(&self, id: Uuid) -> Result<Option<Permission>, RepositoryError> {
        Ok(self.chosen(|permission| permission.id == id).pop())
    }

    async fn on_path(
        &self,
        path: &PermissionPath,
        count_max: usize,
    ) -> Result<Vec<Permission>, RepositoryError> {
        let mut on_path = self.chosen(|permission| permission.path == *path);
        on_path.truncate(count_max);
        Ok(on_path)
    }

    async fn on_path_after(
        &self,
        path: &PermissionPath,
        after: Option<&Actor>,
        count_max: usize,
    ) -> Result<Vec<Permission>, RepositoryError> {
        let mut on_path = self.chosen(|permission| {
            permission.path == *path
                && after.is_none_or(|after| permission.actor.as_str() > after.as_str())
        });
        on_path.sort_by(|one, other| one.actor.as_str().cmp(other.actor.as_str()));
        on_path.truncate(count_max);
        Ok(on_path)
    }

    async fn add(&self, grant: &Grant) -> Result<Option<Permission>, RepositoryError> {
        let paths = [grant.path.clone()];
        let exists = !self.of_actor_on(&grant.actor, &paths).await?.is_empty();
        Ok((!exists).then(|| self.granted(grant.clone())))
    }

    async fn replace_operations(
        &self,
        id: Uuid,
        operations: Operations,
    ) -> Result<Option<Permission>, RepositoryError> {
        let mut permissions = self.permissions.lock().unwrap();
        let existing = permissions
            .iter_mut()
            .find(|permission| permission.id == id);
        Ok(existing.map(|permission| {
            permission.operations = operations;
            permission.clone()
        }))
    }

    async fn delete(&self, id: Uuid) -> Result<Option<Permission>, RepositoryError> {
        Ok(self.removed(|permission| permission.id == id))
    }

    async fn delete_of_actor_on(
        &self,
        actor: &Actor,
        path: &PermissionPath,
    ) -> Result<Option<Permission>, RepositoryError> {
        Ok(self.removed(|permission| permission.actor == *actor && permission.path == *path))
    }
}

fn permission(grant: Grant) -> Permission {
    Permission {
        id: Uuid::new_v4(),
        path: grant.path,
        actor: grant.actor,
        operations: grant.operations,
    }
}
