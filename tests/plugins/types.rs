//! The API and the client handle the additional types of shipped plugins like the seven types of the specification.

use keywright_harness::{Options, ReusedServer, Server, Shell, Text};
use serde_json::{Value, json};

/// Returns the types, each with parameters other than the defaults, and a value to set.
fn types() -> Vec<(&'static str, Value, Value)> {
    let keys = json!({"public_key": "any text", "private_key": null});
    vec![
        (
            "ecdsa",
            json!({"curve": "p384", "ssh_comment": "ada@host"}),
            keys.clone(),
        ),
        ("ed25519", json!({"format": "pkcs8"}), keys),
        (
            "passphrase",
            json!({"words": 8, "separator": " ", "capitalize": true}),
            json!("correct horse battery staple"),
        ),
    ]
}

async fn server() -> ReusedServer {
    Server::reused_with(&Options::default().beyond_the_specification()).await
}

async fn generated(
    server: &Server,
    name: &str,
    credential_type: &str,
    parameters: &Value,
) -> Value {
    let response = server.generate(name, credential_type, parameters.clone());
    response.await.expect(200).json()
}

/// Returns the part of a value that changes with every generation: the value if it is a text, or the private key.
fn secret(version: &Value) -> &Value {
    let value = &version["value"];
    value.get("private_key").unwrap_or(value)
}

/// Returns whether values that were set can be regenerated: key pairs, but not texts.
fn is_regeneratable(version: &Value) -> bool {
    version["value"].is_object()
}

#[tokio::test]
async fn every_generate_mode_applies_to_every_type() {
    let server = server().await;
    for (credential_type, parameters, _) in types() {
        let name = format!("/{credential_type}");
        let first = generated(&server, &name, credential_type, &parameters).await;
        for (mode, parameters, is_new) in [
            ("converge", &parameters, false),
            ("no-overwrite", &json!({}), false),
            ("converge", &json!({}), true),
            ("converge", &json!({}), false),
            ("overwrite", &json!({}), true),
        ] {
            let before = server.versions(&name).await;
            let response = server
                .generate_in_mode(mode, &name, credential_type, parameters.clone())
                .await;
            let version = response.expect(200).json();
            assert_eq!(version["id"] != before[0]["id"], is_new, "{name} {mode}");
        }
        let versions = server.versions(&name).await;
        assert_eq!(versions.len(), 3, "{name}");
        assert_eq!(versions[2], first);
    }
}

#[tokio::test]
async fn every_type_is_regenerated_with_its_parameters() {
    let server = server().await;
    for (credential_type, parameters, _) in types() {
        let name = format!("/{credential_type}");
        let first = generated(&server, &name, credential_type, &parameters).await;
        let second = server.regenerated(&name).await;
        assert_ne!(secret(&second), secret(&first));
        let converged = generated(&server, &name, credential_type, &parameters).await;
        assert_eq!(converged, second);
    }
}

#[tokio::test]
async fn set_key_pair_is_regenerated_and_text_is_not() {
    let server = server().await;
    let ssh = json!({"format": "ssh", "ssh_comment": "ada @ host"});
    let keys = ["p256", "p384", "p521"].map(|curve| ("ecdsa", json!({"curve": curve})));
    let keys = keys.into_iter().chain([
        ("ecdsa", json!({"curve": "p521", "format": "pkcs8"})),
        ("ecdsa", ssh.clone()),
        ("ed25519", ssh),
        ("ed25519", json!({})),
    ]);
    let types = types().into_iter();
    let types = types.map(|(credential_type, parameters, _)| (credential_type, parameters));
    for (credential_type, parameters) in keys.chain(types) {
        let generated = generated(&server, "/generated", credential_type, &parameters).await;
        let mut value = generated["value"].clone();
        if let Some(key) = value.get_mut("public_key") {
            *key = json!(format!("{}\n", key.as_str().unwrap()));
        }
        let set = server.set("/set", credential_type, value);
        set.await.expect(200);
        let response = server.regenerate("/set").await;
        if is_regeneratable(&generated) {
            let regenerated = response.expect(200).json();
            let begin = |version: &Value| secret(version).as_str().unwrap()[..32].to_owned();
            assert_eq!(begin(&regenerated), begin(&generated));
            let converged = server.generate("/set", credential_type, parameters).await;
            assert_eq!(converged.expect(200).json(), regenerated);
        } else {
            response.expect(400).error();
        }
        for name in ["/generated", "/set"] {
            let path = format!("/api/v1/data?name={name}");
            server.delete(&path).await.expect(204);
        }
    }
    // An unreadable key is regenerated with the defaults.
    for credential_type in ["ecdsa", "ed25519"] {
        let value = json!({"public_key": format!("ssh-{credential_type} !!!!")});
        server.stored("/set", credential_type, value).await;
        let regenerated = server.regenerated("/set").await;
        let converged = server.generated("/set", credential_type, json!({})).await;
        assert_eq!(converged, regenerated);
        server.delete("/api/v1/data?name=/set").await.expect(204);
    }
}

