//! The field `ca` with both certificates of a CA during its rotation, and the versions that each step of the rotation
//! adds to certificates.

use keywright_harness::{Options, QUICK_KEY, Server, TestCertificate};
use serde_json::{Value, json};

use super::{CONCATENATED, both, ca, certificate, options, server};
use crate::{
    certificates::Certificate,
    external_certificates::{self, Signing},
    given,
};

/// Generates `/root` and a transitional version of it; returns both certificates, the active one first.
async fn root_in_rotation(server: &Server) -> (String, String) {
    let root = Certificate::generate_root(server, "/root").await;
    let old = server.newest("/root").await;
    let body = json!({"set_as_transitional": true});
    let new = root.regenerate(body).await.expect(200).json();
    (certificate(&old), certificate(&new))
}

fn leaf_parameters() -> Value {
    json!({"ca": "/root"})
}

#[tokio::test]
async fn responses_contain_both_ca_versions_the_signing_one_first() {
    let server = server(CONCATENATED).await;
    let (old, new) = root_in_rotation(&server).await;
    let both = both(&old, &new);
    let generated = server.issued("/leaf", leaf_parameters()).await;
    assert_eq!(ca(&generated), both);
    let kept = server.issued("/leaf", leaf_parameters()).await;
    assert_eq!(kept["id"], generated["id"]);
    assert_eq!(kept["value"], generated["value"]);

    let leaf = Certificate::named(&server, "/leaf").await;
    let regenerated = server.regenerated("/leaf").await;
    assert_eq!(ca(&regenerated), both);
    let regenerated = leaf.regenerate(json!({})).await.expect(200).json();
    assert_eq!(ca(&regenerated), both);
    let body = json!({"name": "/leaf", "regenerate": true});
    let through_data = server.post("/api/v1/data", body).await.expect(200).json();
    assert_eq!(ca(&through_data), both);

    for path in [
        "/api/v1/data?name=/leaf".to_owned(),
        "/api/v1/data?name=/leaf&current=true".to_owned(),
        format!("/api/v1/data/{}", given::id(&generated)),
        leaf.path("versions"),
        leaf.path("versions?current=true"),
    ] {
        let response = server.get_json(&path).await;
        let response = response.get("data").cloned().unwrap_or(response);
        let versions = match response {
            Value::Array(versions) => versions,
            version => vec![version],
        };
        assert!(!versions.is_empty(), "{path}");
        for version in versions {
            assert_eq!(ca(&version), both, "{path}");
            let actual = given::fields(&version["value"]);
            assert_eq!(actual, ["ca", "certificate", "private_key"]);
        }
    }
}

#[tokio::test]
async fn a_key_in_the_text_of_a_ca_is_not_in_other_credentials() {
    let server = server(CONCATENATED).await;
    let [root, next] = [(); 2].map(|()| external_certificates::authority("root"));
    let with_key = |ca: &TestCertificate| {
        let text = format!("{}{}", ca.private_key, ca.certificate);
        json!({"certificate": text, "private_key": ca.private_key})
    };
    let ca_with_key = Certificate::set(&server, "/root", with_key(&root)).await;
    let leaf = json!({"ca_name": "/root", "certificate": root.sign_leaf("leaf").certificate});
    let set = server.stored("/set", "certificate", leaf.clone()).await;
    let normalized = |pem: &str| pem.replace("\r\n", "\n");
    assert_eq!(ca(&set), normalized(&root.certificate));

    let body = json!({"value": with_key(&next), "transitional": true});
    ca_with_key.add_version(body).await.expect(200);
    server.stored("/again", "certificate", leaf).await;
    server.issued("/generated", leaf_parameters()).await;
    let both = both(
        &normalized(&root.certificate),
        &normalized(&next.certificate),
    );
    for name in ["/set", "/again", "/generated"] {
        let newest = server.newest(name).await;
        assert_eq!(ca(&newest), both, "{name}");
    }
}

