//! Tests which versions exceed the limits of a policy, and which of these are not deleted.

use keywright_core::{
    credential::StoredVersion,
    ports::{RetentionRepository, TransitionalVersion},
    retention::{NameRange, RetentionThreshold},
};
use uuid::Uuid;

use crate::support::{Fixture, at};

const NEWEST_ALONE: RetentionThreshold = RetentionThreshold {
    versions_max: Some(1),
    created_before: None,
};

#[tokio::test]
async fn versions_that_exceed_either_limit_are_deletable() {
    let fixture = Fixture::new().await;
    let ids = fixture.append_many("/a", 5).await;
    for (versions_max, before, deletable) in [(4, 3, 2), (2, 2, 3), (5, 1, 0)] {
        let threshold = RetentionThreshold {
            versions_max: Some(versions_max),
            created_before: Some(at(before)),
        };
        let found = fixture.deletable("/a", threshold).await;
        assert_eq!(found, ids[..deletable], "{versions_max} {before}");
    }
}

#[tokio::test]
async fn the_newest_version_with_a_certificate_is_kept() {
    let fixture = Fixture::new().await;
    let one = fixture.append_certificate("/c", false, 1, 100).await;
    let two = fixture.append_certificate("/c", false, 2, 100).await;
    let three = fixture.append("/c", "certificate", 3).await;
    fixture.append("/c", "certificate", 4).await;
    let found = fixture.deletable("/c", NEWEST_ALONE).await;
    assert_eq!(found, [one, three]);
    assert!(!found.contains(&two));
}

#[tokio::test]
async fn versions_needed_at_the_deletion_are_kept() {
    let fixture = Fixture::new().await;
    let ids = fixture.append_many_certificates("/c", 4).await;
    let id = fixture.all("/c").await[0].credential_id;
    let found = fixture.deletable("/c", NEWEST_ALONE).await;
    assert_eq!(found, ids[..3]);
    let to = TransitionalVersion::Id(ids[1]);
    fixture.move_transitional(id, to).await;
    // Also requests the active version, which is never deleted.
    assert_eq!(
        fixture.delete("/c", NEWEST_ALONE, &ids).await,
        [ids[0], ids[2]]
    );
    assert!(fixture.delete("/c", NEWEST_ALONE, &found).await.is_empty());
    let left: Vec<Uuid> = fixture.all("/c").await.iter().map(|v| v.id).collect();
    assert_eq!(left, [ids[3], ids[1]]);
}

#[tokio::test]
async fn versions_of_other_credentials_are_never_deleted() {
    let fixture = Fixture::new().await;
    let ids = fixture.append_many("/a", 3).await;
    fixture.append_many("/b", 3).await;
    assert!(fixture.delete("/b", NEWEST_ALONE, &ids).await.is_empty());
    assert_eq!(fixture.all("/a").await.len(), 3);
}

#[tokio::test]
async fn a_deletion_keeps_the_credential_in_sync_with_its_versions() {
    let fixture = Fixture::new().await;
    fixture.append_many_certificates("/c", 5).await;
    fixture.append_transitional("/c", 6).await;
    let found = fixture.deletable("/c", NEWEST_ALONE).await;
    assert_eq!(found.len(), 4);
    fixture.delete("/c", NEWEST_ALONE, &found).await;
    assert_eq!(fixture.all("/c").await.len(), 2);
    fixture.assert_columns_match_versions().await;
}

#[tokio::test]
async fn the_pages_of_a_range_have_each_credential_once() {
    let fixture = Fixture::new().await;
    for name in ["/A/a", "/a/b", "/a/b(", "/a/b/c", "/a/z", "/a", "/ab", "/b"] {
        fixture.append_many(name, 2).await;
    }
    fixture.append("/a/single", "value", 9).await;
    let range = NameRange {
        from: "/a/".to_owned(),
        before: "/a0".to_owned(),
    };
    for count_max in [1, 2, 4, 5, 6, 100] {
        let mut rest = Some(range.clone());
        let mut names = Vec::new();
        let mut pages = 0;
        while let Some(names_of_page) = rest {
            let page = fixture
                .database
                .page(&names_of_page, NEWEST_ALONE, count_max)
                .await
                .unwrap();
            names.extend(
                page.exceeding
                    .into_iter()
                    .map(|found| found.name.to_string()),
            );
            rest = page.rest;
            pages += 1;
        }
        assert_eq!(names, ["/A/a", "/a/b", "/a/b(", "/a/b/c", "/a/z"]);
        assert_eq!(pages, 6 / count_max + 1, "{count_max}");
    }
}

impl Fixture {
    /// Returns the ids, oldest first. The versions are created at 1, 2, 3, … milliseconds after the epoch.
    async fn append_many(&self, name: &str, count: i64) -> Vec<Uuid> {
        let mut ids = Vec::new();
        for number in 1..=count {
            ids.push(self.append(name, "value", number).await);
        }
        ids
    }

    async fn append_many_certificates(&self, name: &str, count: i64) -> Vec<Uuid> {
        let mut ids = Vec::new();
        for number in 1..=count {
            ids.push(self.append_certificate(name, false, number, 100).await);
        }
        ids
    }

    async fn deletable(&self, name: &str, threshold: RetentionThreshold) -> Vec<Uuid> {
        let versions: Vec<StoredVersion> = self.all(name).await;
        let found = self
            .database
            .deletable_versions(versions.first().unwrap().credential_id, threshold, 0, 100)
            .await;
        found.unwrap().iter().map(|version| version.id).collect()
    }

    /// Deletes the deletable versions among `ids`, and returns their ids, oldest first.
    async fn delete(&self, name: &str, threshold: RetentionThreshold, ids: &[Uuid]) -> Vec<Uuid> {
        let credential_id = self.all(name).await.first().unwrap().credential_id;
        let mut deleted = self
            .database
            .delete_versions(credential_id, threshold, ids)
            .await
            .unwrap();
        deleted.sort();
        deleted
    }
}
