//! Finding the credentials that a CA signed.

use crate::support::{Fixture, at, facts, version};
use keywright_core::{
    certificate::CertificateFacts,
    credential::{CredentialName, IssuerVersion, LookupName, StoredVersion},
    ports::{CredentialRepository, NewVersion, SignedName, SignedTypes},
};
use uuid::Uuid;

/// Adds a certificate that this credential signed.
async fn sign(fixture: &Fixture, name: &str, signer: &str) {
    let certificate = CertificateFacts {
        is_certificate_authority: false,
        ..facts(5)
    };
    let new = version(fixture, name, "certificate", 1);
    let signed_by = Some(CredentialName::parse(signer).unwrap());
    fixture
        .write(NewVersion {
            certificate: Some(certificate),
            signed_by,
            ..new
        })
        .await;
}

/// Adds a generated version of another type, something unknown that this credential signed.
async fn sign_as(fixture: &Fixture, name: &str, credential_type: &str, signer: &str) {
    fixture
        .write(NewVersion {
            is_generated: Some(true),
            signed_by: Some(CredentialName::parse(signer).unwrap()),
            ..version(fixture, name, credential_type, 1)
        })
        .await;
}

/// Adds a set version that names a CA and has no certificate.
async fn set_without_certificate(fixture: &Fixture, name: &str, signer: &str) {
    fixture
        .write(NewVersion {
            is_generated: Some(false),
            signed_by: Some(CredentialName::parse(signer).unwrap()),
            ..version(fixture, name, "certificate", 1)
        })
        .await;
}

#[tokio::test]
async fn versions_without_a_certificate_do_not_count() {
    let fixture = Fixture::new().await;
    set_without_certificate(&fixture, "/without", "/root").await;
    sign(&fixture, "/emptied", "/root").await;
    set_without_certificate(&fixture, "/emptied", "/root").await;
    set_without_certificate(&fixture, "/filled", "/root").await;
    sign(&fixture, "/filled", "/other").await;
    sign(&fixture, "/signed", "/root").await;
    for types in [SignedTypes::Certificates, SignedTypes::All] {
        let found = newest_of_types(&fixture, &["/root"], types, 10).await;
        assert_eq!(names(&found), ["/signed"]);
    }
    let root = LookupName::new("/root");
    let signs = fixture.credentials.certificates_signed_by(&root);
    let mut signs: Vec<_> = signs
        .await
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    signs.sort();
    assert_eq!(signs, ["/emptied", "/signed"]);
}

async fn newest_signed_by(
    fixture: &Fixture,
    signers: &[&str],
    count_max: u32,
) -> Vec<StoredVersion> {
    newest_of_types(fixture, signers, SignedTypes::Certificates, count_max).await
}

async fn newest_of_types(
    fixture: &Fixture,
    signers: &[&str],
    types: SignedTypes,
    count_max: u32,
) -> Vec<StoredVersion> {
    let signers: Vec<LookupName> = signers.iter().map(|name| LookupName::new(name)).collect();
    fixture
        .credentials
        .newest_signed_by(&signers, types, count_max)
        .await
        .unwrap()
}

fn names(versions: &[StoredVersion]) -> Vec<&str> {
    versions
        .iter()
        .map(|version| version.name.as_str())
        .collect()
}

#[tokio::test]
async fn any_version_counts_and_the_newest_is_returned() {
    let fixture = Fixture::new().await;
    sign(&fixture, "/Old", "/root").await;
    sign(&fixture, "/Old", "/other").await;
    sign(&fixture, "/Twice", "/Root").await;
    sign(&fixture, "/Twice", "/ROOT").await;
    sign(&fixture, "/elsewhere", "/other").await;
    fixture.append("/unsigned", "certificate", 1).await;
    let found = newest_signed_by(&fixture, &["rOOt"], 10).await;
    assert_eq!(names(&found), ["/Old", "/Twice"]);
    for version in &found {
        let newest = fixture.all(version.name.as_str()).await.remove(0);
        assert_eq!(format!("{version:?}"), format!("{newest:?}"));
    }
}

