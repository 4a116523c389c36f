//! Row 14: generated certificates can be set and imported again.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use std::time::{Duration, Instant};

use keywright_harness::{Server, Shell};
use serde_json::{Value, json};

/// The limit of a value, in bytes of JSON.
const VALUE_BYTES_MAX: usize = 65_536;

/// The timeout of a request, generous enough for a busy machine if the time is linear in the size.
const LONGEST: Duration = Duration::from_secs(20);

fn parameters(signer: &Value, names: usize) -> Value {
    let names: Vec<_> = (0..names)
        .map(|number| format!("host-{number:05}.example"))
        .collect();
    let mut parameters = json!({
        "common_name": "large", "key_type": "ed25519", "alternative_names": names,
    });
    let fields = signer.as_object().unwrap().clone();
    parameters.as_object_mut().unwrap().extend(fields);
    parameters
}

/// Generates the certificate with the most alternative names that the server accepts.
async fn generate_largest(server: &Server, name: &str, signer: &Value) -> Value {
    let (mut taken, mut refused) = (1, 4_096);
    let mut largest = Value::Null;
    while taken + 1 < refused {
        let names = usize::midpoint(taken, refused);
        let answer = server
            .generate_in_mode("overwrite", name, "certificate", parameters(signer, names))
            .await;
        if answer.status == 200 {
            (taken, largest) = (names, answer.json());
        } else {
            answer.expect(413).error();
            refused = names;
        }
    }
    let bytes = largest["value"].to_string().len();
    assert!(
        (VALUE_BYTES_MAX - 100..=VALUE_BYTES_MAX).contains(&bytes),
        "{bytes}"
    );
    largest
}

#[tokio::test]
async fn row_14_the_largest_generated_certificates_can_be_set() {
    let server = Server::start().await;
    let root = json!({"common_name": "root", "is_ca": true, "key_type": "ed25519"});
    server
        .generate("/root", "certificate", root)
        .await
        .expect(200);
    let leaf = generate_largest(&server, "/leaf", &json!({"ca": "/root"})).await;
    let lone = generate_largest(&server, "/lone", &json!({"self_sign": true})).await;
    let authority = generate_largest(&server, "/authority", &json!({"is_ca": true})).await;
    for (name, made) in [
        ("/leaf", &leaf),
        ("/lone", &lone),
        ("/authority", &authority),
    ] {
        let begin = Instant::now();
        let stored = server.set(name, "certificate", made["value"].clone()).await;
        assert_eq!(stored.expect(200).json()["value"], made["value"], "{name}");
        assert!(begin.elapsed() < LONGEST, "{name}: {:?}", begin.elapsed());
    }
    let by_name = json!({
        "ca_name": "/root",
        "certificate": leaf["value"]["certificate"],
        "private_key": leaf["value"]["private_key"],
    });
    let stored = server
        .set("/leaf", "certificate", by_name)
        .await
        .expect(200)
        .json();
    assert_eq!(stored["value"], leaf["value"]);

    let shell = Shell::of(&server);
    shell.run(&["export", "--file", "all.yml"]).expect(0);
    let target = Server::start().await;
    let file = shell.file("all.yml");
    Shell::of(&target)
        .run(&["import", file.to_str().unwrap()])
        .expect(0);
    for (name, made) in [
        ("/leaf", &leaf),
        ("/lone", &lone),
        ("/authority", &authority),
    ] {
        let stored = target
            .get(&format!("/api/v1/data?name={name}"))
            .await
            .expect(200)
            .json();
        assert_eq!(stored["data"][0]["value"], made["value"], "{name}");
        target.regenerate(name).await.expect(200);
    }
}

#[tokio::test]
async fn row_14_a_certificate_beyond_the_limit_of_a_value_is_413() {
    let server = Server::start().await;
    let root = json!({"common_name": "root", "is_ca": true, "key_type": "ed25519"});
    let root = server
        .generate("/root", "certificate", root)
        .await
        .expect(200)
        .json();
    let certificate = root["value"]["certificate"].as_str().unwrap();
    for member in ["ca", "certificate"] {
        let value = |text: &str| json!({"ca": null, "certificate": null, "private_key": null, member: text});
        let frame = value(certificate).to_string().len();
        let longest = format!("{certificate}{}", "x".repeat(VALUE_BYTES_MAX - frame));
        server
            .set("/a", "certificate", value(&longest))
            .await
            .expect(200);
        let too_long = value(&format!("{longest}x"));
        server
            .set("/a", "certificate", too_long)
            .await
            .expect(413)
            .error();
        // Its size is checked before anything is parsed.
        let garbage = json!({member: "x".repeat(VALUE_BYTES_MAX + 1)});
        server
            .set("/a", "certificate", garbage)
            .await
            .expect(413)
            .error();
        assert_eq!(server.versions("/a").await.len(), 1);
        server.delete("/api/v1/data?name=/a").await.expect(204);
    }
}
