//! Values of each type except certificate, and the limits on their size.

use keywright_harness::{Server, Text};
use reqwest::Method;
use serde_json::{Value, json};

use crate::given;

// The types value and password.

#[tokio::test]
async fn any_text_is_kept_unchanged() {
    let server = Server::reused().await;
    for text in [
        " ",
        "\n",
        "\u{0}\u{1f}\u{7f}",
        "\"quoted\" \\ and 'single'",
        "{\"not\": \"parsed\"}",
        "пароль 密码 🔑",
        "e\u{301} is not \u{e9}",
        "\u{feff}\u{202e}",
        "null",
        "1",
    ] {
        for credential_type in ["value", "password"] {
            let name = format!("/{credential_type}");
            let response = server.stored(&name, credential_type, json!(text)).await;
            assert_eq!(response["value"], text);
            assert_eq!(server.versions(&name).await[0]["value"], text);
        }
    }
}

/// Values that lack a required field or have one of another JSON type.
const REFUSED: &str = r#"
    400 PUT /api/v1/data {"name": "/a", "type": "value", "value": ""}
    400 PUT /api/v1/data {"name": "/a", "type": "password", "value": ""}
    400 PUT /api/v1/data {"name": "/a", "type": "user", "value": {}} => password
    400 PUT /api/v1/data {"name": "/a", "type": "user", "value": {"username": "ada"}} => password
    400 PUT /api/v1/data {"name": "/a", "type": "user", "value": {"username": "ada", "password": ""}} => password
    400 PUT /api/v1/data {"name": "/a", "type": "user", "value": {"username": "ada", "password": null}} => password
    400 PUT /api/v1/data {"name": "/a", "type": "user", "value": {"password": [5]}} => password
    400 PUT /api/v1/data {"name": "/a", "type": "user", "value": {"username": 1, "password": "p"}} => username
    400 PUT /api/v1/data {"name": "/a", "type": "user", "value": {"username": true, "password": "p"}} => username
    400 PUT /api/v1/data {"name": "/a", "type": "user", "value": {"username": ["ada"], "password": "p"}} => username
    400 PUT /api/v1/data {"name": "/a", "type": "user", "value": {"username": {"first": "ada"}, "password": "p"}} => username
    400 PUT /api/v1/data {"name": "/a", "type": "KEY", "value": {}}
    400 PUT /api/v1/data {"name": "/a", "type": "KEY", "value": {"public_key": "", "private_key": ""}}
    400 PUT /api/v1/data {"name": "/a", "type": "KEY", "value": {"public_key": null, "private_key": ""}}
    400 PUT /api/v1/data {"name": "/a", "type": "KEY", "value": {"public_key": "\n", "private_key": "\r\n\n"}}
    400 PUT /api/v1/data {"name": "/a", "type": "KEY", "value": {"public_key": 1}}
    400 PUT /api/v1/data {"name": "/a", "type": "KEY", "value": {"private_key": true}}
"#;

#[tokio::test]
async fn a_value_without_its_required_fields_is_400() {
    let server = Server::reused().await;
    for key in TYPES {
        given::assert_refused(&server, &REFUSED.replace("KEY", key)).await;
    }
}

// The type json.

#[tokio::test]
async fn any_object_is_kept_unchanged() {
    let server = Server::reused().await;
    for value in given::each(json!([
        {},
        {"": null},
        {"a": {"b": [1, 2.5, true, null, {"c": "d"}]}},
        {"name": "x", "type": "y", "value": {"value": 1}},
        {"clé": "🔑", "quote\"": "\\"},
    ])) {
        let response = server.stored("/a", "json", value.clone()).await;
        assert_eq!(response["value"], value);
        assert_eq!(server.versions("/a").await[0]["value"], value);
    }
}

