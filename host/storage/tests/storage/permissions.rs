//! Adding, combining, replacing and deleting permissions, and reading versions together with the permissions on them.

use keywright_core::{
    credential::LookupName,
    permission::{Actor, Grant, Operation, Operations, Permission, PermissionPath},
    ports::{
        CredentialRepository, PermissionRepository, PermittedRead, PermittedVersions, VersionKey,
    },
};

use crate::support::Fixture;

#[tokio::test]
async fn the_caller_can_refuse_a_read_that_a_permission_allows() {
    let fixture = Fixture::new().await;
    fixture.grant("/a", &[Operation::Read]).await;
    fixture.append("/a", "value", 1).await;
    let mut refuse = |_| false;
    let found = fixture.read("/a", VersionKey::Current, &mut refuse).await;
    assert!(found.versions.is_empty());
    assert_eq!(found.stored_name, None);
}

#[tokio::test]
async fn only_permissions_of_the_actor_on_the_paths_are_passed() {
    let fixture = Fixture::new().await;
    for path in ["/a/b", "/a/*", "/*", "/a", "/A/B", "/a/b/*"] {
        fixture.grant(path, &[Operation::Read]).await;
    }
    let someone = grant("/a/b", "someone", &[Operation::Read]);
    fixture.database.add(&someone).await.unwrap();
    let mut passed = Vec::new();
    let mut permits = |permissions| {
        passed = permissions;
        true
    };
    fixture
        .read("/a/b", VersionKey::Current, &mut permits)
        .await;
    assert!(passed.iter().all(|one| one.actor.as_str() == ACTOR));
    let mut paths: Vec<_> = passed.iter().map(|one| one.path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["/*", "/a/*", "/a/b"]);
}

fn grant(path: &str, actor: &str, operations: &[Operation]) -> Grant {
    Grant {
        path: PermissionPath::parse(path).unwrap(),
        actor: Actor::parse(actor).unwrap(),
        operations: Operations::of(operations.iter().copied()).unwrap(),
    }
}

impl Fixture {
    async fn grant(&self, path: &str, operations: &[Operation]) {
        let adding = self.database.clone();
        adding.add(&grant(path, ACTOR, operations)).await.unwrap();
    }

    async fn read(
        &self,
        name: &str,
        versions: VersionKey,
        permits: &mut (dyn FnMut(Vec<Permission>) -> bool + Send),
    ) -> PermittedVersions {
        let read = PermittedRead {
            actor: &Actor::parse(ACTOR).unwrap(),
            operation: Operation::Read,
            paths: &PermissionPath::covering(name),
            name: &LookupName::new(name),
            versions,
        };
        self.database.read_permitted(read, permits).await.unwrap()
    }
}

const ACTOR: &str = "reader";
