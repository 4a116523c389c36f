//! Regenerating all certificates signed by a CA.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{BULK_REGENERATE, authority, leaf, names};
use crate::{
    certificates::{Certificate, assert_signed_by},
    external_certificates::{self, Signing},
    given,
    keys::{certificate_days, with_certificate},
};

// The selection of certificates and the contents of their new versions.

#[tokio::test]
async fn exactly_the_certificates_below_the_ca_are_regenerated_once() {
    let server = Server::reused().await;
    authority(&server, "/root", None).await;
    authority(&server, "/Middle", Some("/root")).await;
    authority(&server, "/lower", Some("/middle")).await;
    authority(&server, "/other", None).await;
    leaf(&server, "/z", "/root").await;
    leaf(&server, "/B", "/lower").await;
    leaf(&server, "/a", "/Middle").await;
    leaf(&server, "/elsewhere", "/other").await;
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
        let versions = given::versions(&server, name).await;
        assert_eq!(versions.len(), count, "{name}");
    }
    let response = server.bulk_regenerate("/lower").await;
    assert_eq!(names(&response), ["/B"]);
}

#[tokio::test]
async fn a_path_restricts_the_regeneration_below_a_ca() {
    let server = Server::reused().await;
    authority(&server, "/root", None).await;
    let inner = authority(&server, "/pki/Inner", Some("/root")).await;
    authority(&server, "/Team/ca", Some("/root")).await;
    leaf(&server, "/Team/a", "/pki/inner").await;
    leaf(&server, "/Team/b", "/root").await;
    leaf(&server, "/Team/c", "/team/ca").await;
    leaf(&server, "/teams", "/root").await;
    let body = json!({"signed_by": "/root", "path": "team/"});
    let response = server.post(BULK_REGENERATE, body.clone()).await;
    assert_eq!(
        names(&response),
        ["/Team/a", "/Team/b", "/Team/c", "/Team/ca"]
    );
    assert_signed_by(&given::newest(&server, "/Team/a").await, &inner);
    let ca = given::newest(&server, "/Team/ca").await;
    assert_signed_by(&given::newest(&server, "/Team/c").await, &ca);
    for name in ["/pki/Inner", "/teams"] {
        assert_eq!(given::versions(&server, name).await.len(), 1, "{name}");
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
    authority(&server, "/root", None).await;
    let other = authority(&server, "/other", None).await;
    leaf(&server, "/moved", "/root").await;
    leaf(&server, "/moved", "/other").await;
    leaf(&server, "/own", "/root").await;
    let own = json!({"self_sign": true, "duration": 7});
    given::generate_certificate(&server, "/own", own).await;
    let response = server.bulk_regenerate("/root").await;
    assert_eq!(names(&response), ["/moved", "/own"]);
    assert_signed_by(&given::newest(&server, "/moved").await, &other);
    let own = given::newest(&server, "/own").await;
    assert_signed_by(&own, &own);
    assert_eq!(days(&own), 7);
}

#[tokio::test]
async fn the_newest_version_is_regenerated_even_if_transitional() {
    let server = Server::reused().await;
    authority(&server, "/root", None).await;
    let leaf = json!({"common_name": "leaf", "ca": "/root", "duration": 17});
    let leaf = Certificate::generate(&server, "/leaf", leaf).await;
    let body = json!({"set_as_transitional": true, "duration": 30});
    let transitional = leaf.regenerate(body).await.expect(200).json();
    assert_eq!(names(&server.bulk_regenerate("/root").await), ["/leaf"]);
    let after = given::newest(&server, "/leaf").await;
    assert_eq!(days(&after), 30);
    let current = leaf.current().await;
    assert_eq!(
        current,
        [after, given::versions(&server, "/leaf").await[1].clone()]
    );
    assert_eq!(current[1]["id"], transitional["id"]);
}

#[tokio::test]
async fn new_versions_keep_parameters_and_drop_metadata() {
    let server = Server::reused().await;
    authority(&server, "/root", None).await;
    let body = json!({
        "name": "/leaf", "type": "certificate", "metadata": {"kept": false},
        "parameters": {
            "common_name": "leaf", "ca": "/root", "duration": 17, "key_length": 3072,
            "alternative_names": ["leaf.example"], "key_usage": ["digital_signature"],
        },
    });
    let before = server.post("/api/v1/data", body).await.expect(200).json();
    let response = server.bulk_regenerate("/root").await;
    assert_eq!(names(&response), ["/leaf"]);
    let after = given::newest(&server, "/leaf").await;
    assert_eq!(after["metadata"], Value::Null);
    assert_eq!(after["transitional"], false);
    assert_eq!(after["generated"], true);
    assert_eq!(days(&after), 17);
    for field in ["certificate", "private_key"] {
        assert_ne!(after["value"][field], before["value"][field]);
    }
    assert_eq!(subject_and_names(&after), subject_and_names(&before));
    let versions = given::versions(&server, "/leaf").await;
    assert_eq!(versions[1]["metadata"], json!({"kept": false}));
}

#[tokio::test]
async fn a_set_certificate_is_regenerated_from_its_own_contents() {
    let server = Server::reused().await;
    let root = external_certificates::authority("root");
    let leaf = root.sign_leaf("leaf of another tool");
    for (name, value) in [
        (
            "/root",
            json!({"certificate": root.certificate, "private_key": root.private_key}),
        ),
        (
            "/leaf",
            json!({"certificate": leaf.certificate, "ca_name": "/root"}),
        ),
    ] {
        given::set(&server, name, "certificate", value).await;
    }
    let response = server.bulk_regenerate("/root").await;
    assert_eq!(names(&response), ["/leaf"]);
    let after = given::newest(&server, "/leaf").await;
    assert_eq!(after["generated"], true);
    assert_eq!(days(&after), 400);
    assert_signed_by(&after, &given::newest(&server, "/root").await);
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

#[tokio::test]
async fn a_regenerated_ca_signs_with_its_new_version() {
    let server = Server::reused().await;
    let root = authority(&server, "/root", None).await;
    for (name, ca) in [("/a", "/root"), ("/b", "/a"), ("/c", "/b")] {
        authority(&server, name, Some(ca)).await;
    }
    leaf(&server, "/leaf", "/c").await;
    let response = server.bulk_regenerate("/root").await;
    assert_eq!(names(&response), ["/a", "/b", "/c", "/leaf"]);
    assert_signed_by(&given::newest(&server, "/a").await, &root);
    for (name, ca) in [("/b", "/a"), ("/c", "/b"), ("/leaf", "/c")] {
        let (version, ca) = (
            given::newest(&server, name).await,
            given::newest(&server, ca).await,
        );
        assert_signed_by(&version, &ca);
    }
}

/// The leaf is found first because the root signed an old version of it; its newest version was signed two levels
/// below.
#[tokio::test]
async fn each_certificate_is_regenerated_after_its_signer() {
    let server = Server::reused().await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    authority(&server, "/a", Some("/root")).await;
    authority(&server, "/b", Some("/a")).await;
    leaf(&server, "/leaf", "/b").await;
    let response = server.bulk_regenerate("/root").await;
    assert_eq!(names(&response), ["/a", "/b", "/leaf"]);
    for (name, ca) in [("/leaf", "/b"), ("/b", "/a")] {
        assert_signed_by(
            &given::newest(&server, name).await,
            &given::newest(&server, ca).await,
        );
    }
}

#[tokio::test]
async fn cas_that_signed_each_other_are_regenerated_once() {
    let server = Server::reused().await;
    authority(&server, "/root", None).await;
    authority(&server, "/x", Some("/root")).await;
    let old_y = authority(&server, "/y", Some("/x")).await;
    authority(&server, "/x", Some("/y")).await;
    let response = server.bulk_regenerate("/root").await;
    assert_eq!(names(&response), ["/x", "/y"]);
    let (x, y) = (
        given::newest(&server, "/x").await,
        given::newest(&server, "/y").await,
    );
    assert_signed_by(&x, &old_y);
    assert_signed_by(&y, &x);
    let response = server.bulk_regenerate("/x").await;
    assert_eq!(names(&response), ["/y"]);
}

#[tokio::test]
async fn a_transitional_version_signs_only_after_promotion() {
    let server = Server::reused().await;
    let active = authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    let root = Certificate::named(&server, "/root").await;
    let body = json!({"set_as_transitional": true});
    let transitional = root.regenerate(body).await.expect(200).json();
    server.bulk_regenerate("/root").await.expect(200);
    assert_signed_by(&given::newest(&server, "/leaf").await, &active);
    let to_old = active["id"].clone();
    root.move_transitional(to_old).await.expect(200);
    server.bulk_regenerate("/root").await.expect(200);
    assert_signed_by(&given::newest(&server, "/leaf").await, &transitional);
}

#[tokio::test]
async fn a_ca_signed_by_its_old_version_is_renewed_by_its_active_one() {
    let server = Server::reused().await;
    authority(&server, "/root", None).await;
    authority(&server, "/a", Some("/root")).await;
    let active = authority(&server, "/a", Some("/a")).await;
    leaf(&server, "/leaf", "/a").await;
    let response = server.bulk_regenerate("/root").await;
    assert_eq!(names(&response), ["/a", "/leaf"]);
    let renewed = given::newest(&server, "/a").await;
    assert_signed_by(&renewed, &active);
    assert_eq!(renewed["self_signed"], false);
    assert_signed_by(&given::newest(&server, "/leaf").await, &renewed);
}

#[tokio::test]
async fn a_ca_that_names_itself_as_ca_is_signed_by_its_active_version() {
    let server = Server::reused().await;
    authority(&server, "/root", None).await;
    authority(&server, "/a", Some("/root")).await;
    let old = external_certificates::authority("a");
    let new = old.sign_authority("a");
    for (made, ca_name) in [(&old, ""), (&new, "/a")] {
        let value = json!({
            "certificate": made.certificate, "private_key": made.private_key, "ca_name": ca_name,
        });
        given::set(&server, "/a", "certificate", value).await;
    }
    let active = given::newest(&server, "/a").await;
    let response = server.bulk_regenerate("/root").await;
    assert_eq!(names(&response), ["/a"]);
    assert_signed_by(&given::newest(&server, "/a").await, &active);
}

// Valid and invalid requests.

#[tokio::test]
async fn an_unknown_ca_or_one_without_leaves_yields_an_empty_list() {
    let server = Server::reused().await;
    authority(&server, "/root", None).await;
    for name in ["/root", "/nowhere", "nowhere", "/not a name", "//"] {
        let response = server.bulk_regenerate(name).await.expect(200);
        assert_eq!(response.json(), json!({"regenerated_credentials": []}));
    }
    assert_eq!(given::versions(&server, "/root").await.len(), 1);
}

#[tokio::test]
async fn the_name_matches_without_slash_and_in_any_casing() {
    let server = Server::reused().await;
    authority(&server, "/Path/Root", None).await;
    leaf(&server, "/Leaf", "/path/root").await;
    for name in ["/Path/Root", "Path/Root", "path/root", "/PATH/ROOT"] {
        let response = server.bulk_regenerate(name).await;
        assert_eq!(names(&response), ["/Leaf"], "{name}");
    }
    assert_eq!(given::versions(&server, "/leaf").await.len(), 5);
}

#[tokio::test]
async fn a_missing_name_is_400() {
    let server = Server::reused().await;
    for body in [
        json!({}),
        json!({"signed_by": null}),
        json!({"signed_by": ""}),
        json!({"signed_by": "/"}),
        json!({"signed_by": 7}),
        json!({"signed_by": ["/root"]}),
    ] {
        let response = server.post(BULK_REGENERATE, body).await;
        response.expect_error(400, "signed_by");
    }
    for body in [json!([]), json!("/root")] {
        let response = server.post(BULK_REGENERATE, body).await;
        response.expect(400).error();
    }
}
