//! Private keys whose numbers are larger than those of any supported key.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use keywright_harness::{
    Server,
    der::{INTEGER, Node, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE},
};
use serde_json::json;

/// The caller needs no permission: the key is checked before the caller is authorized.
#[tokio::test]
async fn an_rsa_key_with_a_huge_modulus_costs_little_processor_time() {
    let server = Server::start().await;
    let stranger = server.as_client("stranger").await;
    let key = rsa_key(&vec![0x7f; MODULUS_BYTES]);
    let pkcs8 = Node::of(
        SEQUENCE,
        vec![
            Node::new(INTEGER, &[0]),
            Node::of(
                SEQUENCE,
                vec![Node::new(OBJECT_IDENTIFIER, RSA), Node::null()],
            ),
            Node::new(OCTET_STRING, &key.to_der()),
        ],
    );
    for (label, key) in [("RSA PRIVATE KEY", key), ("PRIVATE KEY", pkcs8)] {
        let digits = STANDARD.encode(key.to_der());
        let pem = format!("-----BEGIN {label}-----\n{digits}\n-----END {label}-----\n");
        let body = json!({"name": "/a", "type": "certificate", "value": {"private_key": pem}});
        let before = server.processor_time();
        for _ in 0..REQUESTS {
            let refused = stranger.put("/api/v1/data", body.clone()).await;
            refused.expect_error(400, "1024 to 8192 bits");
        }
        let used = server.processor_time().saturating_sub(before);
        assert!(used < TIME_MAX, "{label}: {used:?}");
    }
}

/// Returns an RSA key in the form of PKCS#1 with this modulus and other numbers that do not match it.
fn rsa_key(modulus: &[u8]) -> Node {
    let number = |bytes: &[u8]| Node::new(INTEGER, bytes);
    let mut numbers = vec![number(&[0]), number(modulus), number(&[1, 0, 1])];
    numbers.extend([3, 5, 7, 1, 1, 1].map(|small| number(&[small])));
    Node::of(SEQUENCE, numbers)
}

/// The size of the modulus in bytes: in PEM, the key is almost as large as a value may be.
const MODULUS_BYTES: usize = 47_500;

/// The identifier of RSA keys, `rsaEncryption`.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

const REQUESTS: usize = 8;

/// The maximum processor time of all requests, several times less than computing with the modulus takes.
const TIME_MAX: Duration = Duration::from_millis(500);
