//! Interpolating references in strings, to credentials of any type: the setting `references_in_strings` of the shipped resolver.

use keywright_harness::{Options, ReusedServer, Server, Text, component};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    audit::{events_of, touched},
    interpolate::interpolate,
};

fn options(setting: &str) -> Options {
    let section = format!(
        "[resolver]\ncomponent = \"{}\"\nsettings = {{ references_in_strings = {setting} }}\n\
         limits = {{ input_bytes_max = 1114112 }}",
        component("interpolation").display()
    );
    Options::default().without_resolver().extra(&section)
}

const PASSWORD: &str = "canary \"\\\n\u{7f}ä((/text))$1";

/// Starts a server that searches strings, with a credential of each kind of value.
async fn server() -> ReusedServer {
    let server = Server::reused_with(&options("true")).await;
    let db = json!({"username": "ada", "password": PASSWORD});
    let object = json!({"a": {"b": [1, null], "c": "canary-c"}, "null": null, "on": true, "": 7});
    for (name, credential_type, value) in [
        ("/text", "value", json!("canary-text")),
        ("/password", "password", json!(PASSWORD)),
        ("/db", "user", db),
        ("/json", "json", object),
    ] {
        server.stored(name, credential_type, value).await;
    }
    server
}

// Substituted values.

#[tokio::test]
async fn a_reference_that_is_a_whole_string_keeps_the_value_type() {
    let server = server().await;
    server.issued("/root", json!({"is_ca": true})).await;
    let leaf = server.issued("/leaf", json!({"ca": "/root"})).await["value"].take();
    let db = server.newest("/db").await;
    for (reference, expected) in [
        ("((/text))", json!("canary-text")),
        ("((text))", json!("canary-text")),
        ("((!/text))", json!("canary-text")),
        ("((/TEXT))", json!("canary-text")),
        ("((/password))", json!(PASSWORD)),
        ("((/db))", db["value"].clone()),
        ("((/db.username))", json!("ada")),
        ("((/json.a))", json!({"b": [1, null], "c": "canary-c"})),
        ("((/json.a.b))", json!([1, null])),
        ("((/json.null))", Value::Null),
        ("((/json.on))", json!(true)),
        ("((/json.))", json!(7)),
        ("((/leaf.private_key))", leaf["private_key"].clone()),
        ("((/leaf.ca))", leaf["ca"].clone()),
    ] {
        let document = |value: Value| json!({"a": [value, {"b": value}], "kept": "((not this))"});
        let response = interpolate(&server, document(json!(reference))).await;
        let response = response.expect(200).json();
        assert_eq!(response, document(expected), "{reference}");
    }
}

#[tokio::test]
async fn the_active_version_of_a_certificate_replaces_a_reference() {
    let server = server().await;
    let active = server.issued("/ca", json!({"is_ca": true})).await;
    server.regenerate_as_transitional("/ca").await;
    // Past the number of names whose versions are read before their sizes are known.
    let mut many = json!({"ca": "((/ca.certificate))"});
    for number in 0..17 {
        let name = format!("/n{number}");
        server.stored(&name, "value", json!("v")).await;
        many[number.to_string()] = json!(format!("(({name}))"));
    }
    for document in [json!({"ca": "((/ca.certificate))"}), many.clone()] {
        let response = interpolate(&server, document).await.expect(200);
        assert_eq!(response.json()["ca"], active["value"]["certificate"]);
    }

    let [_, transitional] = server.current_versions("/ca").await.try_into().unwrap();
    let version = active["id"].as_str().unwrap();
    let path = server.certificate_path("/ca").await + "/versions/" + version;
    server.delete(&path).await.expect(200);
    let response = interpolate(&server, many).await.expect(200);
    let expected = &transitional["value"]["certificate"];
    assert_eq!(&response.json()["ca"], expected);
}

