//! RSA and SSH keys.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{Outcome, converge, converge_from};

#[tokio::test]
async fn the_key_length_counts() {
    let server = Server::start().await;
    for credential_type in ["rsa", "ssh"] {
        server.delete("/api/v1/data?name=/a").await;
        for (first, then, outcome) in [
            (json!({}), json!({}), Outcome::Kept),
            (json!({}), json!({"key_length": 2048}), Outcome::Kept),
            (
                json!({"key_length": 3072}),
                json!({"key_length": "3072"}),
                Outcome::Kept,
            ),
            (json!({"key_length": 3072}), json!({}), Outcome::Written),
            (json!({}), json!({"key_length": 3072}), Outcome::Written),
        ] {
            let became = converge(&server, credential_type, &first, &then).await;
            assert_eq!(became, outcome, "{credential_type}: {first}, then {then}");
        }
    }
}

#[tokio::test]
async fn the_comment_of_an_ssh_key_counts_and_empty_equals_absent() {
    let server = Server::start().await;
    let (ada, grace) = (
        json!({"ssh_comment": "ada"}),
        json!({"ssh_comment": "grace"}),
    );
    let empty = json!({"ssh_comment": ""});
    for (first, then, outcome) in [
        (&ada, &ada, Outcome::Kept),
        (&ada, &grace, Outcome::Written),
        (&ada, &empty, Outcome::Written),
        (&ada, &json!({}), Outcome::Written),
        (&json!({}), &empty, Outcome::Kept),
        (&empty, &json!({}), Outcome::Kept),
        (&json!({}), &ada, Outcome::Written),
    ] {
        assert_eq!(
            converge(&server, "ssh", first, then).await,
            outcome,
            "{first}, then {then}"
        );
    }
}

#[tokio::test]
async fn a_set_key_is_kept_if_it_matches_the_parameters() {
    let server = Server::start().await;
    for (credential_type, parameters, other) in [
        ("rsa", json!({}), json!({"key_length": 3072})),
        ("rsa", json!({"key_length": 3072}), json!({})),
        ("ssh", json!({}), json!({"ssh_comment": "ada"})),
        (
            "ssh",
            json!({"ssh_comment": "ada on host"}),
            json!({"ssh_comment": "ada"}),
        ),
    ] {
        let made = server
            .generate("/made", credential_type, parameters.clone())
            .await;
        let value = made.expect(200).json()["value"].clone();
        for value in [value.clone(), json!({"public_key": value["public_key"]})] {
            let set = server
                .set("/a", credential_type, value)
                .await
                .expect(200)
                .json();
            let same = converge_from(&server, &set, credential_type, &parameters).await;
            assert_eq!(same, Outcome::Kept, "{credential_type} {parameters}");
            let different = converge_from(&server, &set, credential_type, &other).await;
            assert_eq!(
                different,
                Outcome::Written,
                "{credential_type} {parameters}"
            );
        }
        for name in ["/made", "/a"] {
            server
                .delete(&format!("/api/v1/data?name={name}"))
                .await
                .expect(204);
        }
    }
}

#[tokio::test]
async fn a_key_whose_public_part_is_absent_or_unreadable_differs() {
    let server = Server::start().await;
    for credential_type in ["rsa", "ssh"] {
        server.delete("/api/v1/data?name=/a").await;
        let values: [Value; 3] = [
            json!({"private_key": "private"}),
            json!({"public_key": "no key at all"}),
            json!({"public_key": "ssh-rsa AAAA", "private_key": "private"}),
        ];
        for value in values {
            let set = server
                .set("/a", credential_type, value.clone())
                .await
                .expect(200)
                .json();
            let became = converge_from(&server, &set, credential_type, &json!({})).await;
            assert_eq!(became, Outcome::Written, "{credential_type} {value}");
        }
    }
}
