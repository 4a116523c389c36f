//! Passwords and users.

use keywright_harness::Server;
use serde_json::{Value, json};

use crate::given;

// Passwords, and the parameters that users share with them.

const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const NUMBERS: &str = "0123456789";
const SPECIAL: &str = "!#$%&()*,-./:;<=>?@[\\]^_`{|}~";

/// Generates passwords and users' passwords with these parameters.
async fn passwords(server: &Server, parameters: &Value) -> [String; 2] {
    let generate = async |credential_type: &str| {
        let name = format!("/{credential_type}");
        let generated =
            server.generate_in_mode("overwrite", &name, credential_type, parameters.clone());
        generated.await.expect(200).json()["value"].take()
    };
    let passwords = [
        generate("password").await,
        generate("user").await["password"].take(),
    ];
    passwords.map(|password| password.as_str().unwrap().to_owned())
}

async fn refused(server: &Server, parameters: &Value) {
    for credential_type in ["password", "user"] {
        let response = server.generate("/a", credential_type, parameters.clone());
        response.await.expect(400).error();
    }
}

fn has_one_of(password: &str, set: &str) -> bool {
    password.contains(|character| set.contains(character))
}

fn has_only(password: &str, set: &str) -> bool {
    password.chars().all(|character| set.contains(character))
}

#[tokio::test]
async fn by_default_a_password_has_30_letters_and_digits() {
    let server = Server::reused().await;
    for password in passwords(&server, &json!({})).await {
        assert_eq!(password.len(), 30);
        for set in [UPPER, LOWER, NUMBERS] {
            assert!(has_one_of(&password, set), "{set}");
        }
        let all = [UPPER, LOWER, NUMBERS].concat();
        assert!(has_only(&password, &all), "{password}");
    }
}

#[tokio::test]
async fn a_password_has_characters_of_exactly_the_chosen_sets() {
    let server = Server::reused().await;
    for chosen in 1..16_u8 {
        let [upper, lower, number, special] = [1, 2, 4, 8].map(|bit| chosen & bit != 0);
        let parameters = json!({
            "length": 4, "exclude_upper": !upper, "exclude_lower": !lower, "exclude_number": !number,
            "include_special": special,
        });
        for password in passwords(&server, &parameters).await {
            assert_eq!(password.len(), 4);
            let sets = [UPPER, LOWER, NUMBERS, SPECIAL];
            let actual = sets.map(|set| has_one_of(&password, set));
            assert_eq!(actual, [upper, lower, number, special], "{parameters}");
        }
    }
}

#[tokio::test]
async fn excluding_every_set_is_400() {
    let server = Server::reused().await;
    let none = json!({"exclude_upper": true, "exclude_lower": true, "exclude_number": true});
    refused(&server, &none).await;
    let mut special_alone = none;
    special_alone["include_special"] = json!(true);
    for password in passwords(&server, &special_alone).await {
        assert!(has_only(&password, SPECIAL), "{password}");
    }
}

#[tokio::test]
async fn lengths_outside_4_to_200_are_400() {
    let server = Server::reused().await;
    for length in [4, 5, 199, 200] {
        for password in passwords(&server, &json!({"length": length})).await {
            assert_eq!(password.len(), length);
        }
    }
    for length in [3, 201, 0, -1, 65_540, i64::MAX] {
        refused(&server, &json!({"length": length})).await;
    }
}

#[tokio::test]
async fn passwords_do_not_repeat_across_requests() {
    let server = Server::reused().await;
    let mut made = std::collections::BTreeSet::new();
    for _ in 0..50 {
        made.extend(passwords(&server, &json!({})).await);
    }
    assert_eq!(made.len(), 100);
}

// The name and the hash of a user.

async fn generated(server: &Server, body: Value) -> Value {
    let mut body = body;
    body["name"] = json!("/a");
    body["type"] = json!("user");
    body["mode"] = json!("overwrite");
    server.post("/api/v1/data", body).await.expect(200).json()["value"].clone()
}

#[tokio::test]
async fn without_a_username_20_letters_are_generated() {
    let server = Server::reused().await;
    let mut names = std::collections::BTreeSet::new();
    for body in given::each(json!([
        {}, {"parameters": {"username": ""}}, {"parameters": {"username": null}}, {"value": {"username": ""}},
        {"value": {"username": null}}, {"value": {}}, {"value": null},
        {"parameters": {"username": ""}, "value": {"username": ""}},
    ])) {
        let user = generated(&server, body).await;
        let name = user["username"].as_str().unwrap().to_owned();
        assert_eq!(name.len(), 20);
        assert!(has_only(&name, &[UPPER, LOWER].concat()), "{name}");
        names.insert(name);
    }
    assert_eq!(names.len(), 8);
}

#[tokio::test]
async fn a_requested_username_is_used_and_value_takes_precedence() {
    let server = Server::reused().await;
    for (parameter, value, name) in [
        (Some("ada"), None, "ada"),
        (None, Some("grace"), "grace"),
        (Some("ada"), Some("grace"), "grace"),
        (Some("ada"), Some(""), "ada"),
        (Some("Ada Lovelace, 密码"), None, "Ada Lovelace, 密码"),
    ] {
        let mut body = json!({});
        for (field, username) in [("parameters", parameter), ("value", value)] {
            if let Some(username) = username {
                body[field] = json!({"username": username});
            }
        }
        assert_eq!(generated(&server, body).await["username"], name);
    }
}

#[tokio::test]
async fn a_username_over_7000_characters_is_413() {
    let server = Server::reused().await;
    let longest = "x".repeat(7_000);
    let user = generated(&server, json!({"parameters": {"username": longest}})).await;
    assert_eq!(user["username"], longest);
    let parameters = json!({"username": format!("{longest}x")});
    let response = server.generate("/b", "user", parameters).await;
    response.expect(413).error();
}