#[tokio::test]
async fn each_certificate_of_several_signers_is_found_once() {
    let fixture = Fixture::new().await;
    sign(&fixture, "/c", "/one").await;
    sign(&fixture, "/b", "/two").await;
    sign(&fixture, "/a", "/one").await;
    sign(&fixture, "/a", "/two").await;
    let found = newest_signed_by(&fixture, &["/two", "/none", "/one"], 10).await;
    assert_eq!(names(&found), ["/c", "/b", "/a"]);
    assert_eq!(newest_signed_by(&fixture, &[], 10).await.len(), 0);
    assert_eq!(newest_signed_by(&fixture, &["/none"], 10).await.len(), 0);
}

#[tokio::test]
async fn results_are_limited_and_have_only_the_requested_types() {
    let fixture = Fixture::new().await;
    sign_as(&fixture, "/other", "wireguard", "/root").await;
    for name in ["/a", "/b", "/c"] {
        sign(&fixture, name, "/root").await;
    }
    let found = newest_signed_by(&fixture, &["/root"], 2).await;
    assert_eq!(names(&found), ["/a", "/b"]);
    let found = newest_of_types(&fixture, &["/root"], SignedTypes::All, 2).await;
    assert_eq!(names(&found), ["/other", "/a"]);
}

#[tokio::test]
async fn another_type_counts_by_its_newest_version_and_is_not_a_ca() {
    let fixture = Fixture::new().await;
    for (name, signer) in [
        ("/Moved", "/root"),
        ("/Moved", "/other"),
        ("/Svid", "/Root"),
    ] {
        fixture
            .write(NewVersion {
                signed_by: Some(CredentialName::parse(signer).unwrap()),
                issuer: Some(IssuerVersion {
                    version_id: Some(Uuid::from_u128(7)),
                    expires_at: at(9),
                }),
                certificate: Some(facts(5)),
                ..version(&fixture, name, "wireguard", 1)
            })
            .await;
    }
    sign_as(&fixture, "/old", "wireguard", "/root").await;
    sign(&fixture, "/leaf", "/root").await;
    let found = newest_of_types(&fixture, &["/root"], SignedTypes::All, 10).await;
    assert_eq!(names(&found), ["/Svid", "/old", "/leaf"]);
    let signers = [LookupName::new("/root")];
    let names = fixture
        .credentials
        .names_signed_by(&signers, SignedTypes::All, 10);
    assert!(names.await.unwrap().iter().all(|name| !name.is_authority));
    let issued = fixture.credentials.issued_by(&signers[0]).await.unwrap();
    let [old, svid] = issued.as_slice() else {
        panic!("{issued:?}")
    };
    assert_eq!((old.name.as_str(), svid.name.as_str()), ("/old", "/Svid"));
    let (old, svid) = (old.record.as_ref().unwrap(), svid.record.as_ref().unwrap());
    assert_eq!((old.expires_at, &old.serial_number), (None, &None));
    assert_eq!(svid.expires_at, Some(at(5)));
    assert_eq!(svid.issuer_version_id, Some(Uuid::from_u128(7)));
    let serial_number = svid.serial_number.as_ref().unwrap();
    assert_eq!(serial_number.to_string(), "8f01");
}

#[tokio::test]
async fn names_are_of_the_newest_versions_and_show_which_are_cas() {
    let fixture = Fixture::new().await;
    for (name, is_certificate_authority) in [("/Nested", true), ("/leaf", false)] {
        let certificate = CertificateFacts {
            is_certificate_authority,
            ..facts(1)
        };
        fixture
            .write(NewVersion {
                signed_by: Some(CredentialName::parse("/root").unwrap()),
                certificate: Some(certificate),
                ..version(&fixture, name, "certificate", 1)
            })
            .await;
    }
    sign(&fixture, "/absent-facts", "/root").await;
    let signers = [LookupName::new("/ROOT")];
    for count_max in [2, 10] {
        let names =
            fixture
                .credentials
                .names_signed_by(&signers, SignedTypes::Certificates, count_max);
        let names = names.await.unwrap();
        let versions = newest_signed_by(&fixture, &["/root"], count_max).await;
        let expected = versions.into_iter().map(|version| SignedName {
            is_authority: version.name.as_str() == "/Nested",
            name: version.name,
        });
        assert_eq!(names, expected.collect::<Vec<_>>());
    }
    let none = fixture
        .credentials
        .names_signed_by(&[], SignedTypes::All, 10)
        .await
        .unwrap();
    assert!(none.is_empty());
}
