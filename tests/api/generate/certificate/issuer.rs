//! The CA that signs.

use keywright_harness::Server;
use rcgen::{DnType, DnValue, KeyIdMethod};
use serde_json::json;
use x509_parser::extensions::ParsedExtension;

use crate::{
    keys::with_certificate,
    made_elsewhere::{authority, authority_changed, self_signed_leaf},
};

#[tokio::test]
async fn an_absent_or_non_certificate_ca_is_404_and_named() {
    let server = Server::start().await;
    server.set("/text", "value", json!("v")).await.expect(200);
    for ca in ["/nowhere", "/text", "/not a name"] {
        let parameters = json!({"common_name": "leaf", "ca": ca});
        let error = server
            .generate("/a", "certificate", parameters)
            .await
            .expect(404)
            .error();
        assert!(error.contains("certificate authority"), "{ca}: {error}");
    }
}

#[tokio::test]
async fn a_certificate_that_is_not_a_ca_cannot_sign() {
    let server = Server::start().await;
    let lone = json!({"common_name": "lone", "self_sign": true});
    server
        .generate("/made", "certificate", lone)
        .await
        .expect(200);
    let set = self_signed_leaf("set");
    let set = json!({"certificate": set.certificate, "private_key": set.private_key});
    server.set("/set", "certificate", set).await.expect(200);
    for ca in ["/made", "/set"] {
        let parameters = json!({"common_name": "leaf", "ca": ca});
        server
            .generate("/a", "certificate", parameters)
            .await
            .expect(400)
            .error();
    }
}

#[tokio::test]
async fn a_ca_without_its_private_key_cannot_sign() {
    let server = Server::start().await;
    let root = authority("root");
    let value = json!({"certificate": root.certificate});
    server.set("/root", "certificate", value).await.expect(200);
    let key_alone = json!({"private_key": root.private_key});
    server
        .set("/key", "certificate", key_alone)
        .await
        .expect(200);
    for ca in ["/root", "/key"] {
        let parameters = json!({"common_name": "leaf", "ca": ca});
        server
            .generate("/a", "certificate", parameters)
            .await
            .expect(400)
            .error();
    }
}

#[tokio::test]
async fn a_set_ca_signs_too() {
    let server = Server::start().await;
    let root = authority("root");
    let value = json!({"certificate": root.certificate, "private_key": root.private_key});
    server.set("/root", "certificate", value).await.expect(200);
    let parameters = json!({"common_name": "leaf", "ca": "/root"});
    let leaf = server
        .generate("/leaf", "certificate", parameters)
        .await
        .expect(200)
        .json();
    assert_eq!(leaf["value"]["ca"], root.certificate);
    with_certificate(&root.certificate, |root| {
        with_certificate(leaf["value"]["certificate"].as_str().unwrap(), |leaf| {
            assert!(leaf.verify_signature(Some(root.public_key())).is_ok());
        });
    });
}

#[tokio::test]
async fn the_ca_name_needs_no_slash_and_no_casing() {
    let server = Server::start().await;
    let root = json!({"common_name": "root", "is_ca": true});
    let root = server
        .generate("/Path/Root", "certificate", root)
        .await
        .expect(200)
        .json();
    let mut made = None;
    for ca in ["/Path/Root", "Path/Root", "path/ROOT"] {
        let parameters = json!({"common_name": "leaf", "ca": ca});
        let leaf = server
            .generate("/leaf", "certificate", parameters)
            .await
            .expect(200)
            .json();
        assert_eq!(leaf["value"]["ca"], root["value"]["certificate"]);
        let first = made.get_or_insert_with(|| leaf["id"].clone());
        assert_eq!(&leaf["id"], first, "{ca}");
    }
}

#[tokio::test]
async fn an_empty_ca_is_absent() {
    let server = Server::start().await;
    for parameters in [
        json!({"common_name": "a", "ca": "", "self_sign": true}),
        json!({"common_name": "a", "ca": "", "is_ca": true}),
    ] {
        let answer = server
            .generate_in_mode("overwrite", "/a", "certificate", parameters)
            .await;
        assert_eq!(answer.expect(200).json()["self_signed"], true);
    }
}

#[tokio::test]
async fn a_chain_is_signed_link_by_link() {
    let server = Server::start().await;
    let mut issuer: Option<String> = None;
    let mut previous: Option<String> = None;
    for name in ["root", "middle", "lower", "leaf"] {
        let mut parameters = json!({"common_name": name, "is_ca": name != "leaf"});
        if let Some(issuer) = &issuer {
            parameters["ca"] = json!(issuer);
        }
        let version = server
            .generate(name, "certificate", parameters)
            .await
            .expect(200)
            .json();
        let certificate = version["value"]["certificate"].as_str().unwrap().to_owned();
        let ca = previous.as_ref().unwrap_or(&certificate);
        assert_eq!(version["value"]["ca"], *ca);
        with_certificate(ca, |ca| {
            with_certificate(&certificate, |certificate| {
                assert!(certificate.verify_signature(Some(ca.public_key())).is_ok());
                assert_eq!(certificate.issuer().as_raw(), ca.subject().as_raw());
            });
        });
        (issuer, previous) = (Some(name.to_owned()), Some(certificate));
    }
}

#[tokio::test]
async fn a_leaf_may_outlive_its_ca() {
    let server = Server::start().await;
    let root = json!({"common_name": "root", "is_ca": true, "duration": 1});
    let root = server
        .generate("/root", "certificate", root)
        .await
        .expect(200)
        .json();
    let leaf = json!({"common_name": "leaf", "ca": "/root", "duration": 3_650});
    let leaf = server
        .generate("/leaf", "certificate", leaf)
        .await
        .expect(200)
        .json();
    assert!(leaf["expiry_date"].as_str() > root["expiry_date"].as_str());
}

/// Neither is recomputed: another encoding of the name and another scheme for key identifiers are preserved.
#[tokio::test]
async fn leaves_carry_a_set_cas_encoded_name_and_key_identifier() {
    let server = Server::start().await;
    let key_identifier = vec![7, 6, 5, 4, 3];
    let root = authority_changed("root", |parameters| {
        let name = &mut parameters.distinguished_name;
        let wide = DnValue::BmpString("Ämter".try_into().unwrap());
        name.push(DnType::OrganizationName, wide);
        let old = DnValue::TeletexString("old".try_into().unwrap());
        name.push(DnType::LocalityName, old);
        parameters.key_identifier_method = KeyIdMethod::PreSpecified(key_identifier.clone());
    });
    let value = json!({"certificate": root.certificate, "private_key": root.private_key});
    server.set("/root", "certificate", value).await.expect(200);
    let parameters = json!({"common_name": "leaf", "ca": "/root", "key_type": "ecdsa-p256"});
    let answer = server.generate("/leaf", "certificate", parameters).await;
    let made = answer.expect(200).json();
    let regenerated = server.regenerate("/leaf").await.expect(200).json();
    let subject = with_certificate(&root.certificate, |root| root.subject().as_raw().to_vec());
    for version in [made, regenerated] {
        with_certificate(version["value"]["certificate"].as_str().unwrap(), |leaf| {
            assert_eq!(leaf.issuer().as_raw(), subject);
            let found =
                leaf.extensions()
                    .iter()
                    .find_map(|extension| match extension.parsed_extension() {
                        ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.as_ref(),
                        _ => None,
                    });
            assert_eq!(found.map(|id| id.0), Some(key_identifier.as_slice()));
        });
    }
}
