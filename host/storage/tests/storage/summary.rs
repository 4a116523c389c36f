//! Counting credentials by type, and listing CAs with a transitional version.

use std::ops::ControlFlow;

use keywright_core::{
    certificate::CertificateFacts,
    credential::{CredentialName, CredentialType, VersionAttributes},
    permission::PermissionPath,
    ports::{CredentialRepository, NewVersion},
};

use crate::support::{Fixture, facts, reader, version};

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
            .credentials
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
            .credentials
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
        .credentials
        .transitional_authorities(&actor, &mut receive);
    finding.await.unwrap();
    assert_eq!(names, ["/b", "/a"]);
}