#[tokio::test]
async fn without_a_transitional_ca_version_responses_contain_one_ca() {
    let server = server(CONCATENATED).await;
    let root = server.issued("/root", json!({"is_ca": true})).await;
    assert_eq!(ca(&root), certificate(&root));
    let leaf = server.issued("/leaf", leaf_parameters()).await;
    assert_eq!(ca(&leaf), certificate(&root));
    let root = Certificate::named(&server, "/root").await;
    let body = json!({"set_as_transitional": true});
    let transitional = root.regenerate(body).await.expect(200).json();
    assert_eq!(ca(&transitional), certificate(&transitional));
}

#[tokio::test]
async fn versions_of_a_ca_with_the_same_certificate_count_as_one() {
    let server = server(CONCATENATED).await;
    let root = external_certificates::authority("root");
    let authority = Certificate::set(&server, "/root", root.value()).await;
    let leaf = json!({"ca_name": "/root", "certificate": root.sign_leaf("leaf").certificate});
    server.stored("/before", "certificate", leaf.clone()).await;
    // OpenSSL also finds the certificate behind its key.
    let mut value = root.value();
    value["certificate"] = json!(format!("{}{}", root.private_key, root.certificate));
    let body = json!({"value": value, "transitional": true});
    authority.add_version(body).await.expect(200);
    server.stored("/set", "certificate", leaf).await;
    server.issued("/generated", leaf_parameters()).await;
    for (name, count) in [("/before", 2), ("/set", 1), ("/generated", 1)] {
        let versions = server.versions(name).await;
        assert_eq!(versions.len(), count, "{name}");
        let authorities = ca(&versions[0]).matches("BEGIN CERTIFICATE").count();
        assert_eq!(authorities, 1, "{name}");
    }
}

#[tokio::test]
async fn a_transitional_signer_comes_before_the_active_version() {
    let server = server(CONCATENATED).await;
    let (old, new) = root_in_rotation(&server).await;
    server.issued("/leaf", leaf_parameters()).await;
    let allowed = json!({"allow_transitional_parent_to_sign": true});
    let leaf = Certificate::named(&server, "/leaf").await;
    let regenerated = leaf.regenerate(allowed).await.expect(200).json();
    assert_eq!(ca(&regenerated), both(&new, &old));
    let read = &server.versions("/leaf").await[0];
    assert_eq!(read["id"], regenerated["id"]);
    assert_eq!(ca(read), both(&new, &old));
}

#[tokio::test]
async fn bulk_regenerated_leaves_contain_transitional_and_new_ca() {
    let server = server(CONCATENATED).await;
    for (name, parameters) in [
        ("/root", json!({"is_ca": true})),
        ("/middle", json!({"is_ca": true, "ca": "/root"})),
        ("/leaf", json!({"ca": "/middle"})),
    ] {
        server.issued(name, parameters).await;
    }
    let body = json!({"set_as_transitional": true});
    let middle = Certificate::named(&server, "/middle").await;
    let transitional = middle.regenerate(body).await.expect(200).json();
    server.bulk_regenerate("/root").await.expect(200);
    let middle = server.newest("/middle").await;
    assert_eq!(middle["transitional"], false);
    let leaf = server.newest("/leaf").await;
    let both = both(&certificate(&middle), &certificate(&transitional));
    assert_eq!(ca(&leaf), both);
}

#[tokio::test]
async fn set_add_move_and_delete_responses_contain_only_the_signer() {
    let server = server(CONCATENATED).await;
    let root = external_certificates::authority("root");
    let leaf = root.sign_leaf("leaf");
    let value = root.value();
    let authority = Certificate::set(&server, "/root", value).await;
    let body = json!({"set_as_transitional": true});
    let new = authority.regenerate(body).await.expect(200).json();
    let both = both(&root.certificate, &certificate(&new));

    let value = json!({"certificate": leaf.certificate, "ca_name": "/root"});
    let set = server.stored("/leaf", "certificate", value.clone()).await;
    assert_eq!(ca(&set), root.certificate);
    let leaf = Certificate::named(&server, "/leaf").await;
    let body = json!({"value": value});
    let added = leaf.add_version(body).await.expect(200).json();
    assert_eq!(ca(&added), root.certificate);
    for version in [json!(added["id"]), Value::Null] {
        let moved = leaf.move_transitional(version).await.expect(200).json();
        for version in moved.as_array().unwrap() {
            assert_eq!(ca(version), root.certificate);
        }
    }
    for version in leaf.versions().await {
        assert_eq!(ca(&version), both);
    }
    let deleted = leaf.delete_version(&given::id(&set)).await;
    assert_eq!(ca(&deleted.expect(200).json()), root.certificate);
}

