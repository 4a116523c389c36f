//! A repository that keeps permissions in memory.

use std::sync::Mutex;

use async_trait::async_trait;
use keywright_core::{
    permission::{Actor, Grant, Operation, Operations, Permission, PermissionPath},
    ports::{PermissionRepository, RepositoryFailure},
};
use uuid::Uuid;

#[derive(Default)]
pub(crate) struct PermissionsInMemory(Mutex<Vec<Permission>>);

impl PermissionsInMemory {
    /// Everything is granted to an actor.
    pub(crate) fn for_everything(actor: &str) -> Self {
        let everything = Permission {
            id: Uuid::new_v4(),
            path: PermissionPath::parse("/*").unwrap(),
            actor: Actor::parse(actor).unwrap(),
            operations: Operations::of(Operation::ALL).unwrap(),
        };
        Self(Mutex::new(vec![everything]))
    }

    fn chosen(&self, is_chosen: impl Fn(&Permission) -> bool) -> Vec<Permission> {
        let mut permissions = self.0.lock().unwrap().clone();
        permissions.retain(is_chosen);
        permissions
    }
}

#[async_trait]
impl PermissionRepository for PermissionsInMemory {
    async fn of_actor_on(
        &self,
        actor: &Actor,
        paths: &[PermissionPath],
    ) -> Result<Vec<Permission>, RepositoryFailure> {
        Ok(
            self.chosen(|permission| {
                permission.actor == *actor && paths.contains(&permission.path)
            }),
        )
    }

    async fn of_actor(&self, actor: &Actor) -> Result<Vec<Permission>, RepositoryFailure> {
        Ok(self.chosen(|permission| permission.actor == *actor))
    }

    async fn grant(&self, grants: &[Grant]) -> Result<(), RepositoryFailure> {
        let mut permissions = self.0.lock().unwrap();
        for grant in grants.iter().cloned() {
            let existing = permissions.iter_mut().find(|permission| {
                permission.actor == grant.actor && permission.path == grant.path
            });
            match existing {
                Some(existing) => {
                    existing.operations = existing.operations.union(grant.operations);
                }
                None => permissions.push(Permission {
                    id: Uuid::new_v4(),
                    path: grant.path,
                    actor: grant.actor,
                    operations: grant.operations,
                }),
            }
        }
        Ok(())
    }
}
