//! Regenerating all certificates signed by a CA.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{BULK_REGENERATE, names};
use crate::{
    certificates::{Certificate, assert_signed_by},
    external_certificates::{self, Signing},
    keys::{certificate_days, with_certificate},
};

// The selection of certificates and the contents of their new versions.

#[tokio::test]
async fn exactly_the_certificates_below_the_ca_are_regenerated_once() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_authority("/Middle", Some("/root")).await;
    server.generate_authority("/lower", Some("/middle")).await;
    server.generate_authority("/other", None).await;
    server.generate_leaf("/z", "/root").await;
    server.generate_leaf("/B", "/lower").await;
    server.generate_leaf("/a", "/Middle").await;
    server.generate_leaf("/elsewhere", "/other").await;
    let response = server.bulk_regenerate("/root").await;
    assert_eq!(names(&response), ["/a", "/B", "/lower", "/Middle", "/z"]);
    for (name, count) in [
        ("/root", 1),
        ("/other", 1),
        ("/elsewhere", 1),
        ("/a", 2),
        ("/b", 2),
        ("/lower", 2),
        ("/middle", 2),
        ("/z", 2),
    ] {
        let versions = server.versions(name).await;
        assert_eq!(versions.len(), count, "{name}");
    }
    let response = server.bulk_regenerate("/lower").await;
    assert_eq!(names(&response), ["/B"]);
}

#[tokio::test]
async fn a_path_restricts_the_regeneration_below_a_ca() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    let inner = server.generate_authority("/pki/Inner", Some("/root")).await;
    server.generate_authority("/Team/ca", Some("/root")).await;
    server.generate_leaf("/Team/a", "/pki/inner").await;
    server.generate_leaf("/Team/b", "/root").await;
    server.generate_leaf("/Team/c", "/team/ca").await;
    server.generate_leaf("/teams", "/root").await;
    let body = json!({"signed_by": "/root", "path": "team/"});
    let response = server.post(BULK_REGENERATE, body.clone()).await;
    let actual = names(&response);
    assert_eq!(actual, ["/Team/a", "/Team/b", "/Team/c", "/Team/ca"]);
    assert_signed_by(&server.newest("/Team/a").await, &inner);
    let ca = server.newest("/Team/ca").await;
    assert_signed_by(&server.newest("/Team/c").await, &ca);
    for name in ["/pki/Inner", "/teams"] {
        assert_eq!(server.versions(name).await.len(), 1, "{name}");
    }

    // The caller may not read the CA outside of the path, and does not learn which credentials it signed.
    let caller = server.as_client("app").await;
    let actor = caller.actor();
    server.grant("/root", actor, &["read"]).await;
    server.grant("/Team/*", actor, &["write"]).await;
    let response = caller.post(BULK_REGENERATE, body.clone()).await;
    response.expect(404);
    server.grant("/Team/ca", actor, &["read"]).await;
    let response = caller.post(BULK_REGENERATE, body).await;
    assert_eq!(names(&response), ["/Team/b", "/Team/c", "/Team/ca"]);
    let body = json!({"signed_by": "/root"});
    caller.post(BULK_REGENERATE, body).await.expect(403);
}

#[tokio::test]
async fn formerly_signed_certificates_regenerate_from_newest_version() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    let other = server.generate_authority("/other", None).await;
    server.generate_leaf("/moved", "/root").await;
    server.generate_leaf("/moved", "/other").await;
    server.generate_leaf("/own", "/root").await;
    let own = json!({"self_sign": true, "duration": 7});
    server.issued("/own", own).await;
    let response = server.bulk_regenerate("/root").await;
    assert_eq!(names(&response), ["/moved", "/own"]);
    assert_signed_by(&server.newest("/moved").await, &other);
    let own = server.newest("/own").await;
    assert_signed_by(&own, &own);
    assert_eq!(days(&own), 7);
}

#[tokio::test]
async fn the_newest_version_is_regenerated_even_if_transitional() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    let leaf = json!({"common_name": "leaf", "ca": "/root", "duration": 17});
    let leaf = Certificate::generate(&server, "/leaf", leaf).await;
    let body = json!({"set_as_transitional": true, "duration": 30});
    let transitional = leaf.regenerate(body).await.expect(200).json();
    assert_eq!(names(&server.bulk_regenerate("/root").await), ["/leaf"]);
    let after = server.newest("/leaf").await;
    assert_eq!(days(&after), 30);
    let current = leaf.current().await;
    assert_eq!(current, [after, server.versions("/leaf").await[1].clone()]);
    assert_eq!(current[1]["id"], transitional["id"]);
}

#[tokio::test]
async fn new_versions_keep_parameters_and_drop_metadata() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    let body = json!({
        "name": "/leaf", "type": "certificate", "metadata": {"kept": false},
        "parameters": {
            "common_name": "leaf", "ca": "/root", "duration": 17, "key_type": "ecdsa-p384",
            "alternative_names": ["leaf.example"], "key_usage": ["digital_signature"],
        },
    });
    let before = server.post("/api/v1/data", body).await.expect(200).json();
    let response = server.bulk_regenerate("/root").await;
    assert_eq!(names(&response), ["/leaf"]);
    let after = server.newest("/leaf").await;
    assert_eq!(after["metadata"], Value::Null);
    assert_eq!(after["transitional"], false);
    assert_eq!(after["generated"], true);
    assert_eq!(days(&after), 17);
    for field in ["certificate", "private_key"] {
        assert_ne!(after["value"][field], before["value"][field]);
    }
    assert_eq!(subject_and_names(&after), subject_and_names(&before));
    let versions = server.versions("/leaf").await;
    assert_eq!(versions[1]["metadata"], json!({"kept": false}));
}