#[tokio::test]
async fn the_second_ca_is_always_stored_but_returned_only_if_enabled() {
    let server = Server::start().await;
    let (old, new) = root_in_rotation(&server).await;
    let generated = server.issued("/leaf", leaf_parameters()).await;
    assert_eq!(ca(&generated), old);
    assert_eq!(ca(&server.newest("/leaf").await), old);
    let server = Server::start_in(server.stop().await, &options(CONCATENATED)).await;
    let read = server.newest("/leaf").await;
    assert_eq!(ca(&read), both(&old, &new));
    let server = Server::start_in(server.stop().await, &Options::default()).await;
    let actual = server.versions("/leaf").await;
    assert_eq!(actual, [generated_read(&generated)]);
}

/// Returns a generated version as returned by reads: without issuance fields.
fn generated_read(generated: &Value) -> Value {
    let mut version = generated.clone();
    for field in ["duration_overridden", "duration_used", "key_length"] {
        version.as_object_mut().unwrap().remove(field);
    }
    version
}

// The versions added to certificates at each step of a CA rotation.

/// Generates a CA and a leaf with metadata; returns the CA and its version.
async fn root_and_leaf(server: &Server) -> (Certificate<'_>, Value) {
    let root = Certificate::generate_root(server, "/root").await;
    let body = json!({
        "name": "/leaf", "type": "certificate", "metadata": {"of": "the first"},
        "parameters": {"common_name": "leaf", "ca": "/root", "key_type": QUICK_KEY},
    });
    server.post("/api/v1/data", body).await.expect(200);
    let version = root.versions().await[0].clone();
    (root, version)
}

/// Asserts that a certificate has this many versions, and that the newest is active and has the certificate and private
/// key of the previous version, with these CAs.
async fn assert_child(server: &Server, name: &str, count: usize, authorities: &[&Value]) {
    let versions = server.versions(name).await;
    assert_eq!(versions.len(), count, "{name}");
    let (newest, before) = (&versions[0], &versions[1]);
    for field in ["certificate", "private_key"] {
        assert_eq!(newest["value"][field], before["value"][field], "{name}");
    }
    assert_ne!(newest["id"], before["id"]);
    assert_eq!(newest["metadata"], Value::Null);
    assert_eq!(newest["transitional"], false);
    for mark in [
        "generated",
        "certificate_authority",
        "self_signed",
        "expiry_date",
    ] {
        assert_eq!(newest[mark], before[mark], "{mark}");
    }
    let expected = match authorities {
        [one] => certificate(one),
        [signing, trusted] => both(&certificate(signing), &certificate(trusted)),
        others => panic!("{} authorities", others.len()),
    };
    assert_eq!(ca(newest), expected, "{name}");
}

async fn make_transitional(certificate: &Certificate<'_>) -> Value {
    let body = json!({"set_as_transitional": true});
    certificate.regenerate(body).await.expect(200).json()
}

#[tokio::test]
async fn each_rotation_step_returns_the_cas_to_trust() {
    let server = server(CONCATENATED).await;
    let (root, old) = root_and_leaf(&server).await;
    let new = make_transitional(&root).await;
    assert_child(&server, "/leaf", 2, &[&old, &new]).await;
    root.move_transitional(old["id"].clone()).await.expect(200);
    assert_child(&server, "/leaf", 3, &[&old, &new]).await;
    server.bulk_regenerate("/root").await.expect(200);
    let regenerated = server.versions("/leaf").await;
    assert_eq!(regenerated.len(), 4);
    let both = both(&certificate(&new), &certificate(&old));
    assert_eq!(ca(&regenerated[0]), both);
    root.move_transitional(Value::Null).await.expect(200);
    assert_child(&server, "/leaf", 5, &[&new]).await;
}

