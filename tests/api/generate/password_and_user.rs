//! Passwords and users.

use keywright_harness::Server;
use serde_json::{Value, json};

// Passwords, and the parameters that users share with them.

const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const NUMBERS: &str = "0123456789";
const SPECIAL: &str = "!#$%&()*,-./:;<=>?@[\\]^_`{|}~";

/// Generates passwords and users' passwords with these parameters.
async fn passwords(server: &Server, parameters: &Value) -> [String; 2] {
    let mut made = Vec::new();
    for credential_type in ["password", "user"] {
        let name = format!("/{credential_type}");
        let response = server
            .generate_in_mode("overwrite", &name, credential_type, parameters.clone())
            .await
            .expect(200)
            .json();
        let value = &response["value"];
        let password = if credential_type == "user" {
            &value["password"]
        } else {
            value
        };
        made.push(password.as_str().unwrap().to_owned());
    }
    made.try_into().unwrap()
}

async fn refused(server: &Server, parameters: &Value) {
    for credential_type in ["password", "user"] {
        let response = server
            .generate("/a", credential_type, parameters.clone())
            .await;
        let response = response.expect(400);
        response.error();
    }
}

#[tokio::test]
async fn by_default_a_password_has_30_letters_and_digits() {
    let server = Server::reused().await;
    for password in passwords(&server, &json!({})).await {
        assert_eq!(password.len(), 30);
        for set in [UPPER, LOWER, NUMBERS] {
            assert!(
                password.chars().any(|character| set.contains(character)),
                "{set}"
            );
        }
        assert!(
            password
                .chars()
                .all(|character| character.is_ascii_alphanumeric())
        );
    }
}

#[tokio::test]
async fn a_password_has_characters_of_exactly_the_chosen_sets() {
    let server = Server::reused().await;
    for chosen in 1..16_u8 {
        let [upper, lower, number, special] = [1, 2, 4, 8].map(|bit| chosen & bit != 0);
        let parameters = json!({
            "length": 4,
            "exclude_upper": !upper,
            "exclude_lower": !lower,
            "exclude_number": !number,
            "include_special": special,
        });
        for password in passwords(&server, &parameters).await {
            assert_eq!(password.len(), 4);
            for (is_chosen, set) in [
                (upper, UPPER),
                (lower, LOWER),
                (number, NUMBERS),
                (special, SPECIAL),
            ] {
                let has = password.chars().any(|character| set.contains(character));
                assert_eq!(has, is_chosen, "{parameters}");
            }
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
        assert!(
            password
                .chars()
                .all(|character| SPECIAL.contains(character)),
            "{password}"
        );
    }
}

#[tokio::test]
async fn special_characters_are_never_a_quote_or_a_plus() {
    let server = Server::reused().await;
    let parameters = json!({"length": 200, "include_special": true});
    for _ in 0..20 {
        for password in passwords(&server, &parameters).await {
            assert!(!password.contains(['"', '\'', '+']), "{password}");
        }
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
async fn numbers_and_flags_may_be_strings_but_not_null() {
    let server = Server::reused().await;
    for password in passwords(&server, &json!({"length": "7", "exclude_upper": "true"})).await {
        assert_eq!(password.len(), 7);
        assert!(!password.chars().any(|character| UPPER.contains(character)));
    }
    for parameters in [
        json!({"length": null}),
        json!({"length": "long"}),
        json!({"length": ""}),
        json!({"length": "1.5"}),
        json!({"length": 7.5}),
        json!({"length": [7]}),
        json!({"exclude_upper": null}),
        json!({"exclude_upper": "maybe"}),
        json!({"exclude_upper": 2}),
    ] {
        refused(&server, &parameters).await;
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
    for body in [
        json!({}),
        json!({"parameters": {"username": ""}}),
        json!({"parameters": {"username": null}}),
        json!({"value": {"username": ""}}),
        json!({"value": {"username": null}}),
        json!({"value": {}}),
        json!({"value": null}),
        json!({"parameters": {"username": ""}, "value": {"username": ""}}),
    ] {
        let user = generated(&server, body).await;
        let name = user["username"].as_str().unwrap().to_owned();
        assert_eq!(name.len(), 20);
        assert!(
            name.chars().all(|letter| letter.is_ascii_alphabetic()),
            "{name}"
        );
        names.insert(name);
    }
    assert_eq!(names.len(), 8);
}

#[tokio::test]
async fn a_requested_username_is_used_and_value_takes_precedence() {
    let server = Server::reused().await;
    for (body, name) in [
        (json!({"parameters": {"username": "ada"}}), "ada"),
        (json!({"value": {"username": "grace"}}), "grace"),
        (
            json!({"parameters": {"username": "ada"}, "value": {"username": "grace"}}),
            "grace",
        ),
        (
            json!({"parameters": {"username": "ada"}, "value": {"username": ""}}),
            "ada",
        ),
        (
            json!({"parameters": {"username": "Ada Lovelace, 密码"}}),
            "Ada Lovelace, 密码",
        ),
    ] {
        assert_eq!(generated(&server, body).await["username"], name);
    }
}

#[tokio::test]
async fn a_username_that_is_not_a_string_is_400() {
    let server = Server::reused().await;
    for body in [
        json!({"name": "/a", "type": "user", "parameters": {"username": [7]}}),
        json!({"name": "/a", "type": "user", "value": {"username": ["ada"]}}),
        json!({"name": "/a", "type": "user", "value": "ada"}),
    ] {
        server.post("/api/v1/data", body).await.expect(400).error();
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
