//! Generating, setting, regenerating and deleting credentials.

use serde_json::json;

use crate::{
    browser::{Browser, DEVELOPER_ACTOR, GUEST, GUEST_ACTOR},
    events, server, session,
};

const GENERATE: &str = "/console/generate";
const SET: &str = "/console/set";
const DELETE: &str = "/console/credential/delete";

#[tokio::test]
async fn a_form_generates_a_credential_with_its_parameters() {
    let (server, mut browser) = session().await;
    let form = browser.page("/console/generate?type=password").await;
    for expected in [
        "parameter.length",
        "type=\"number\"",
        "type=\"checkbox\"",
        "aria-describedby",
    ] {
        form.assert_contains(expected);
    }
    let filled = [
        ("name", "/a/password"),
        ("parameter.length", "12"),
        ("parameter.exclude_upper", "true"),
        ("metadata", "{ \"owner\": \"shop\" }"),
    ];
    let page = browser.submit_and_follow(&form, GENERATE, &filled).await;
    page.assert_contains("The credential was generated.");
    let version = &server.versions("/a/password").await[0];
    let value = version["value"].as_str().unwrap();
    assert_eq!(value.len(), 12);
    let is_upper = |letter: char| letter.is_ascii_uppercase();
    assert!(!value.contains(is_upper), "{value}");
    assert_eq!(version["metadata"], json!({"owner": "shop"}));
    page.assert_lacks(value);
    let events = events(&server, "GENERATE");
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["actor"], DEVELOPER_ACTOR);
    assert_eq!(events[0]["resource_name"], "/a/password");

    let page = browser.submit_and_follow(&form, GENERATE, &filled).await;
    page.assert_contains("The credential already existed. No value was generated.");
    let kept = crate::events(&server, "GENERATE").remove(1);
    assert_eq!(kept["version_id"], version["id"]);
    assert_eq!(kept["request_details"], json!(null));
}

#[tokio::test]
async fn a_refused_form_is_shown_again_with_its_fields() {
    let (_server, mut browser) = session().await;
    let form = browser.page("/console/generate?type=password").await;
    for (filled, message) in [
        (
            ("parameter.length", "two"),
            "Length must be a whole number.",
        ),
        (("parameter.length", "3"), "length"),
        (("name", "/a b"), "A credential name may contain only"),
        (
            ("metadata", "[1]"),
            "The metadata must be a JSON object without duplicate keys.",
        ),
        (
            ("mode", "other"),
            "Choose what to do if the credential exists.",
        ),
    ] {
        let all = [
            ("name", "/kept"),
            ("parameter.exclude_lower", "true"),
            filled,
        ];
        let page = browser.submit(&form, GENERATE, &all).await.expect(400);
        page.assert_contains("role=\"alert\"");
        page.assert_contains(message);
        page.assert_contains("name=\"parameter.exclude_lower\" value=\"true\" checked");
    }
    let page = browser.get("/console/generate?type=absent").await;
    page.expect(404);
}

#[tokio::test]
async fn values_of_simple_types_are_set() {
    let (server, mut browser) = session().await;
    for (credential_type, entered, value) in [
        ("value", "one\r\ntwo", json!("one\ntwo")),
        ("password", "<script>\"", json!("<script>\"")),
        ("json", "{ \"a\": [1.50] }", json!({"a": [1.50]})),
    ] {
        let name = format!("/set/{credential_type}");
        let form = format!("{SET}?name={name}&type={credential_type}");
        let filled = [("value", entered)];
        let page = browser.fill_in_and_follow(&form, SET, &filled).await;
        page.assert_contains("The credential was set.");
        assert_eq!(server.versions(&name).await[0]["value"], value);
    }
    let form = "/console/set?name=/set/json&type=json";
    for malformed in [
        "{\"secret-key\": 1,}",
        "{\"secret-key\": 1, \"secret-key\": 2}",
    ] {
        let malformed = [("value", malformed)];
        let refused = browser.fill_in(form, SET, &malformed).await.expect(400);
        refused.assert_contains("The value must be a JSON object without duplicate keys.");
        refused.assert_lacks("secret-key");
    }
}

#[tokio::test]
async fn a_credential_is_regenerated() {
    let (server, mut browser) = session().await;
    server.generated("/a", "password", json!({})).await;
    let action = "/console/credential/regenerate";
    let form = "/console/credential?name=/a";
    let regenerated = browser.fill_in(form, action, &[]).await.expect(303);
    let confirmed = regenerated.header("location").unwrap();
    let done = "The credential was regenerated.";
    browser.page(confirmed).await.assert_contains(done);
    browser.page(confirmed).await.assert_lacks(done);
    assert_eq!(server.versions("/a").await.len(), 2);
    server.stored("/set", "password", json!("v")).await;
    let form = "/console/credential?name=/set";
    let refused = browser.fill_in(form, action, &[]).await.expect(400);
    refused.assert_contains("can't be regenerated");
}

#[tokio::test]
async fn a_change_is_confirmed_to_a_user_who_may_not_read() {
    let server = server().await;
    server.grant("/a", GUEST_ACTOR, &["write"]).await;
    let mut guest = Browser::logged_in(&server, GUEST).await;
    let filled = [("name", "/a"), ("type", "value"), ("value", "v")];
    let page = guest.fill_in(SET, SET, &filled).await.expect(200);
    page.assert_contains("The credential was set.");
}

#[tokio::test]
async fn a_credential_is_deleted_only_if_its_name_is_typed() {
    let (server, mut browser) = session().await;
    server.set_value("/a", "v").await;
    let page = browser.page("/console/credential?name=/a").await;
    for typed in ["", "a", "/A", "/a "] {
        let typed = [("typed_name", typed)];
        let refused = browser.submit(&page, DELETE, &typed).await.expect(400);
        refused.assert_contains("nothing was deleted");
    }
    let typed = [("typed_name", "/a")];
    let deleted = browser.submit(&page, DELETE, &typed).await.expect(200);
    deleted.assert_contains("Deleted <code>/a</code> with all its versions.");
    assert!(server.versions("/a").await.is_empty());
    let events = events(&server, "DELETE");
    assert_eq!(events.last().unwrap()["resource_name"], "/a");
}
