//! Searches: by name, by the expiry of chains, and by inputs; counts by type, and CAs with a transitional version.

use std::ops::ControlFlow;

use keywright_core::{
    certificate::CertificateFacts,
    credential::{
        CHAIN_DEPTH_MAX, CredentialName, CredentialType, EffectiveExpiry, Find, FindNames,
        FoundCredential, InputVersion, IssuerVersion, Lifetime, LookupName, VersionAttributes,
    },
    permission::PermissionPath,
    ports::{CertificateLists, CredentialRepository, CredentialSearches, NewVersion},
};
use uuid::Uuid;

use crate::support::{Fixture, at, facts, reader, version};

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
async fn find_by_expiry_covers_lifetimes_of_any_type() {
    let fixture = Fixture::new().await;
    fixture.append_certificate("/c", false, 1, 100).await;
    fixture.append("/plain", "token", 2).await;
    for (name, expires_at, rotate_at) in [
        ("/expiring", Some(100), None),
        ("/rotating", Some(900), Some(99)),
        ("/later", Some(900), Some(101)),
        ("/unlimited", None, Some(100)),
    ] {
        let mut token = version(&fixture, name, "token", 3);
        token.attributes.lifetime = Lifetime {
            expires_at: expires_at.map(at),
            rotate_at: rotate_at.map(at),
        };
        fixture.write(token).await;
    }
    for names in ["/", ""]
        .map(FindNames::below)
        .into_iter()
        .chain([FindNames::containing("/"), FindNames::containing("ing")])
    {
        let is_partial = names == FindNames::containing("ing");
        let find = Find {
            names,
            expires_until: Some(at(100)),
        };
        let found = fixture.find(&find).await.unwrap();
        let found = found
            .iter()
            .map(|found| (found.name.as_str(), found.expires_at, found.rotate_at));
        let expected = [
            ("/unlimited", None, Some(at(100))),
            ("/rotating", Some(at(900)), Some(at(99))),
            ("/expiring", Some(at(100)), None),
            ("/c", Some(at(100)), None),
        ];
        let expected = expected
            .into_iter()
            .filter(|(name, ..)| !is_partial || name.contains("ing"));
        assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
    // A version without a lifetime replaces it.
    fixture.append("/rotating", "token", 4).await;
    fixture.assert_columns_match_versions().await;
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
        .database
        .effective_expiries(&reader(), &FindNames::below("/"), at(100), &mut keep)
        .await
        .unwrap();
    let depths: Vec<u32> = found.iter().map(|expiry| expiry.link.depth).collect();
    assert_eq!(depths, (0..=CHAIN_DEPTH_MAX).collect::<Vec<_>>());
    let farthest = found.last().unwrap();
    assert_eq!(farthest.name.as_str(), format!("/c/{CHAIN_DEPTH_MAX:03}"));
    assert_eq!(farthest.link.name.as_ref().unwrap().as_str(), "/c/000");
}

impl Fixture {
    async fn containing(&self, text: &str) -> Vec<String> {
        let found = self
            .find(&Find {
                names: FindNames::containing(text),
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

const COUNT: &str = "select count(*) from credential_version_input";

async fn append_derived(fixture: &Fixture, name: &str, inputs: &[(&str, Uuid)]) -> Uuid {
    let inputs = inputs.iter().map(|(input, version_id)| InputVersion {
        pointer: format!("/{input}"),
        name: CredentialName::parse(input).unwrap(),
        version_id: *version_id,
    });
    let new = version(fixture, name, "htpasswd", 1);
    let inputs = inputs.collect();
    fixture.write(NewVersion { inputs, ..new }).await
}

async fn derived_from(fixture: &Fixture, input: &str, names: FindNames) -> Vec<(String, bool)> {
    let mut all = Vec::new();
    let mut receive = |found: FoundCredential| {
        all.push((found.name.to_string(), found.is_stale.unwrap()));
        ControlFlow::Continue(())
    };
    let (reader, input) = (reader(), LookupName::new(input));
    let finding = fixture
        .database
        .derived_from(&reader, &input, &names, &mut receive);
    finding.await.unwrap();
    all
}

fn owned<const N: usize>(expected: [(&str, bool); N]) -> Vec<(String, bool)> {
    expected
        .map(|(name, is_stale)| (name.to_owned(), is_stale))
        .into()
}

#[tokio::test]
async fn only_newest_versions_are_compared_with_the_active_input() {
    let fixture = Fixture::new().await;
    let first = fixture.append("/In", "password", 1).await;
    append_derived(&fixture, "/replaced", &[("/In", first)]).await;
    fixture.append("/replaced", "htpasswd", 2).await;
    append_derived(&fixture, "/Old", &[("/In", first), ("/IN", first)]).await;
    let second = fixture.append("/In", "password", 2).await;
    append_derived(&fixture, "/path/new", &[("/in", second), ("/gone", first)]).await;
    let all = || FindNames::below("");
    assert_eq!(
        derived_from(&fixture, "/iN", all()).await,
        owned([("/path/new", false), ("/Old", true)])
    );
    assert_eq!(
        derived_from(&fixture, "/gone", all()).await,
        owned([("/path/new", true)])
    );
    for names in [FindNames::below("/path"), FindNames::containing("W")] {
        let found = derived_from(&fixture, "/in", names).await;
        assert_eq!(found, owned([("/path/new", false)]));
    }
    let found = derived_from(&fixture, "/in", FindNames::containing("ol")).await;
    assert_eq!(found, owned([("/Old", true)]));
    assert!(derived_from(&fixture, "/other", all()).await.is_empty());
}

#[tokio::test]
async fn a_deleted_version_leaves_no_rows() {
    let fixture = Fixture::new().await;
    let input = fixture.append("/in", "password", 1).await;
    for _ in 0..2 {
        append_derived(&fixture, "/derived", &[("/in", input), ("/other", input)]).await;
    }
    assert_eq!(fixture.count(COUNT).await, 4);
    let delete = async |name: &str| {
        let name = CredentialName::from_stored(name.to_owned());
        fixture.database.delete(&name).await.unwrap().unwrap()
    };
    // Deleting an input keeps the rows of the versions that were derived from it.
    delete("/in").await;
    assert_eq!(fixture.count(COUNT).await, 4);
    delete("/derived").await;
    assert_eq!(fixture.count(COUNT).await, 0);
}

#[tokio::test]
async fn counts_by_type_include_covered_names_up_to_the_maximum() {
    let fixture = Fixture::new().await;
    for (name, credential_type) in [
        ("/a", "value"),
        ("/a/b", "value"),
        ("/a/c", "json"),
        ("/a/d/e", "value"),
        ("/A/f", "value"),
        ("/ab", "value"),
    ] {
        fixture.append(name, credential_type, 1).await;
    }
    for (path, count_max, expected) in [
        ("/*", 6, &[("json", 1), ("value", 5)][..]),
        ("/a/*", 6, &[("json", 1), ("value", 2)]),
        ("/A/*", 6, &[("value", 1)]),
        ("/a", 6, &[("value", 1)]),
        ("/A", 6, &[]),
        ("/a/d/*", 6, &[("value", 1)]),
        ("/*", 0, &[]),
    ] {
        let path = PermissionPath::parse(path).unwrap();
        let counted = fixture
            .database
            .count_by_type(&reader(), &path, count_max)
            .await;
        let counted = counted.unwrap();
        let counted: Vec<_> = counted
            .iter()
            .map(|(of, count)| (of.as_str(), *count))
            .collect();
        assert_eq!(counted, expected, "{path}");
    }
    for path in ["/*", "/a/*"] {
        let path = PermissionPath::parse(path).unwrap();
        let counted = fixture
            .database
            .count_by_type(&reader(), &path, 2)
            .await
            .unwrap();
        let total: u64 = counted.iter().map(|(_, count)| count).sum();
        assert_eq!(total, 2, "{path}");
    }
}

#[tokio::test]
async fn only_cas_with_a_transitional_version_are_listed() {
    let fixture = Fixture::new().await;
    for (name, is_transitional) in [("/b", true), ("/a", true), ("/active", false)] {
        fixture
            .append_certificate(name, is_transitional, 1, 100)
            .await;
    }
    let new = version(&fixture, "/leaf", CredentialType::CERTIFICATE, 1);
    let attributes = VersionAttributes {
        is_transitional: true,
        certificate: Some(CertificateFacts {
            is_certificate_authority: false,
            ..facts(100)
        }),
        ..new.attributes
    };
    fixture.write(NewVersion { attributes, ..new }).await;
    let mut names = Vec::new();
    let mut receive = |name: CredentialName| {
        names.push(name.to_string());
        ControlFlow::Continue(())
    };
    let actor = reader();
    let finding = fixture
        .database
        .transitional_authorities(&actor, &mut receive);
    finding.await.unwrap();
    assert_eq!(names, ["/b", "/a"]);
}