#[tokio::test]
async fn set_values_are_validated() {
    let server = server().await;
    for (credential_type, _, value) in types() {
        let set = server.set("/a", credential_type, value.clone()).await;
        assert_eq!(set.expect(200).json()["type"], credential_type);
        for wrong in [json!(""), json!(3), json!([]), json!({})] {
            let response = server.set("/a", credential_type, wrong).await;
            response.expect(400).error();
        }
        assert_eq!(server.versions("/a").await.len(), 1);
        server.delete("/api/v1/data?name=/a").await.expect(204);
    }
}

#[tokio::test]
async fn invalid_parameters_are_400_and_named() {
    let server = server().await;
    for (credential_type, parameters, named) in [
        ("ecdsa", json!({"curve": "p224"}), "curve"),
        ("ecdsa", json!({"curve": "P-256"}), "curve"),
        ("ecdsa", json!({"curve": 256}), "curve"),
        ("ecdsa", json!({"key_length": 256}), "key_length"),
        ("ed25519", json!({"format": "pem"}), "format"),
        (
            "ed25519",
            json!({"format": "pkcs8", "ssh_comment": "a"}),
            "ssh_comment",
        ),
        ("passphrase", json!({"words": 3}), "words"),
        ("passphrase", json!({"words": 41}), "words"),
        ("passphrase", json!({"separator": "\n"}), "separator"),
        ("passphrase", json!({"separator": "ä"}), "separator"),
        ("passphrase", json!({"separator": "123456789"}), "separator"),
    ] {
        let response = server.generate("/a", credential_type, parameters).await;
        response.expect_error(400, named);
    }
}

#[tokio::test]
async fn every_type_is_exported_and_imported() {
    let source = server().await;
    for (credential_type, parameters, value) in types() {
        let name = format!("/generated/{credential_type}");
        generated(&source, &name, credential_type, &parameters).await;
        let name = format!("/set/{credential_type}");
        source.stored(&name, credential_type, value).await;
    }
    let shell = Shell::of(&source);
    shell.run(&["export", "--file", "export.yml"]).expect(0);
    let target = server().await;
    let path = shell.file("export.yml");
    let run = Shell::of(&target).run(&["import", path.to_str().unwrap(), "--output", "json"]);
    let summary = run.expect(0).json();
    assert_eq!(
        (&summary["set"], &summary["failed"]),
        (&json!(2 * types().len()), &json!(0))
    );
    for (credential_type, parameters, _) in types() {
        for folder in ["generated", "set"] {
            let name = format!("/{folder}/{credential_type}");
            let [expected, found] = [&source, &target].map(|server| server.versions(&name));
            let (expected, found) = (expected.await, found.await);
            assert_eq!(found[0]["type"], expected[0]["type"]);
            assert_eq!(secret(&found[0]), secret(&expected[0]), "{name}");
            let public_key = |version: &Value| version["value"].get("public_key").cloned();
            assert_eq!(public_key(&found[0]), public_key(&expected[0]), "{name}");
        }
        let name = format!("/generated/{credential_type}");
        if is_regeneratable(&target.versions(&name).await[0]) {
            let regenerated = target.regenerated(&name).await;
            let actual = generated(&target, &name, credential_type, &parameters).await;
            assert_eq!(actual, regenerated);
        }
    }
}

#[tokio::test]
async fn every_type_is_listed_with_its_schemas() {
    let server = server().await;
    let listed = server.get_json("/api/v1/types").await;
    let listed = listed["types"].as_array().unwrap();
    for (credential_type, parameters, _) in types() {
        let known = listed.iter().find(|known| known["name"] == credential_type);
        let known = known.unwrap();
        assert_eq!(known["plugin"]["name"], credential_type);
        for parameter in parameters.as_object().unwrap().keys() {
            let schema = &known["parameters"]["properties"][parameter];
            assert!(schema["description"].is_string(), "{parameter}");
        }
        assert!(known["value"].is_object());
        let value = json!("v");
        let error = server.set("/a", "nonsense", value).await;
        let error = error.expect(422).error();
        error.assert_contains(credential_type);
    }
}