#[tokio::test]
async fn values_and_metadata_keep_all_digits_and_the_order_of_fields() {
    let server = Server::reused().await;
    let value = r#"{"z":12345678901234567890123456789,"a":1.10,"m":1E2,"b":-0}"#;
    let metadata = r#"{"z":123456789012345678901234567890,"a":[1.10,-0.0,1e2],"ä":null}"#;
    let fields = format!(r#""value":{value},"metadata":{metadata}"#);
    let body = format!(r#"{{"name":"/a","type":"json",{fields}}}"#);
    let request = server.authorized(Method::PUT, "/api/v1/data").body(body);
    let response = server.send(request).await.expect(200);
    let read = server.get("/api/v1/data?name=/a").await.expect(200);
    for response in [response, read] {
        response.assert_contains(&format!(r#""value":{value}"#));
        response.assert_contains(&format!(r#""metadata":{metadata}"#));
    }
}

// The type user.

#[tokio::test]
async fn a_user_gets_the_hash_of_its_password() {
    let server = Server::reused().await;
    let value = json!({"username": "ada", "password": "pässword"});
    let user = server.stored("/a", "user", value).await["value"].clone();
    assert_eq!(user["username"], "ada");
    assert_eq!(user["password"], "pässword");
    let hash = user["password_hash"].as_str().unwrap();
    let parts: Vec<&str> = hash.split('$').collect();
    assert_eq!((parts[0], parts[1]), ("", "6"));
    assert_eq!((parts[2].len(), parts[3].len()), (8, 86));
    assert_eq!(user.as_object().unwrap().len(), 3);
}

#[tokio::test]
async fn the_hash_is_stable_across_reads_and_differs_by_version() {
    let server = Server::reused().await;
    let value = json!({"username": "ada", "password": "p"});
    let first = server.stored("/a", "user", value.clone()).await;
    let second = server.stored("/a", "user", value).await;
    let [one, other] = [&first, &second].map(|version| &version["value"]["password_hash"]);
    assert_ne!(one, other);
    for _ in 0..3 {
        let versions = server.versions("/a").await;
        assert_eq!(versions[0]["value"], second["value"]);
        assert_eq!(versions[1]["value"], first["value"]);
    }
}

#[tokio::test]
async fn a_user_without_a_username_has_a_null_username() {
    let server = Server::reused().await;
    let absent = json!([{"password": "p"}, {"password": "p", "username": null}, {"password": "p", "username": ""}]);
    for value in given::each(absent) {
        let response = server.stored("/a", "user", value).await;
        assert_eq!(response["value"].get("username"), Some(&Value::Null));
    }
}

#[tokio::test]
async fn a_sent_hash_is_ignored() {
    let server = Server::reused().await;
    for sent in [json!("$6$saltsalt$forged"), json!(""), json!(null)] {
        let value = json!({"username": "ada", "password": "p", "password_hash": sent});
        let response = server.stored("/a", "user", value).await;
        let hash = response["value"]["password_hash"].as_str().unwrap();
        assert!(hash.starts_with("$6$"), "{hash}");
        hash.assert_lacks("forged");
    }
}

// The types rsa and ssh.

const TYPES: [&str; 2] = ["rsa", "ssh"];

#[tokio::test]
async fn one_field_is_enough_and_the_other_is_null() {
    let server = Server::reused().await;
    for credential_type in TYPES {
        for (given, absent) in [("public_key", "private_key"), ("private_key", "public_key")] {
            for empty in [None, Some(json!("")), Some(json!(" \n")), Some(Value::Null)] {
                let mut value = json!({given: "some key"});
                if let Some(empty) = empty {
                    value[absent] = empty;
                }
                let name = format!("/{credential_type}");
                let response = server.stored(&name, credential_type, value).await;
                assert_eq!(response["value"][given], "some key");
                assert_eq!(response["value"].get(absent), Some(&Value::Null));
            }
        }
    }
}

#[tokio::test]
async fn the_fingerprint_of_a_set_key_is_null() {
    let server = Server::reused().await;
    let key = server.generated("/made", "ssh", json!({})).await["value"].clone();
    let own = &key["public_key_fingerprint"];
    for fingerprint in given::each(json!(["forged", own, null])) {
        let mut value = key.clone();
        value["public_key_fingerprint"] = fingerprint;
        let response = server.stored("/a", "ssh", value).await;
        let value = &response["value"];
        assert_eq!(value.get("public_key_fingerprint"), Some(&Value::Null));
        assert_eq!(value["public_key"], key["public_key"]);
    }
}

// Limits on the size of values.

/// The maximum size of a value in bytes.
const VALUE_BYTES_MAX: usize = 65_536;

/// The maximum size of a user's password in bytes: hashing a longer one takes too long.
const USER_PASSWORD_BYTES_MAX: usize = 4_096;

/// The maximum number of characters in a public key or a username.
const LONG_FIELD_CHARACTERS_MAX: usize = 7_000;

#[tokio::test]
async fn a_text_over_64_kib_is_413() {
    let server = Server::reused().await;
    // The limit applies to the text, not to its JSON, whose size only a plugin limits.
    for (credential_type, character) in [("value", "\""), ("password", "x")] {
        let name = format!("/{credential_type}");
        let longest = character.repeat(VALUE_BYTES_MAX);
        let response = server.stored(&name, credential_type, json!(longest)).await;
        assert_eq!(response["value"], longest);
        let two_byte_characters = "ä".repeat(VALUE_BYTES_MAX / 2 + 1);
        let twice = "x".repeat(2 * VALUE_BYTES_MAX);
        for too_long in [format!("{longest}x"), twice, two_byte_characters] {
            let response = server.set(&name, credential_type, json!(too_long)).await;
            response.expect(413).error();
        }
        assert_eq!(server.versions(&name).await.len(), 1);
    }
}

#[tokio::test]
async fn a_value_over_64_kib_is_403_without_write() {
    let server = Server::reused().await;
    let stranger = server.as_client("stranger").await;
    let long = "x".repeat(VALUE_BYTES_MAX + 1);
    for (credential_type, value) in [
        ("password", json!(long)),
        ("certificate", json!({"private_key": long})),
    ] {
        let body = json!({"name": "/a", "type": credential_type, "value": value});
        let response = stranger.send(Method::PUT, "/api/v1/data", body).await;
        response.expect(403).error();
    }
}

#[tokio::test]
async fn an_object_over_64_kib_is_413() {
    let server = Server::reused().await;
    let frame_bytes = json!({"username": ""}).to_string().len();
    let object = |bytes: usize| json!({"username": "x".repeat(bytes - frame_bytes)});
    server.stored("/a", "json", object(VALUE_BYTES_MAX)).await;
    let response = server.set("/a", "json", object(VALUE_BYTES_MAX + 1)).await;
    response.expect(413).error();
}

#[tokio::test]
async fn a_private_key_larger_than_a_value_is_413() {
    let server = Server::reused().await;
    for credential_type in ["rsa", "ssh"] {
        for bytes in [VALUE_BYTES_MAX, 3 * VALUE_BYTES_MAX] {
            let value = json!({"private_key": "x".repeat(bytes)});
            let response = server.set("/a", credential_type, value).await;
            response.expect(413).error();
        }
    }
}

#[tokio::test]
async fn a_public_key_or_username_over_7000_characters_is_413() {
    let server = Server::reused().await;
    let longest = "ä".repeat(LONG_FIELD_CHARACTERS_MAX);
    let too_long = format!("{longest}x");
    for (credential_type, field) in [
        ("rsa", "public_key"),
        ("ssh", "public_key"),
        ("user", "username"),
    ] {
        let name = format!("/{credential_type}");
        let value = |text: &str| match credential_type {
            "user" => json!({field: text, "password": "p"}),
            _ => json!({field: text}),
        };
        server.stored(&name, credential_type, value(&longest)).await;
        let response = server.set(&name, credential_type, value(&too_long)).await;
        response.expect_error(413, &format!("{field} must have at most 7000 characters"));
        assert_eq!(server.versions(&name).await.len(), 1);
    }
}

#[tokio::test]
async fn a_password_of_a_user_over_4096_bytes_is_400() {
    let server = Server::reused().await;
    let longest = "ä".repeat(USER_PASSWORD_BYTES_MAX / 2);
    let user = json!({"password": longest});
    let user = server.stored("/a", "user", user).await;
    assert_eq!(user["value"]["password"], longest);
    let too_long = json!({"password": format!("{longest}p")});
    let refused = server.set("/a", "user", too_long).await;
    refused.expect_error(400, "password");
    assert_eq!(server.versions("/a").await.len(), 1);
}
