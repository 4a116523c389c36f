//! Generating, setting, regenerating and deleting credentials.

use keywright_harness::{Options, Server, component};
use serde_json::json;

use super::Chromium;
use crate::{
    given::{listed_types, required_fields},
    server,
};

#[tokio::test]
async fn every_type_and_a_custom_type_is_generated_by_its_form() {
    let options = Options::default()
        .beyond_the_specification()
        .random_generator("wireguard", &component("wireguard"))
        .console("");
    let server = Server::start_with(&options).await;
    server
        .set("/input", "password", json!("x"))
        .await
        .expect(200);
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

    server
        .generate("/a/password", "password", json!({}))
        .await
        .expect(200);
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
