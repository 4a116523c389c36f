//! Searches, also by the expiry of chains, and deleting found credentials.

use std::ops::ControlFlow;

use keywright_core::{
    credential::{
        CHAIN_DEPTH_MAX, CredentialName, EffectiveExpiry, Find, FindNames, IssuerVersion, Lifetime,
        VersionAttributes,
    },
    ports::{CredentialRepository, NewVersion},
};

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
        .credentials
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