#[tokio::test]
async fn references_inside_longer_strings_are_replaced_by_text() {
    let server = server().await;
    let url = format!("db://ada:{PASSWORD}@h?on=true&n=7\n");
    for (text, expected) in [
        (
            "db://((/db.username)):((/db.password))@h?on=((/json.on))&n=((/json.))\n",
            url.as_str(),
        ),
        ("ü\"\\ä((/json.a.c))((/json.a.c))", "ü\"\\äcanary-ccanary-c"),
        ("(((/text)))", "(canary-text)"),
        (" ((/text))", " canary-text"),
        ("((/absent ((/text))", "((/absent canary-text"),
    ] {
        let response = interpolate(&server, json!({"a": {"b": [text]}})).await;
        let expected = json!({"a": {"b": [expected]}});
        assert_eq!(response.expect(200).json(), expected, "{text}");
    }
}

#[tokio::test]
async fn inserted_numbers_keep_their_digits() {
    let server = server().await;
    let body = r#"{"name":"/n","type":"json","value":{"n":1.50,"large":12345678901234567890123}}"#;
    let set = server.authorized(Method::PUT, "/api/v1/data").body(body);
    server.send(set).await.expect(200);
    let document = json!({"a": "((/n.n)), ((/n.large))", "b": "((/n.n))"});
    let response = interpolate(&server, document).await.expect(200);
    let expected = r#"{"a":"1.50, 12345678901234567890123","b":1.50}"#;
    assert_eq!(response.body, expected);
}

#[tokio::test]
async fn references_of_service_bindings_keep_their_rules() {
    let server = server().await;
    let binding = |reference: &str, sibling: &str| {
        let credentials = json!({"credhub-ref": reference, "sibling": sibling});
        json!({"s": [{"label": "((/text))", "credentials": credentials}]})
    };
    let value = server.newest("/json").await["value"].clone();
    let response = interpolate(&server, binding("((/json))", "((/absent))")).await;
    let expected = json!({"s": [{"label": "canary-text", "credentials": value}]});
    assert_eq!(response.expect(200).json(), expected);
    for (reference, status) in [
        ("((/db))", 400),
        ("((/text))", 400),
        ("((/json.a))", 404),
        ("((!/json))", 404),
    ] {
        let response = interpolate(&server, binding(reference, "")).await;
        response.expect(status).error();
    }
}

// Failures.

#[tokio::test]
async fn without_the_setting_strings_are_returned_unchanged() {
    for server in [
        Server::start().await,
        Server::start_with(&options("false")).await,
    ] {
        server.set_value("/text", "v").await;
        let document = json!({"a": "((/text))", "s": [{"credentials": {"b": "x((/absent))"}}]});
        let response = interpolate(&server, document.clone()).await;
        assert_eq!(response.expect(200).json(), document);
    }
}

#[test]
fn the_server_does_not_start_with_a_malformed_setting() {
    let refusal = Server::refusal(&options("\"hunter2\""));
    let named = "is refused: invalid settings: references_in_strings must be true or false";
    refusal.assert_contains(named);
    refusal.assert_lacks("hunter2");
}

#[tokio::test]
async fn errors_for_references_without_a_value_name_the_credential() {
    let server = server().await;
    for (text, error) in [
        ("((/db.name))", "/db has no field name"),
        ("((/db.username.x))", "/db has no field username.x"),
        ("((/db.USERNAME))", "/db has no field USERNAME"),
        ("((/text.a))", "/text has no field a"),
        ("((/json.a.b.0))", "/json has no field a.b.0"),
        ("x((/db))", NOT_INSERTED),
        ("x((/json.a.b))", NOT_INSERTED),
        ("x((/json.null))", NOT_INSERTED),
    ] {
        let response = interpolate(&server, json!({"a": "((/db))", "b": text})).await;
        let found = response.expect(400).error();
        match error {
            NOT_INSERTED => found.assert_contains(error),
            _ => found.assert_contains(&format!("the value of the credential {error}")),
        }
        found.assert_lacks("canary");
        server.log().assert_lacks("canary");
    }
}

