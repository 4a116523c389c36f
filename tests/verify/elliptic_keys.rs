//! Key pairs on elliptic curves load in other programs, which sign and verify with them.

use keywright_harness::{Options, Program, Server, is_available};
use serde_json::{Value, json};

use crate::files::{Files, openssl};

/// Each kind of key: its type, its parameters but for the form, its bits and its name in OpenSSH, and what OpenSSL says of it.
fn kinds() -> [(
    &'static str,
    Value,
    &'static str,
    &'static str,
    &'static str,
); 4] {
    [
        (
            "ed25519",
            json!({}),
            "256",
            "ED25519",
            "ED25519 Private-Key:",
        ),
        ("ecdsa", json!({}), "256", "ECDSA", "ASN1 OID: prime256v1"),
        (
            "ecdsa",
            json!({"curve": "p384"}),
            "384",
            "ECDSA",
            "ASN1 OID: secp384r1",
        ),
        (
            "ecdsa",
            json!({"curve": "p521"}),
            "521",
            "ECDSA",
            "ASN1 OID: secp521r1",
        ),
    ]
}

async fn server() -> Server {
    Server::start_with(&Options::default().beyond_the_specification()).await
}

async fn generated(server: &Server, credential_type: &str, parameters: Value) -> Value {
    let name = format!("/{credential_type}");
    let answer = server.generate_in_mode("overwrite", &name, credential_type, parameters);
    answer.await.expect(200).json()
}

fn ssh_keygen(arguments: &[&str], input: &str) -> String {
    Program::run("ssh-keygen", arguments, input).expect_success()
}

#[tokio::test]
async fn openssh_loads_each_pair_agrees_on_its_public_key_and_fingerprint_and_signs() {
    if !is_available("ssh-keygen") {
        return;
    }
    let server = server().await;
    for (credential_type, mut parameters, bits, name, _) in kinds() {
        parameters["ssh_comment"] = json!("ada on host");
        let version = generated(&server, credential_type, parameters).await;
        let files = Files::new();
        let private_key = files.write_member("key", &version, "private_key");
        let line = version["value"]["public_key"].as_str().unwrap();
        let derived = ssh_keygen(&["-y", "-f", &private_key], "");
        assert_eq!(derived.trim_end(), line);

        let public_key = files.write("key.pub", line);
        let fingerprint = version["value"]["public_key_fingerprint"].as_str().unwrap();
        let expected = format!("{bits} SHA256:{fingerprint} ada on host ({name})");
        for file in [&private_key, &public_key] {
            let listed = ssh_keygen(&["-l", "-E", "sha256", "-f", file], "");
            assert_eq!(listed.trim_end(), expected);
        }

        let message = files.write("message", "signed message");
        ssh_keygen(
            &["-Y", "sign", "-f", &private_key, "-n", "test", &message],
            "",
        );
        let signature = format!("{message}.sig");
        let signers = files.write("signers", &format!("ada {line}\n"));
        let verify = [
            "-Y", "verify", "-f", &signers, "-I", "ada", "-n", "test", "-s", &signature,
        ];
        let verdict = ssh_keygen(&verify, "signed message");
        assert!(
            verdict.starts_with("Good \"test\" signature for ada"),
            "{verdict}"
        );
        let forged = Program::run("ssh-keygen", &verify, "another message");
        assert!(
            forged.errors.contains("incorrect signature"),
            "{}",
            forged.errors
        );
    }
}

#[tokio::test]
async fn openssl_finds_each_pair_valid_agrees_on_its_public_key_and_signs() {
    if !is_available("openssl") {
        return;
    }
    let server = server().await;
    for (credential_type, mut parameters, _, _, words) in kinds() {
        parameters["format"] = json!("pkcs8");
        let version = generated(&server, credential_type, parameters).await;
        let files = Files::new();
        let private_key = files.write_member("key", &version, "private_key");
        let public_key = files.write_member("public", &version, "public_key");
        let text = openssl(&["pkey", "-in", &private_key, "-noout", "-text", "-check"]);
        assert!(
            text.contains("Key is valid") && text.contains(words),
            "{text}"
        );
        let derived = openssl(&["pkey", "-in", &private_key, "-pubout"]);
        assert_eq!(version["value"]["public_key"], derived);

        let message = files.write("message", "signed message");
        let signature = files.path("signature");
        let signature = signature.to_str().unwrap();
        let digest: &[&str] = match credential_type {
            "ed25519" => &[],
            _ => &["-digest", "sha256"],
        };
        let sign = ["pkeyutl", "-sign", "-rawin", "-inkey", &private_key];
        openssl(&[&sign[..], digest, &["-in", &message, "-out", signature]].concat());
        let verify = [
            "pkeyutl",
            "-verify",
            "-rawin",
            "-pubin",
            "-inkey",
            &public_key,
        ];
        let verify = [&verify[..], digest, &["-sigfile", signature, "-in"]].concat();
        let verdict = openssl(&[&verify[..], &[&message]].concat());
        assert!(
            verdict.contains("Signature Verified Successfully"),
            "{verdict}"
        );
        let forged = files.write("forged", "another message");
        let forged = Program::run("openssl", &[&verify[..], &[&forged]].concat(), "");
        assert!(!forged.is_success, "{forged:?}");
    }
}