#[tokio::test]
async fn a_transitional_ca_version_adds_a_version_to_each_child() {
    let server = server(CONCATENATED).await;
    let (root, old) = root_and_leaf(&server).await;
    let other = external_certificates::authority("root");
    let body = json!({"value": other.value(), "transitional": true});
    let added = root.add_version(body).await.expect(200).json();
    assert_eq!(added["transitional"], true);
    assert_child(&server, "/leaf", 2, &[&old, &added]).await;
    let versions = server.versions("/root").await;
    assert_eq!(versions[0]["id"], added["id"]);
    assert_eq!(versions.len(), 2);
}

#[tokio::test]
async fn every_move_of_the_flag_adds_a_version_to_each_child() {
    let server = server(CONCATENATED).await;
    let (root, old) = root_and_leaf(&server).await;
    let new = server.regenerated("/root").await;
    for (count, to, authorities) in [
        (2, json!(new["id"]), vec![&old, &new]),
        (3, json!(new["id"]), vec![&old, &new]),
        (4, json!(old["id"]), vec![&old, &new]),
        (5, json!("latest"), vec![&old, &new]),
        (6, Value::Null, vec![&old]),
        (7, Value::Null, vec![&old]),
    ] {
        root.move_transitional(to).await.expect(200);
        assert_child(&server, "/leaf", count, &authorities).await;
    }
}

#[tokio::test]
async fn only_deleting_the_transitional_version_adds_child_versions() {
    let server = server(CONCATENATED).await;
    let (root, first) = root_and_leaf(&server).await;
    let active = server.regenerated("/root").await;
    let transitional = make_transitional(&root).await;
    assert_child(&server, "/leaf", 2, &[&first, &active]).await;
    for (version, count) in [(&first, 2), (&transitional, 3)] {
        let deleted = root.delete_version(&given::id(version)).await;
        deleted.expect(200);
        assert_eq!(server.versions("/leaf").await.len(), count);
    }
    assert_child(&server, "/leaf", 3, &[&first]).await;
}

#[tokio::test]
async fn only_certificates_that_the_ca_signed_get_a_version() {
    let server = server(CONCATENATED).await;
    let (root, old) = root_and_leaf(&server).await;
    for (name, parameters) in [
        ("/middle", json!({"is_ca": true, "ca": "/root"})),
        ("/below", json!({"ca": "/middle"})),
        ("/other", json!({"is_ca": true})),
        ("/moved", json!({"ca": "/root"})),
        ("/elsewhere", json!({"ca": "/other"})),
    ] {
        server.issued(name, parameters).await;
    }
    server.issued("/moved", json!({"ca": "/other"})).await;
    let new = make_transitional(&root).await;
    assert_child(&server, "/leaf", 2, &[&old, &new]).await;
    assert_child(&server, "/middle", 2, &[&old, &new]).await;
    for (name, count) in [
        ("/root", 2),
        ("/below", 1),
        ("/other", 1),
        ("/elsewhere", 1),
        ("/moved", 2),
    ] {
        let versions = server.versions(name).await;
        assert_eq!(versions.len(), count, "{name}");
    }
}

#[tokio::test]
async fn a_step_of_its_ca_does_not_undo_the_rotation_of_a_child() {
    let server = server(CONCATENATED).await;
    let (root, _) = root_and_leaf(&server).await;
    let leaf = Certificate::named(&server, "/leaf").await;
    let old = leaf.versions().await[0]["id"].clone();
    let new = make_transitional(&leaf).await;
    make_transitional(&root).await;
    assert_eq!(leaf.versions().await.len(), 2);
    leaf.move_transitional(old).await.expect(200);
    leaf.move_transitional(Value::Null).await.expect(200);
    let active = server.newest("/leaf").await;
    assert_eq!(certificate(&active), certificate(&new));
}

#[tokio::test]
async fn unchanged_cas_or_a_disabled_setting_add_no_version() {
    let on = server(CONCATENATED).await;
    let (root, _) = root_and_leaf(&on).await;
    root.regenerate(json!({})).await.expect(200);
    on.regenerate("/root").await.expect(200);
    assert_eq!(on.versions("/leaf").await.len(), 1);

    let off = Server::reused().await;
    let (root, old) = root_and_leaf(&off).await;
    make_transitional(&root).await;
    for version in [old["id"].clone(), Value::Null] {
        root.move_transitional(version).await.expect(200);
    }
    assert_eq!(off.versions("/leaf").await.len(), 1);
}
