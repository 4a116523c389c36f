//! Listing certificates, and finding the credentials that a CA signed.

use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicUsize, Ordering},
};

use futures_util::future::{join, join_all};
use keywright_core::{
    certificate::CertificateFacts,
    credential::{
        Find, FindNames, IssuerVersion, Lifetime, ListedCertificate, LookupName, StoredVersion,
        VersionAttributes,
    },
    permission::Actor,
    ports::{
        CertificateLists, CredentialKey, CredentialRepository, CredentialSearches, SignedName,
        SignedTypes,
    },
};
use uuid::Uuid;

use crate::support::{Fixture, at, facts, reader, signed_by, version};

#[tokio::test]
async fn credentials_are_counted_by_the_expiry_of_the_newest_version() {
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
    // Counts only the latest version of each credential, and only if it has a certificate.
    fixture.append_certificate("/c/0", true, 2, 45).await;
    fixture.append("/password", "password", 3).await;
    fixture.append("/without", "certificate", 4).await;
    let mut svid = version(&fixture, "/svid", "svid", 5);
    svid.attributes.certificate = Some(facts(20));
    fixture.write(svid).await;
    for (name, expires_at, rotate_at) in [
        ("/svid/expiring", Some(20), None),
        ("/svid/rotating", Some(45), Some(30)),
        ("/svid/unlimited", None, Some(60)),
    ] {
        let mut token = version(&fixture, name, "svid", 6);
        token.attributes.lifetime = Lifetime {
            expires_at: expires_at.map(at),
            rotate_at: rotate_at.map(at),
        };
        fixture.write(token).await;
    }
    let moments = [10, 20, 30, 40, 50].map(at);
    let counted = fixture.database.credentials_by_expiry(moments).await;
    let counted = counted.unwrap();
    let counted = counted.iter().map(|counted| {
        let credential_type = counted.credential_type.as_str();
        (credential_type, counted.has_certificate, counted.counts)
    });
    let mut counted: Vec<_> = counted.collect();
    counted.sort_unstable();
    assert_eq!(
        counted,
        [
            ("certificate", true, [1, 2, 2, 1, 2, 2]),
            ("svid", false, [0, 1, 1, 0, 0, 1]),
            ("svid", true, [0, 1, 0, 0, 0, 0])
        ]
    );
}

#[tokio::test]
async fn the_versions_of_a_listed_certificate_are_received_separately() {
    let fixture = Fixture::new().await;
    let mut expected = Vec::new();
    for time in [1, 2] {
        let id = fixture.append_certificate("/c", false, time, 9).await;
        expected.insert(0, vec![id]);
    }
    let mut received = Vec::new();
    let mut receive = |certificate: ListedCertificate| {
        let ids = certificate.versions.iter().map(|version| version.id);
        received.push(ids.collect::<Vec<_>>());
        ControlFlow::Continue(())
    };
    let types = SignedTypes::Certificates;
    let repository = &fixture.database;
    repository
        .certificates(&reader(), types, &mut receive)
        .await
        .unwrap();
    assert_eq!(received, expected);
}

/// Adds a certificate that this credential signed.
async fn sign(fixture: &Fixture, name: &str, signer: &str) {
    let certificate = CertificateFacts {
        is_certificate_authority: false,
        ..facts(5)
    };
    let attributes = VersionAttributes {
        certificate: Some(certificate),
        ..signed_by(signer)
    };
    fixture
        .append_with(name, "certificate", 1, attributes)
        .await;
}

