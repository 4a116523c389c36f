//! Searches, also by the expiry of chains, and deleting found credentials.

use std::ops::ControlFlow;

use chrono::{DateTime, Utc};
use keywright_core::{
    credential::{
        CHAIN_DEPTH_MAX, CredentialName, EffectiveExpiry, Find, FindNames, IssuerVersion,
        LookupName, VersionAttributes,
    },
    ports::{CredentialRepository, NewVersion},
};

use crate::support::{Fixture, at, facts, version};

#[tokio::test]
async fn a_search_ends_when_its_receiver_breaks_off() {
    let fixture = Fixture::new().await;
    for number in 0..100 {
        fixture.append(&format!("/{number}"), "password", 1).await;
    }
    let find = Find {
        names: FindNames::below("/"),
        expires_until: None,
    };
    for wanted in [1, 60, 1] {
        let mut received = 0;
        let mut receive = |_| {
            received += 1;
            if received == wanted {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let searched = fixture.credentials.find(&find, &mut receive).await;
        assert!(searched.is_ok());
        assert_eq!(received, wanted);
        // The connection is still usable.
        assert_eq!(fixture.find(&find).await.unwrap().len(), 100);
    }
}

#[tokio::test]
async fn delete_removes_the_versions_and_the_trigrams() {
    let fixture = Fixture::new().await;
    fixture.append("/Gone/name", "value", 1).await;
    fixture.append("/gone/name", "value", 2).await;
    fixture.append("/stays/name", "value", 3).await;
    for (name, is_there) in [("/GONE/NAME", true), ("/gone/name", false)] {
        let name = LookupName::new(name);
        let deleted = fixture.credentials.delete(&name).await.unwrap();
        assert_eq!(deleted.is_some(), is_there);
    }
    assert!(fixture.all("/gone/name").await.is_empty());
    assert_eq!(fixture.containing("name").await, ["/stays/name"]);
    let versions = "select count(*) from credential_version";
    assert_eq!(fixture.count(versions).await, 1);
    fixture.append("/gone/NAME", "json", 4).await;
    assert_eq!(fixture.containing("gone").await, ["/gone/NAME"]);
}

#[tokio::test]
async fn find_below_a_path_is_strict_and_newest_first() {
    let fixture = Fixture::new().await;
    for (name, milliseconds) in [
        ("/My/a", 3),
        ("/my/b/c", 2),
        ("/my", 1),
        ("/my-2/x", 1),
        ("/myx", 1),
        ("/MY/d", 0),
    ] {
        fixture.append(name, "value", milliseconds).await;
    }
    fixture.append("/my/a", "value", 9).await;
    assert_eq!(fixture.below("/my").await, ["/My/a", "/MY/d", "/my/b/c"]);
    assert_eq!(fixture.below("MY/").await.len(), 3);
    assert_eq!(fixture.below("").await.len(), 6);
    assert!(fixture.below("/my/a").await.is_empty());
}

#[tokio::test]
async fn find_containing_takes_every_character_literally() {
    let fixture = Fixture::new().await;
    let names = ["/ab_c/Def", "/abxc/d.f", "/z(1)", "/q[2]:x-y"];
    for name in names {
        fixture.append(name, "value", 1).await;
    }
    for (text, expected) in [
        ("b_c", vec!["/ab_c/Def"]),
        ("DEF", vec!["/ab_c/Def"]),
        ("c/d", vec!["/abxc/d.f", "/ab_c/Def"]),
        ("/d", vec!["/abxc/d.f", "/ab_c/Def"]),
        ("d.f", vec!["/abxc/d.f"]),
        ("f", vec!["/abxc/d.f", "/ab_c/Def"]),
        ("ef", vec!["/ab_c/Def"]),
        ("_", vec!["/ab_c/Def"]),
        ("1)", vec!["/z(1)"]),
        ("[2]:x-y", vec!["/q[2]:x-y"]),
        ("/", vec!["/q[2]:x-y", "/z(1)", "/abxc/d.f", "/ab_c/Def"]),
        ("", vec!["/q[2]:x-y", "/z(1)", "/abxc/d.f", "/ab_c/Def"]),
        ("%", vec![]),
        ("b%c", vec![]),
        ("abc", vec![]),
        ("\"", vec![]),
        ("a\"b", vec![]),
        ("'", vec![]),
        ("*", vec![]),
        ("ab*", vec![]),
        ("abx OR def", vec![]),
        ("f\u{1}", vec![]),
        ("def\u{1}", vec![]),
        ("de\0", vec![]),
        ("ä", vec![]),
        ("~~", vec![]),
    ] {
        assert_eq!(fixture.containing(text).await, expected, "{text:?}");
    }
    for name in names {
        let folded = name.to_ascii_lowercase();
        for from in 0..folded.len() {
            for to in from + 1..=folded.len() {
                let found = fixture.containing(&folded[from..to]).await;
                assert!(
                    found.iter().any(|found| found == name),
                    "{name} {}",
                    &folded[from..to]
                );
            }
        }
    }
}

#[tokio::test]
async fn a_long_text_is_found_among_names_with_most_of_its_parts() {
    let fixture = Fixture::new().await;
    // More names than the sample that determines the common parts.
    let names: Vec<String> = (0..200)
        .map(|number| format!("/director/deployment-{number:03}/instance/credential"))
        .collect();
    for name in &names {
        fixture.append(name, "value", 1).await;
    }
    for name in names.iter().step_by(40) {
        let word = &name["/director/".len()..];
        for text in [name.as_str(), &name[4..], &name[..30], word] {
            assert_eq!(fixture.containing(text).await, [name.as_str()], "{text:?}");
        }
    }
    let everywhere = ["/instance/credential", "director/deployment-"];
    for text in everywhere {
        assert_eq!(
            fixture.containing(text).await.len(),
            names.len(),
            "{text:?}"
        );
    }
    // All their parts exist, but in another order or in several names.
    for text in [
        "director/deployment-0000/instance",
        "deployment-123/instance/credential/deployment",
        "deployment-12\"/instance",
        "director/\" OR deployment-",
        "director/deployment-123*",
    ] {
        assert!(fixture.containing(text).await.is_empty(), "{text:?}");
    }
}

#[tokio::test]
async fn find_returns_the_newest_version_that_is_not_transitional() {
    let fixture = Fixture::new().await;
    fixture.append_transitional("/hidden", 1).await;
    fixture.append("/a", "certificate", 20).await;
    fixture.append("/b", "certificate", 30).await;
    fixture.append_transitional("/a", 40).await;
    let find = Find {
        names: FindNames::below("/"),
        expires_until: None,
    };
    let found = fixture.find(&find).await.unwrap();
    let listed: Vec<_> = found
        .iter()
        .map(|found| {
            (
                found.name.as_str(),
                found.version_created_at,
                found.expires_at,
            )
        })
        .collect();
    assert_eq!(listed, [("/b", at(30), None), ("/a", at(20), None)]);
}

#[tokio::test]
async fn find_by_expiry_uses_the_newest_version_of_any_kind() {
    let fixture = Fixture::new().await;
    fixture.append_certificate("/late", false, 1, 900).await;
    fixture.append_certificate("/late", true, 2, 100).await;
    fixture.append_certificate("/renewed", false, 3, 50).await;
    fixture.append_certificate("/renewed", false, 4, 900).await;
    fixture
        .append_certificate("/only/transitional", true, 5, 101)
        .await;
    fixture.append("/password", "password", 6).await;
    for (names, until, expected) in [
        (
            FindNames::below("/"),
            101,
            vec![("/only/transitional", 5, 101), ("/late", 2, 100)],
        ),
        (FindNames::below("/"), 100, vec![("/late", 2, 100)]),
        (FindNames::below("/"), 99, vec![]),
        (
            FindNames::below("/only"),
            101,
            vec![("/only/transitional", 5, 101)],
        ),
        (FindNames::containing("late"), 101, vec![("/late", 2, 100)]),
        (FindNames::containing("e"), 101, vec![("/late", 2, 100)]),
        (FindNames::containing(""), 100, vec![("/late", 2, 100)]),
    ] {
        let find = Find {
            names,
            expires_until: Some(at(until)),
        };
        let found = fixture.find(&find).await.unwrap();
        let listed: Vec<_> = found
            .iter()
            .map(|found| {
                let created_at = found.version_created_at.timestamp_millis();
                (
                    found.name.as_str(),
                    created_at,
                    found.expires_at.unwrap().timestamp_millis(),
                )
            })
            .collect();
        assert_eq!(listed, expected, "{find:?}");
    }
    for farthest in [DateTime::<Utc>::MAX_UTC, DateTime::<Utc>::MIN_UTC] {
        let find = Find {
            names: FindNames::below("/"),
            expires_until: Some(farthest),
        };
        assert!(fixture.find(&find).await.is_ok());
    }
}

#[tokio::test]
async fn a_chain_is_walked_up_to_the_limit() {
    let fixture = Fixture::new().await;
    let mut issuer = None;
    // The first version is the root, and the only version that expires soon. The last version is one link past the limit.
    for number in 0..=CHAIN_DEPTH_MAX + 1 {
        let name = format!("/c/{number:03}");
        // The chain of another type counts, too.
        let credential_type = match number {
            CHAIN_DEPTH_MAX => "wireguard",
            _ => "certificate",
        };
        let new = version(&fixture, &name, credential_type, i64::from(number));
        let expires_at = if number == 0 { 100 } else { 9_000 };
        let id = fixture
            .write(NewVersion {
                attributes: VersionAttributes {
                    certificate: Some(facts(expires_at)),
                    signed_by: issuer.map(|_| CredentialName::parse("/c/000").unwrap()),
                    issuer,
                    ..VersionAttributes::default()
                },
                ..new
            })
            .await;
        issuer = Some(IssuerVersion {
            version_id: Some(id),
            expires_at: at(expires_at),
        });
    }
    let mut found: Vec<EffectiveExpiry> = Vec::new();
    let mut keep = |expiry| {
        found.push(expiry);
        ControlFlow::Continue(())
    };
    fixture
        .credentials
        .effective_expiries(&FindNames::below("/"), at(100), &mut keep)
        .await
        .unwrap();
    let depths: Vec<u32> = found.iter().map(|expiry| expiry.link.depth).collect();
    assert_eq!(depths, (0..=CHAIN_DEPTH_MAX).collect::<Vec<_>>());
    let farthest = found.last().unwrap();
    assert_eq!(farthest.name.as_str(), format!("/c/{CHAIN_DEPTH_MAX:03}"));
    assert_eq!(farthest.link.name.as_ref().unwrap().as_str(), "/c/000");
}

impl Fixture {
    async fn below(&self, path: &str) -> Vec<String> {
        self.found(FindNames::below(path)).await
    }

    async fn containing(&self, text: &str) -> Vec<String> {
        self.found(FindNames::containing(text)).await
    }

    async fn found(&self, names: FindNames) -> Vec<String> {
        let found = self
            .find(&Find {
                names,
                expires_until: None,
            })
            .await
            .unwrap();
        found
            .iter()
            .map(|found| found.name.as_str().to_owned())
            .collect()
    }
}
