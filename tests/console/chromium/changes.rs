//! Changes of credentials and permissions, and the rotation of a CA. Also the pages of keys, plugins and certificates.

use keywright_harness::{Options, Server, component};
use serde_json::json;

use super::Chromium;
use crate::{
    browser::DEVELOPER,
    given::{self, listed_types, required_fields},
    server,
};

#[tokio::test]
async fn every_type_and_a_custom_type_is_generated_by_its_form() {
    let options = Options::default()
        .beyond_the_specification()
        .random_generator("wireguard", &component("wireguard"))
        .console("");
    let server = Server::start_with(&options).await;
    server.stored("/input", "password", json!("x")).await;
    let Some(chromium) = Chromium::logged_in(&server).await else {
        return;
    };
    chromium.follow("Generate").await;
    chromium.check("generate").await;
    let types = listed_types(&chromium.driver.source().await.unwrap());
    assert!(types.contains(&"wireguard".to_owned()), "{types:?}");
    for credential_type in types {
        chromium.follow("Generate").await;
        chromium.follow(&credential_type).await;
        chromium.check(&format!("generate-{credential_type}")).await;
        let name = format!("/all/{credential_type}");
        chromium.fill("name", &name).await;
        for (field, value) in required_fields(&credential_type) {
            chromium.fill(field, &value.replace('\r', "")).await;
        }
        chromium.submit(".entry button").await;
        chromium.find_text("The credential was generated.").await;
        chromium.check_log(&name).await;
        assert_eq!(server.versions(&name).await.len(), 1);
    }
    chromium.open("/console/generate?type=password").await;
    chromium.fill("name", "/no//name").await;
    chromium.submit(".entry button").await;
    chromium.find(".failure").await;
    chromium.check("generate-refused").await;
}

#[tokio::test]
async fn a_credential_is_set_regenerated_and_deleted() {
    let server = server().await;
    let Some(chromium) = Chromium::logged_in(&server).await else {
        return;
    };
    chromium.follow("Set").await;
    chromium.check("set").await;
    chromium.fill("name", "/a/json").await;
    chromium.fill("type", "json").await;
    chromium.fill("value", "{").await;
    chromium.submit(".entry button").await;
    chromium.find_text("The value must be a JSON object").await;
    chromium.check("set-refused").await;
    chromium.fill("value", r#"{"host": "db.example"}"#).await;
    chromium.submit(".entry button").await;
    chromium.find_text("The credential was set.").await;
    chromium.check("credential-set").await;
    assert_eq!(
        server.versions("/a/json").await[0]["value"],
        json!({"host": "db.example"})
    );

    server.generated("/a/password", "password", json!({})).await;
    chromium.open("/console/credential?name=/a/password").await;
    chromium
        .submit("form[action='/console/credential/regenerate'] button")
        .await;
    chromium.find_text("The credential was regenerated.").await;
    assert_eq!(server.versions("/a/password").await.len(), 2);
    chromium.click("details summary").await;
    chromium.check("credential-delete").await;
    chromium.fill("typed_name", "/a/passwort").await;
    chromium.submit("button.danger").await;
    chromium.find_text("nothing was deleted").await;
    chromium.check("not-deleted").await;
    chromium.open("/console/credential?name=/a/password").await;
    chromium.click("details summary").await;
    chromium.fill("typed_name", "/a/password").await;
    chromium.submit("button.danger").await;
    chromium
        .find_text("Deleted /a/password with all its versions.")
        .await;
    chromium.check("deleted").await;
    assert!(server.versions("/a/password").await.is_empty());
}

#[tokio::test]
async fn a_permission_is_added_explained_changed_and_removed() {
    let server = server().await;
    let Some(chromium) = Chromium::start(&server).await else {
        return;
    };
    chromium.open("/console/permissions?path=/team/*").await;
    chromium.log_in(DEVELOPER).await;
    chromium.check("permissions").await;
    chromium.follow("Add a permission").await;
    chromium.check("permission-add").await;
    chromium.fill("actor", READER).await;
    chromium.fill("operation.read", "true").await;
    chromium.submit(".entry button").await;
    chromium.find_text("Added the permission").await;
    chromium.check("permission-added").await;

    let explain = format!("/console/permissions/explain?path=/team/database&actor={READER}");
    chromium.open(&format!("{explain}&operation=read")).await;
    chromium.find_text("may read").await;
    chromium.check("explain-read").await;
    chromium.fill("operation", "write").await;
    chromium.submit("main form button").await;
    chromium.find_text("may not write").await;
    chromium.check("explain-write").await;

    chromium.open("/console/permissions?path=/team/*").await;
    chromium.check("permissions-on-path").await;
    chromium.submit("a[href^='/console/permission?']").await;
    chromium.check("permission").await;
    chromium.click("details summary").await;
    chromium.submit("button.danger").await;
    chromium.find_text("Removed the permission").await;
    chromium.check("permission-removed").await;
}

#[tokio::test]
async fn keys_and_plugins_and_unknown_paths_are_accessible() {
    let server = server().await;
    let Some(chromium) = Chromium::logged_in(&server).await else {
        return;
    };
    chromium.follow("Keys and plugins").await;
    chromium.check("keys-and-plugins").await;
    chromium.open("/console/absent").await;
    chromium.check("unknown-path").await;
}

const READER: &str = "uaa-user:reader";

#[tokio::test]
async fn a_ca_is_rotated_from_the_first_to_the_last_step() {
    let server = server().await;
    given::credentials(&server).await;
    let root = json!({"common_name": "Shop root", "is_ca": true});
    server.generated("/shop/root", "certificate", root).await;
    let leaf = json!({"common_name": "shop.example", "ca": "/shop/root"});
    server.generated("/shop/web", "certificate", leaf).await;
    let Some(chromium) = Chromium::logged_in(&server).await else {
        return;
    };
    for (path, page) in [
        ("/console/certificates", "certificates"),
        ("/console/certificates?name=/pki/root", "certificates-of-ca"),
        ("/console/certificate?name=/pki/root", "certificate-details"),
        ("/console/expiring?within-days=90", "expiring"),
    ] {
        chromium.open(path).await;
        chromium.check(page).await;
    }
    let rotation = "/console/certificate/rotation";
    chromium.open(&format!("{rotation}?name=/shop/root")).await;
    for step in 1..=4 {
        chromium.find_text(&format!("Take step {step}")).await;
        chromium.check(&format!("rotation-{step}")).await;
        chromium
            .submit(&format!("form[action='{rotation}'] button"))
            .await;
        chromium
            .find_text(&format!("Step {step} is complete."))
            .await;
    }
    chromium.check("rotation-complete").await;
    assert_eq!(server.versions("/shop/root").await.len(), 2);
}
