//! Searches by name and by the expiry of chains, rows of inputs, and counts by type.

use std::ops::ControlFlow;

use keywright_core::{
    credential::{
        CHAIN_DEPTH_MAX, CredentialName, EffectiveExpiry, Find, FindNames, InputVersion,
        IssuerVersion, VersionAttributes,
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
        let expires_at = if number == 0 { 100 } else { 9_000 };
        let attributes = VersionAttributes {
            certificate: Some(facts(expires_at)),
            signed_by: issuer.map(|_| CredentialName::parse("/c/000").unwrap()),
            issuer,
            ..VersionAttributes::default()
        };
        let id = fixture
            .append_with(&name, credential_type, i64::from(number), attributes)
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
        fixture.database.delete(&name).await.unwrap();
    };
    // Deleting an input keeps the rows of the versions that were derived from it.
    delete("/in").await;
    assert_eq!(fixture.count(COUNT).await, 4);
    delete("/derived").await;
    assert_eq!(fixture.count(COUNT).await, 0);
}

#[tokio::test]
async fn credentials_are_counted_by_type_up_to_the_maximum() {
    let fixture = Fixture::new().await;
    for name in ["/a/b", "/a/c", "/a/d"] {
        fixture.append(name, "value", 1).await;
    }
    for path in ["/*", "/a/*"] {
        let path = PermissionPath::parse(path).unwrap();
        for (count_max, expected) in [(0, 0), (2, 2), (3, 3), (4, 3)] {
            let counted = fixture
                .database
                .count_by_type(&reader(), &path, count_max)
                .await
                .unwrap();
            let total: u64 = counted.iter().map(|(_, count)| count).sum();
            assert_eq!(total, expected, "{path} {count_max}");
        }
    }
}
