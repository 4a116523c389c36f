//! Passwords, and the parameters that users share with them.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::Server;
use serde_json::{Value, json};

const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const NUMBERS: &str = "0123456789";
const SPECIAL: &str = "!#$%&()*,-./:;<=>?@[\\]^_`{|}~";

/// Generates passwords and users' passwords with these parameters.
async fn passwords(server: &Server, parameters: &Value) -> [String; 2] {
    let mut made = Vec::new();
    for credential_type in ["password", "user"] {
        let name = format!("/{credential_type}");
        let answer = server
            .generate_in_mode("overwrite", &name, credential_type, parameters.clone())
            .await
            .expect(200)
            .json();
        let value = &answer["value"];
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
        let answer = server
            .generate("/a", credential_type, parameters.clone())
            .await;
        assert_eq!(
            answer.status, 400,
            "{credential_type} {parameters}: {}",
            answer.body
        );
        answer.error();
    }
}

#[tokio::test]
async fn by_default_a_password_has_30_letters_and_digits() {
    let server = Server::start().await;
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
async fn every_chosen_set_is_in_a_password_and_no_other() {
    let server = Server::start().await;
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
    let server = Server::start().await;
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
    let server = Server::start().await;
    let parameters = json!({"length": 200, "include_special": true});
    for _ in 0..20 {
        for password in passwords(&server, &parameters).await {
            assert!(!password.contains(['"', '\'', '+']), "{password}");
        }
    }
}

#[tokio::test]
async fn lengths_outside_4_to_200_are_400() {
    let server = Server::start().await;
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
async fn numbers_and_flags_may_be_texts_but_never_null() {
    let server = Server::start().await;
    for password in passwords(&server, &json!({"length": "7", "exclude_upper": "true"})).await {
        assert_eq!(password.len(), 7);
        assert!(!password.chars().any(|character| UPPER.contains(character)));
    }
    for parameters in [
        json!({"length": null}),
        json!({"length": "long"}),
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
async fn no_two_passwords_are_alike() {
    let server = Server::start().await;
    let mut made = std::collections::BTreeSet::new();
    for _ in 0..50 {
        made.extend(passwords(&server, &json!({})).await);
    }
    assert_eq!(made.len(), 100);
}
