//! Adding, combining, replacing and deleting permissions, and reading versions together with the permissions on them.

use keywright_core::{
    credential::{CredentialName, LookupName},
    permission::{Actor, Grant, Operation, Operations, Permission, PermissionPath},
    ports::{
        CredentialRepository, PermissionRepository, PermittedRead, PermittedVersions, VersionKey,
        VersionSelection,
    },
};

use crate::support::Fixture;

#[tokio::test]
async fn permissions_on_any_number_of_paths_are_found_once() {
    let fixture = Fixture::new().await;
    let repository = &fixture.database;
    for path in ["/a", "/b/*", "/*"] {
        let grant = grant(path, "x", &[Operation::Read]);
        repository.add(&grant).await.unwrap();
    }
    for (paths, found) in [
        (&[][..], &[][..]),
        (&["/a"], &["/a"]),
        (&["/a", "/b/*"], &["/a", "/b/*"]),
        (&["/c", "/a", "/*"], &["/*", "/a"]),
        (&["/c", "/d", "/e", "/f", "/b/*"], &["/b/*"]),
    ] {
        let mut names: Vec<_> = of_actor_on(&fixture, "x", paths)
            .await
            .into_iter()
            .map(|permission| permission.path.as_str().to_owned())
            .collect();
        names.sort();
        assert_eq!(names, found);
    }
}

#[tokio::test]
async fn a_refused_read_returns_neither_versions_nor_a_name() {
    let fixture = Fixture::new().await;
    let id = fixture.append("/a", "value", 1).await;
    fixture.append("/b", "value", 1).await;
    fixture.grant("/b", &[Operation::Read]).await;
    for operations in [&[][..], &[Operation::Write, Operation::Delete]] {
        if !operations.is_empty() {
            fixture.grant("/a", operations).await;
        }
        for versions in [CURRENT, NEWEST, VersionKey::Id(id)] {
            for name in ["/a", "/A"] {
                let found = fixture.permitted(name, versions).await;
                assert!(found.versions.is_empty(), "{name} {versions:?}");
                assert_eq!(found.stored_name, None, "{name} {versions:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_caller_can_refuse_a_read_that_a_permission_allows() {
    let fixture = Fixture::new().await;
    fixture.grant("/a", &[Operation::Read]).await;
    fixture.append("/a", "value", 1).await;
    let mut refuse = |_| false;
    let found = fixture.read("/a", CURRENT, &mut refuse).await;
    assert!(found.versions.is_empty());
    assert_eq!(found.stored_name, None);
}

#[tokio::test]
async fn without_versions_the_stored_name_is_returned() {
    let fixture = Fixture::new().await;
    fixture.grant("/*", &[Operation::Read]).await;
    let id = fixture.append("/Stored", "value", 1).await;
    let other = fixture.append("/other", "value", 1).await;
    for (name, versions, expected) in [
        ("/stored", CURRENT, Some("/Stored")),
        ("/stored", NEWEST, Some("/Stored")),
        ("/stored", VersionKey::Id(id), Some("/Stored")),
        ("/Stored", VersionKey::Id(other), Some("/Stored")),
        ("/absent", CURRENT, None),
        ("/absent", VersionKey::Id(id), None),
    ] {
        let found = fixture.permitted(name, versions).await;
        assert!(found.versions.is_empty(), "{name} {versions:?}");
        let stored_name = found.stored_name.as_ref().map(CredentialName::as_str);
        assert_eq!(stored_name, expected, "{name} {versions:?}");
    }
}

fn grant(path: &str, actor: &str, operations: &[Operation]) -> Grant {
    Grant {
        path: PermissionPath::parse(path).unwrap(),
        actor: Actor::parse(actor).unwrap(),
        operations: Operations::of(operations.iter().copied()).unwrap(),
    }
}

async fn of_actor_on(fixture: &Fixture, actor: &str, paths: &[&str]) -> Vec<Permission> {
    let paths = paths
        .iter()
        .map(|path| PermissionPath::parse(path).unwrap());
    let paths: Vec<_> = paths.collect();
    let actor = Actor::parse(actor).unwrap();
    let repository = &fixture.database;
    repository.of_actor_on(&actor, &paths).await.unwrap()
}

impl Fixture {
    async fn grant(&self, path: &str, operations: &[Operation]) {
        let adding = self.database.clone();
        adding.add(&grant(path, ACTOR, operations)).await.unwrap();
    }

    /// Reads if a permission grants `read`.
    async fn permitted(&self, name: &str, versions: VersionKey) -> PermittedVersions {
        let mut permits = |permissions: Vec<Permission>| {
            let mut all = permissions.iter();
            all.any(|permission| permission.operations.contain(Operation::Read))
        };
        self.read(name, versions, &mut permits).await
    }

    async fn read(
        &self,
        name: &str,
        versions: VersionKey,
        permits: &mut (dyn FnMut(Vec<Permission>) -> bool + Send),
    ) -> PermittedVersions {
        let read = PermittedRead {
            actor: &Actor::parse(ACTOR).unwrap(),
            paths: &PermissionPath::covering(name),
            name: &LookupName::new(name),
            versions,
        };
        self.database.read_permitted(read, permits).await.unwrap()
    }
}

const ACTOR: &str = "reader";
const CURRENT: VersionKey = VersionKey::Selected(VersionSelection::Current);
const NEWEST: VersionKey = VersionKey::Selected(VersionSelection::Newest(1));