#[tokio::test]
async fn deeply_nested_references_need_more_memory() {
    let server = server().await;
    let nested = (0..126).fold(json!("((/text))"), |nested, _| json!([nested]));
    let document = json!({"a": vec![nested; 450]});
    interpolate(&server, document).await.expect(413).error();
}

const NOT_INSERTED: &str =
    "can't be inserted into a string: only strings, numbers and booleans can";

#[tokio::test]
async fn absent_and_unreadable_references_are_404_with_the_same_text() {
    let server = server().await;
    let reader = server.as_client("reader").await;
    server.grant("/db", reader.actor(), &["read"]).await;
    let resolved = reader.post("/api/v1/interpolate", json!({"a": "x((db.username))"}));
    assert_eq!(resolved.await.expect(200).json(), json!({"a": "xada"}));
    for name in ["/text", "/absent", "/DB"] {
        let expected = format!(
            "the referenced credential {name} does not exist or the caller may not access it"
        );
        for text in [format!("(({name}))"), format!("x(({name}.y))")] {
            let document = json!({"a": "((/db.password))", "b": text});
            let response = reader.post("/api/v1/interpolate", document).await;
            assert_eq!(response.expect(404).error(), expected);
        }
    }
}

#[tokio::test]
async fn each_referenced_credential_has_one_event() {
    let server = server().await;
    let document = json!({"a": "((/db.username)):((/db.password))", "b": "((/password))"});
    let events = events_of(&server, &interpolate(&server, document).await.expect(200));
    assert_eq!(touched(&events), ["read /db", "read /password"]);
    let mut versions = Vec::new();
    for name in ["/db", "/password"] {
        versions.push(server.newest(name).await["id"].clone());
    }
    for (event, version) in events.iter().zip(versions) {
        assert_eq!(event["version_id"], version);
    }
}

// Limits.

#[tokio::test]
async fn more_than_1000_references_or_8_fields_are_400() {
    let server = server().await;
    let deepest = (0..8).fold(json!("deep"), |value, _| json!({"a": value}));
    server.stored("/deep", "json", deepest).await;
    let text = |count: usize| "((text))".repeat(count);
    let fields = |count: usize| format!("((deep{}))", ".a".repeat(count));
    for (text, status, words) in [
        (text(1_000), 200, ""),
        (text(1_001), 400, "it has more than 1000 references"),
        (text(10_000), 400, "references"),
        (fields(8), 200, ""),
        (fields(9), 400, "a reference has more than 8 fields"),
    ] {
        let response = interpolate(&server, json!({"a": text})).await;
        response.expect(status).assert_contains(words);
    }
    server.log().assert_lacks("plugin call failed");
}

#[tokio::test]
async fn references_are_found_at_the_maximum_depth() {
    let server = server().await;
    for (levels, status) in [(127, 200), (128, 400)] {
        let document = |text: &str| {
            let (open, close) = ("[".repeat(levels), "]".repeat(levels));
            format!(r#"{{"a":{open}"{text}"{close}}}"#)
        };
        for reference in ["((text))", "x((text))"] {
            let request = server.authorized(Method::POST, "/api/v1/interpolate");
            let response = server.send(request.body(document(reference))).await;
            let body = response.expect(status).body;
            let expected = document(&reference.replace("((text))", "canary-text"));
            assert_eq!(body == expected, status == 200, "{levels}: {body}");
        }
    }
}

#[tokio::test]
async fn a_version_counts_in_full_for_each_referenced_field() {
    let server = server().await;
    // With the other data that is encrypted with it, a little more than 64,000 bytes.
    let value = json!({"a": "x", "text": "x".repeat(64_000 - r#"{"a":"x","text":""}"#.len())});
    server.stored("/large", "json", value).await;
    for (references, status) in [(261, 200), (263, 413)] {
        let document = json!({"a": "((/large.a))".repeat(references)});
        let response = interpolate(&server, document).await;
        assert_eq!(response.status, status, "{references}");
    }
}
