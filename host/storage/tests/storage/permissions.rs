//! Permissions: added once, added up, replaced and deleted by one statement each.

use std::collections::HashSet;

use keywright_core::{
    permission::{Actor, Grant, Operation, Operations, Permission, PermissionPath},
    ports::PermissionRepository,
};
use uuid::Uuid;

use crate::support::Fixture;

#[tokio::test]
async fn one_of_many_concurrent_callers_adds_a_permission() {
    let fixture = Fixture::new().await;
    let repository = fixture.database.permissions();
    let grant = grant("/a", "someone", &[Operation::Read]);
    let adding = (0..10).map(|_| {
        let (repository, grant) = (repository.clone(), grant.clone());
        tokio::spawn(async move { repository.add(&grant).await.unwrap() })
    });
    let adding: Vec<_> = adding.collect();
    let mut added = Vec::new();
    for task in adding {
        added.extend(task.await.unwrap());
    }
    assert_eq!(added.len(), 1);
    assert_eq!(
        repository.by_id(added[0].id).await.unwrap().as_ref(),
        Some(&added[0])
    );
}

#[tokio::test]
async fn adding_an_existing_permission_again_keeps_it_unchanged() {
    let fixture = Fixture::new().await;
    let repository = fixture.database.permissions();
    let first = grant("/a", "someone", &[Operation::Read]);
    let added = repository.add(&first).await.unwrap().unwrap();
    let second = grant("/a", "someone", &[Operation::Write]);
    assert_eq!(repository.add(&second).await.unwrap(), None);
    assert_eq!(repository.by_id(added.id).await.unwrap(), Some(added));
}

#[tokio::test]
async fn paths_and_actors_are_case_sensitive() {
    let fixture = Fixture::new().await;
    let repository = fixture.database.permissions();
    let mut ids = HashSet::new();
    for (path, actor) in [("/a", "x"), ("/A", "x"), ("/a", "X"), ("/a/*", "x")] {
        let grant = grant(path, actor, &[Operation::Read]);
        ids.insert(repository.add(&grant).await.unwrap().unwrap().id);
        let found = of_actor_on(&fixture, actor, &[path]).await;
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].path.as_str(), found[0].actor.as_str()),
            (path, actor)
        );
    }
    assert_eq!(ids.len(), 4);
}

#[tokio::test]
async fn permissions_on_any_number_of_paths_are_found_once() {
    let fixture = Fixture::new().await;
    let repository = fixture.database.permissions();
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
async fn only_operations_are_replaced() {
    let fixture = Fixture::new().await;
    let repository = fixture.database.permissions();
    let grant = grant("/a", "x", &[Operation::Read, Operation::Write]);
    let added = repository.add(&grant).await.unwrap().unwrap();
    let operations = Operations::of([Operation::Delete]).unwrap();
    let replaced = repository.replace_operations(added.id, operations).await;
    let expected = Permission {
        operations,
        ..added
    };
    assert_eq!(replaced.unwrap().as_ref(), Some(&expected));
    assert_eq!(repository.by_id(expected.id).await.unwrap(), Some(expected));
    let nothing = repository.replace_operations(Uuid::nil(), operations).await;
    assert_eq!(nothing.unwrap(), None);
}

#[tokio::test]
async fn a_permission_is_deleted_once_by_id_or_path_and_actor() {
    let fixture = Fixture::new().await;
    let repository = fixture.database.permissions();
    let mut added = Vec::new();
    for (path, actor) in [("/a", "x"), ("/a", "y"), ("/a/*", "x")] {
        let grant = grant(path, actor, &[Operation::Read]);
        added.push(repository.add(&grant).await.unwrap().unwrap());
    }
    let deleted = repository.delete(added[0].id).await.unwrap();
    assert_eq!(deleted.as_ref(), Some(&added[0]));
    assert_eq!(repository.delete(added[0].id).await.unwrap(), None);
    for (expected, path, actor) in [
        (None, "/a", "x"),
        (None, "/A", "y"),
        (None, "/a", "Y"),
        (Some(added[1].clone()), "/a", "y"),
        (None, "/a", "y"),
    ] {
        let path = PermissionPath::parse(path).unwrap();
        let actor = Actor::parse(actor).unwrap();
        let deleted = repository.delete_of_actor_on(&actor, &path).await;
        assert_eq!(deleted.unwrap(), expected, "{path} {actor}");
    }
    assert_eq!(
        repository.by_id(added[2].id).await.unwrap().as_ref(),
        Some(&added[2])
    );
}

#[tokio::test]
async fn permissions_on_exactly_a_path_are_in_order_of_addition() {
    let fixture = Fixture::new().await;
    let repository = fixture.database.permissions();
    for (path, actor) in [
        ("/a", "z"),
        ("/a", "b"),
        ("/A", "c"),
        ("/*", "d"),
        ("/a", "a"),
    ] {
        let grant = grant(path, actor, &[Operation::Read]);
        repository.add(&grant).await.unwrap();
    }
    let path = PermissionPath::parse("/a").unwrap();
    let on_path = repository.on_path(&path).await.unwrap();
    let actors: Vec<_> = on_path.iter().map(|found| found.actor.as_str()).collect();
    assert_eq!(actors, ["z", "b", "a"]);
}

#[tokio::test]
async fn grants_add_operations_and_never_remove_any() {
    let fixture = Fixture::new().await;
    let repository = fixture.database.permissions();
    let read = grant("/a", "x", &[Operation::Read]);
    let added = repository.add(&read).await.unwrap().unwrap();
    let more = grant("/a", "x", &[Operation::Write]);
    repository.grant(&[more.clone(), more, read]).await.unwrap();
    let now = repository.by_id(added.id).await.unwrap().unwrap();
    let both = Operations::of([Operation::Read, Operation::Write]);
    assert_eq!(Some(now.operations), both);
}

#[tokio::test]
async fn no_grant_is_added_if_one_of_them_is_already_covered() {
    let fixture = Fixture::new().await;
    let repository = fixture.database.permissions();
    let (read, write) = ([Operation::Read], [Operation::Write]);
    for (path, operations) in [("/a/*", read), ("/a/b", write)] {
        let there = grant(path, "x", &operations);
        repository.add(&there).await.unwrap();
    }
    let both = [Operation::Read, Operation::Write];
    let other = grant("/a/b", "y", &read);
    for covered in [
        grant("/a/b", "x", &write),
        grant("/a/b", "x", &read),
        grant("/a/b", "x", &both),
        grant("/a/c", "x", &read),
        grant("/a/c/*", "x", &read),
    ] {
        let grants = [other.clone(), covered];
        assert_eq!(repository.grant_uncovered(&grants).await.unwrap(), None);
        assert!(of_actor_on(&fixture, "y", &["/a/b"]).await.is_empty());
    }
    let grants = [
        other.clone(),
        grant("/a/b", "x", &[Operation::Read, Operation::Delete]),
        other,
    ];
    let granted = repository.grant_uncovered(&grants).await.unwrap().unwrap();
    let operations: Vec<Vec<_>> = granted
        .iter()
        .map(|permission| permission.operations.iter().collect())
        .collect();
    let all = vec![Operation::Read, Operation::Write, Operation::Delete];
    assert_eq!(operations, [read.to_vec(), all, read.to_vec()]);
    assert_eq!(granted[0].id, granted[2].id);
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
    let repository = fixture.database.permissions();
    repository.of_actor_on(&actor, &paths).await.unwrap()
}