#[tokio::test]
async fn a_set_certificate_is_regenerated_from_its_own_contents() {
    let server = Server::reused().await;
    let root = external_certificates::authority("root");
    let leaf = root.sign_leaf("leaf of another tool");
    for (name, value) in [
        ("/root", root.value()),
        (
            "/leaf",
            json!({"certificate": leaf.certificate, "ca_name": "/root"}),
        ),
    ] {
        server.stored(name, "certificate", value).await;
    }
    let response = server.bulk_regenerate("/root").await;
    assert_eq!(names(&response), ["/leaf"]);
    let after = server.newest("/leaf").await;
    assert_eq!(after["generated"], true);
    assert_eq!(days(&after), 400);
    assert_signed_by(&after, &server.newest("/root").await);
}

fn days(version: &Value) -> i64 {
    certificate_days(version["value"]["certificate"].as_str().unwrap())
}

fn subject_and_names(version: &Value) -> (String, String) {
    with_certificate(
        version["value"]["certificate"].as_str().unwrap(),
        |certificate| {
            let names = certificate.subject_alternative_name().unwrap().unwrap();
            (
                certificate.subject().to_string(),
                format!("{:?}", names.value),
            )
        },
    )
}

// The CA version that signs.

/// The leaf is found first because the root signed an old version of it; its newest version was signed two levels
/// below.
#[tokio::test]
async fn each_certificate_is_regenerated_after_its_signer() {
    let server = Server::reused().await;
    let root = server.generate_authority("/root", None).await;
    server.generate_leaf("/leaf", "/root").await;
    server.generate_authority("/a", Some("/root")).await;
    server.generate_authority("/b", Some("/a")).await;
    server.generate_leaf("/leaf", "/b").await;
    let response = server.bulk_regenerate("/root").await;
    assert_eq!(names(&response), ["/a", "/b", "/leaf"]);
    assert_signed_by(&server.newest("/a").await, &root);
    for (name, ca) in [("/leaf", "/b"), ("/b", "/a")] {
        assert_signed_by(&server.newest(name).await, &server.newest(ca).await);
    }
}

#[tokio::test]
async fn cas_that_signed_each_other_are_regenerated_once() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_authority("/x", Some("/root")).await;
    let old_y = server.generate_authority("/y", Some("/x")).await;
    server.generate_authority("/x", Some("/y")).await;
    let response = server.bulk_regenerate("/root").await;
    assert_eq!(names(&response), ["/x", "/y"]);
    let (x, y) = (server.newest("/x").await, server.newest("/y").await);
    assert_signed_by(&x, &old_y);
    assert_signed_by(&y, &x);
    let response = server.bulk_regenerate("/x").await;
    assert_eq!(names(&response), ["/y"]);
}

#[tokio::test]
async fn a_transitional_version_signs_only_after_promotion() {
    let server = Server::reused().await;
    let active = server.generate_authority("/root", None).await;
    server.generate_leaf("/leaf", "/root").await;
    let root = Certificate::named(&server, "/root").await;
    let body = json!({"set_as_transitional": true});
    let transitional = root.regenerate(body).await.expect(200).json();
    server.bulk_regenerate("/root").await.expect(200);
    assert_signed_by(&server.newest("/leaf").await, &active);
    let to_old = active["id"].clone();
    root.move_transitional(to_old).await.expect(200);
    server.bulk_regenerate("/root").await.expect(200);
    assert_signed_by(&server.newest("/leaf").await, &transitional);
}

#[tokio::test]
async fn a_ca_signed_by_its_old_version_is_renewed_by_its_active_one() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    server.generate_authority("/a", Some("/root")).await;
    let active = server.generate_authority("/a", Some("/a")).await;
    server.generate_leaf("/leaf", "/a").await;
    let response = server.bulk_regenerate("/root").await;
    assert_eq!(names(&response), ["/a", "/leaf"]);
    let renewed = server.newest("/a").await;
    assert_signed_by(&renewed, &active);
    assert_eq!(renewed["self_signed"], false);
    assert_signed_by(&server.newest("/leaf").await, &renewed);
}

// Valid and invalid requests.

#[tokio::test]
async fn an_unknown_ca_or_one_without_leaves_yields_an_empty_list() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    for name in ["/root", "/nowhere", "nowhere", "/not a name", "//"] {
        let response = server.bulk_regenerate(name).await.expect(200);
        assert_eq!(response.json(), json!({"regenerated_credentials": []}));
    }
    assert_eq!(server.versions("/root").await.len(), 1);
}

#[tokio::test]
async fn the_name_matches_without_slash_and_in_any_casing() {
    let server = Server::reused().await;
    server.generate_authority("/Path/Root", None).await;
    server.generate_leaf("/Leaf", "/path/root").await;
    for name in ["/Path/Root", "Path/Root", "path/root", "/PATH/ROOT"] {
        let response = server.bulk_regenerate(name).await;
        assert_eq!(names(&response), ["/Leaf"], "{name}");
    }
    assert_eq!(server.versions("/leaf").await.len(), 5);
}
