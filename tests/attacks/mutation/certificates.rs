//! Certificates set by callers: their PEM and DER.

use base64::{Engine, engine::general_purpose::STANDARD};
use keywright_harness::Server;
use serde_json::{Value, json};

use super::generator::{ROUNDS_BETWEEN_CHECKS, Random, Rounds};
use crate::alive::{assert_alive, assert_no_fault, assert_runs};

/// Parts of DER: tags with short, long and indefinite lengths.
const DER_WORDS: [&[u8]; 16] = [
    b"\x30\x80",
    b"\x30\x00",
    b"\x30\x84\xff\xff\xff\xff",
    b"\x02\x01\x00",
    b"\x02\x02\x00\x80",
    b"\x03\x01\x00",
    b"\x03\x02\x07\x80",
    b"\x04\x00",
    b"\x05\x00",
    b"\x06\x03\x55\x1d\x13",
    b"\x06\x04\x80\x55\x1d\x13",
    b"\x0c\x02\xff\xfe",
    b"\x1e\x02\xd8\x00",
    b"\x17\x0d991332250000Z",
    b"\xa3\x00",
    b"\x31\x00",
];

/// Parts of PEM.
const PEM_WORDS: [&[u8]; 6] = [
    b"-----BEGIN CERTIFICATE-----",
    b"-----END CERTIFICATE-----",
    b"\n",
    b"=",
    b"\r\n\r\n",
    b"\0",
];

#[tokio::test]
async fn mutated_certificates() {
    let server = Server::start().await;
    let root = json!({"is_ca": true, "common_name": "root"});
    let root = server
        .generate("/root", "certificate", root)
        .await
        .expect(200);
    let leaf = json!({
        "ca": "/root", "common_name": "leaf", "alternative_names": ["a.example", "10.0.0.1"],
        "extended_key_usage": ["client_auth"], "organization_unit": "app:1",
    });
    let leaf = server
        .generate("/leaf", "certificate", leaf)
        .await
        .expect(200);
    let values = [root.json()["value"].take(), leaf.json()["value"].take()];
    let mut rounds = Rounds::new(4, 600);
    while let Some((round, mut random)) = rounds.next() {
        let value = mutated_value(&mut random, &values[round % 2]);
        let attack = format!("round {round}: {value}");
        let answer = server.set("/set", "certificate", value).await;
        assert_no_fault(&answer, &attack);
        if answer.status == 200 {
            // An accepted certificate can be read, and can sign a leaf or is rejected as a CA.
            assert_no_fault(&server.get("/api/v1/certificates?name=/set").await, &attack);
            let leaf = json!({"ca": "/set", "common_name": "of-set"});
            assert_no_fault(
                &server.generate("/of-set", "certificate", leaf).await,
                &attack,
            );
        }
        assert_runs(&server, &attack);
        if round.is_multiple_of(ROUNDS_BETWEEN_CHECKS) {
            assert_alive(&server, &attack).await;
        }
    }
    assert_alive(&server, "all rounds").await;
}

/// Changes one field of a certificate's value.
fn mutated_value(random: &mut Random, value: &Value) -> Value {
    let mut value = value.clone();
    let member = *random.pick(&[
        "certificate",
        "certificate",
        "certificate",
        "ca",
        "private_key",
    ]);
    let pem = value[member].as_str().unwrap();
    let changed = if random.below(4) == 0 {
        String::from_utf8_lossy(&random.mutated(pem.as_bytes(), &PEM_WORDS)).into_owned()
    } else {
        with_mutated_der(random, pem)
    };
    value[member] = json!(changed);
    value
}

fn with_mutated_der(random: &mut Random, pem: &str) -> String {
    let (head, body) = pem.trim().split_once('\n').unwrap();
    let (body, end) = body.rsplit_once('\n').unwrap();
    let der = STANDARD.decode(body.replace(['\r', '\n'], "")).unwrap();
    let der = random.mutated(&der, &DER_WORDS);
    format!("{head}\n{}\n{end}\n", STANDARD.encode(der))
}
