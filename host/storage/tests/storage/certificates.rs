//! Listing certificates.

use keywright_core::{
    credential::{CredentialName, ListedCertificate, LookupName},
    ports::{CredentialRepository, NewVersion, VersionSelection},
};
use uuid::Uuid;

use crate::support::{Fixture, at, facts, version};

#[tokio::test]
async fn certificates_and_their_versions_are_listed_newest_first() {
    let fixture = Fixture::new().await;
    let a1 = fixture.append("/a", "certificate", 9).await;
    let b1 = fixture.append("/B", "certificate", 8).await;
    fixture.append("/p", "password", 7).await;
    let a2 = fixture.append_transitional("/A", 1).await;
    let listed = fixture.certificates().await;
    let ids: Vec<(&str, Vec<Uuid>)> = listed
        .iter()
        .map(|certificate| (certificate.name.as_str(), version_ids(certificate)))
        .collect();
    assert_eq!(ids, [("/a", vec![a2, a1]), ("/B", vec![b1])]);
    assert_eq!(listed[0].id, fixture.all("/a").await[0].credential_id);
    let by_name = fixture.credentials.certificate(&LookupName::new("A")).await;
    assert_eq!(by_name.unwrap().as_ref(), Some(&listed[0]));
    for name in ["/p", "/absent"] {
        let found = fixture
            .credentials
            .certificate(&LookupName::new(name))
            .await;
        assert_eq!(found.unwrap(), None, "{name}");
    }
}

#[tokio::test]
async fn a_listed_version_has_all_columns_of_its_row() {
    let fixture = Fixture::new().await;
    let new = version(&fixture, "/a", "certificate", 1);
    fixture
        .write(NewVersion {
            is_transitional: true,
            is_generated: Some(true),
            certificate: Some(facts(5)),
            signed_by: Some(CredentialName::parse("/Root").unwrap()),
            ..new
        })
        .await;
    fixture.append("/a", "certificate", 2).await;
    let listed = fixture.certificates().await;
    let [unknown, known] = listed[0].versions.as_slice() else {
        panic!("{listed:?}")
    };
    assert_eq!(
        (known.is_transitional, known.is_generated),
        (true, Some(true))
    );
    assert_eq!(known.facts.as_ref().unwrap().expires_at, at(5));
    assert_eq!(known.signed_by.as_ref().unwrap().as_str(), "/Root");
    assert_eq!(
        (unknown.is_transitional, unknown.is_generated),
        (false, None)
    );
    assert_eq!((&unknown.facts, &unknown.signed_by), (&None, &None));
}

#[tokio::test]
async fn certificates_with_any_version_by_the_signer_are_signed() {
    let fixture = Fixture::new().await;
    for (name, credential_type, signer) in [
        ("/root", "certificate", "/root"),
        ("/leaf", "certificate", "/Root"),
        ("/leaf", "certificate", "/ROOT"),
        ("/leaf", "certificate", "/other"),
        ("/another", "certificate", "/root"),
        ("/else", "certificate", "/root2"),
        ("/key", "wireguard", "/root"),
    ] {
        let new = version(&fixture, name, credential_type, 1);
        let signed = NewVersion {
            certificate: Some(facts(5)),
            signed_by: Some(CredentialName::parse(signer).unwrap()),
            ..new
        };
        fixture.write(signed).await;
    }
    for (signer, expected) in [
        ("ROOT", vec!["/another", "/leaf"]),
        ("/other", vec!["/leaf"]),
        ("/absent", vec![]),
    ] {
        let signer = LookupName::new(signer);
        let mut names: Vec<String> = fixture
            .credentials
            .certificates_signed_by(&signer)
            .await
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        names.sort();
        assert_eq!(names, expected, "{signer:?}");
    }
}

#[tokio::test]
async fn versions_by_credential_equal_versions_by_name() {
    let fixture = Fixture::new().await;
    fixture.append("/a", "certificate", 1).await;
    fixture.append_transitional("/a", 2).await;
    fixture.append("/a", "certificate", 3).await;
    fixture.append("/b", "certificate", 4).await;
    let id = fixture.all("/a").await[0].credential_id;
    for selection in [
        VersionSelection::All,
        VersionSelection::Current,
        VersionSelection::Newest(1),
    ] {
        let ids = |versions: Vec<keywright_core::credential::StoredVersion>| -> Vec<Uuid> {
            versions.iter().map(|version| version.id).collect()
        };
        let name = LookupName::new("/a");
        let by_name = fixture.credentials.versions_by_name(&name, selection);
        let by_credential = fixture.credentials.versions_by_credential(id, selection);
        let expected = ids(by_name.await.unwrap());
        assert!(!expected.is_empty());
        assert_eq!(ids(by_credential.await.unwrap()), expected, "{selection:?}");
    }
    let unknown = fixture
        .credentials
        .versions_by_credential(Uuid::nil(), VersionSelection::All);
    assert!(unknown.await.unwrap().is_empty());
}

fn version_ids(certificate: &ListedCertificate) -> Vec<Uuid> {
    certificate
        .versions
        .iter()
        .map(|version| version.id)
        .collect()
}

#[tokio::test]
async fn certificates_are_counted_by_the_expiry_of_the_newest_version() {
    let fixture = Fixture::new().await;
    for (number, expires_at) in [9, 10, 11, 20, 21, 30, 40, 50, 51, 99]
        .into_iter()
        .enumerate()
    {
        let name = format!("/c/{number}");
        fixture
            .append_certificate(&name, false, 1, expires_at)
            .await;
    }
    // Counts only the newest version of a certificate, and only with a certificate.
    fixture.append_certificate("/c/0", true, 2, 45).await;
    fixture.append("/password", "password", 3).await;
    fixture.append("/without", "certificate", 4).await;
    let moments = [10, 20, 30, 40, 50].map(at);
    let counted = fixture.credentials.certificates_by_expiry(moments).await;
    assert_eq!(counted.unwrap(), [1, 2, 2, 1, 2, 2]);
}

#[tokio::test]
async fn only_certificates_are_found_by_the_id_of_their_credential() {
    let fixture = Fixture::new().await;
    for (name, credential_type) in [("/A", "certificate"), ("/p", "password")] {
        fixture.append(name, credential_type, 1).await;
    }
    let id = async |name: &str| fixture.all(name).await.remove(0).credential_id;
    for (id, name) in [
        (id("/a").await, Some("/A")),
        (id("/p").await, None),
        (Uuid::nil(), None),
    ] {
        let found = fixture.credentials.name_of_certificate(id).await.unwrap();
        assert_eq!(found.as_ref().map(CredentialName::as_str), name);
    }
}

#[tokio::test]
async fn a_name_keeps_the_casing_of_its_first_writer() {
    let fixture = Fixture::new().await;
    fixture.append("/Team/Key", "password", 1).await;
    fixture.append("/TEAM/KEY", "password", 2).await;
    for (asked, name) in [("/team/key", Some("/Team/Key")), ("/team", None)] {
        let asked = LookupName::new(asked);
        let found = fixture.credentials.stored_name(&asked).await.unwrap();
        assert_eq!(found.as_ref().map(CredentialName::as_str), name);
    }
}