/// Adds a generated version of another type that this credential signed, without facts about the signed value.
async fn sign_as(fixture: &Fixture, name: &str, credential_type: &str, signer: &str) {
    let attributes = VersionAttributes {
        is_generated: Some(true),
        ..signed_by(signer)
    };
    fixture
        .append_with(name, credential_type, 1, attributes)
        .await;
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
        .database
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
async fn other_types_are_found_by_their_newest_version_and_are_no_cas() {
    let fixture = Fixture::new().await;
    for (name, signer) in [
        ("/Moved", "/root"),
        ("/Moved", "/other"),
        ("/Svid", "/Root"),
    ] {
        let attributes = VersionAttributes {
            is_generated: Some(true),
            issuer: Some(IssuerVersion {
                version_id: Some(Uuid::from_u128(7)),
                expires_at: at(9),
            }),
            certificate: Some(facts(5)),
            ..signed_by(signer)
        };
        fixture.append_with(name, "wireguard", 1, attributes).await;
    }
    sign_as(&fixture, "/old", "wireguard", "/root").await;
    sign(&fixture, "/leaf", "/root").await;
    let found = newest_of_types(&fixture, &["/root"], SignedTypes::All, 10).await;
    assert_eq!(names(&found), ["/Svid", "/old", "/leaf"]);
    let signers = [LookupName::new("/root")];
    let names = fixture
        .database
        .names_signed_by(&reader(), &signers, SignedTypes::All, 10)
        .await;
    assert!(names.unwrap().iter().all(|name| !name.is_authority));
    let issued = fixture
        .database
        .issued_by(&reader(), &signers[0])
        .await
        .unwrap();
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
async fn signed_names_match_the_newest_versions_and_mark_cas() {
    let fixture = Fixture::new().await;
    for (name, is_certificate_authority) in [("/Nested", true), ("/leaf", false)] {
        let certificate = CertificateFacts {
            is_certificate_authority,
            ..facts(1)
        };
        let attributes = VersionAttributes {
            certificate: Some(certificate),
            ..signed_by("/root")
        };
        fixture
            .append_with(name, "certificate", 1, attributes)
            .await;
    }
    sign(&fixture, "/absent-facts", "/root").await;
    let signers = [LookupName::new("/ROOT")];
    for count_max in [2, 10] {
        let names = fixture
            .database
            .names_signed_by(&reader(), &signers, SignedTypes::Certificates, count_max)
            .await
            .unwrap();
        let versions = newest_signed_by(&fixture, &["/root"], count_max).await;
        let expected = versions.into_iter().map(|version| SignedName {
            is_authority: version.name.as_str() == "/Nested",
            name: version.name,
        });
        assert_eq!(names, expected.collect::<Vec<_>>());
    }
    let none = fixture
        .database
        .names_signed_by(&reader(), &[], SignedTypes::All, 10)
        .await
        .unwrap();
    assert!(none.is_empty());
}

#[tokio::test]
async fn one_actors_long_reads_do_not_fill_the_queue() {
    let fixture = Fixture::new().await;
    let (repository, busy) = (&fixture.database, &Actor::client("busy").unwrap());
    let (name, types) = (&LookupName::new("/a"), SignedTypes::All);
    let signers = &[LookupName::new("/a")];
    let names: &Vec<_> = &(0..20)
        .map(|number| LookupName::new(&format!("/{number}")))
        .collect();
    let key = CredentialKey::Name(name);
    let find = Find {
        names: FindNames::below("/"),
        expires_until: None,
    };
    let ended = AtomicUsize::new(0);
    let read = async |kind| {
        let read = match kind {
            0 => {
                let receive = &mut |_| ControlFlow::Continue(());
                repository.certificate(busy, name, types, receive).await
            }
            1 => repository
                .certificates_signed_by(busy, name)
                .await
                .map(drop),
            2 => repository.issued_by(busy, name).await.map(drop),
            3 => repository
                .names_signed_by(busy, signers, types, 1)
                .await
                .map(drop),
            4 => repository.size_of_versions(busy, key, 1).await.map(drop),
            5 => repository.newest_by_names(busy, names).await.map(drop),
            6 => repository
                .newest_sizes_by_names(busy, names)
                .await
                .map(drop),
            _ => repository.list(busy, "/", "0", 1_000).await.map(drop),
        };
        read.unwrap();
        ended.fetch_add(1, Ordering::Relaxed);
    };
    let all_reads = |count: usize| join_all((0..count).map(|number| read(number % 8)));
    // Opens connections, which takes longer than many reads.
    join(all_reads(8), fixture.find(&find)).await.1.unwrap();
    ended.store(0, Ordering::Relaxed);
    let reads = all_reads(READS);
    let other = async {
        // Reads may have ended while others were started.
        let ended_before = ended.load(Ordering::Relaxed);
        fixture.find(&find).await.unwrap();
        (ended_before, ended.load(Ordering::Relaxed))
    };
    let (_, (before, after)) = join(reads, other).await;
    assert!(after - before < (READS - before) / 2, "{before}, {after}");
}

/// The number of reads of one actor.
const READS: usize = 200;
