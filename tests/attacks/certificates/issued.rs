//! Bodies that a hostile plugin passes to its issuer to sign.

use chrono::{DateTime, Duration, Utc};
use keywright_harness::{
    Commanded, Options, Server,
    der::{Node, SET, certificate},
    field,
};
use rustls::pki_types::{CertificateDer, UnixTime};
use serde_json::{Value, json};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};

use super::bodies::{self, Attack, SUBJECT, VALIDITY, put_extension, set_extension, unit};

/// The minimum number of malformed or overreaching bodies.
const BODIES_MIN: usize = 109;

/// The maximum number of attempts until a call completes within one second.
const ATTEMPTS_MAX: usize = 100;

#[tokio::test]
async fn no_malformed_or_overreaching_body_is_signed() {
    let server = server().await;
    let (leaf, root) = (leaf(&server).await, body(&root(&server).await));
    let mut attacks = bodies::malformed(&leaf);
    attacks.extend(bodies::overreaching(&root));
    assert!(attacks.len() >= BODIES_MIN, "{}", attacks.len());
    let mut signed = Vec::new();
    for (name, change) in &attacks {
        let (note, _) = outcome(&server, &leaf, change).await;
        if !note.starts_with("refused: ") {
            signed.push(format!("{name}: {note}"));
        }
    }
    assert!(
        signed.is_empty(),
        "{} of {}:\n{}",
        signed.len(),
        attacks.len(),
        signed.join("\n")
    );
    assert_alive(&server).await;
}

#[tokio::test]
async fn well_formed_bodies_of_every_kind_are_signed() {
    let server = server().await;
    let (leaf, root) = (leaf(&server).await, root(&server).await);
    let root_der = CertificateDer::from(certificate(field(&root, "certificate")));
    let mut files = vec![];
    for (name, change) in well_formed() {
        let (note, signed) = outcome(&server, &leaf, &change).await;
        assert!(note.starts_with("signed "), "{name}: {note}");
        let file = server.directory().join(format!("{}.der", files.len()));
        std::fs::write(&file, &signed).unwrap();
        files.push(file.display().to_string());
        let anchors = [anchor_from_trusted_cert(&root_der).unwrap()];
        let signed = CertificateDer::from(signed);
        let signed = EndEntityCert::try_from(&signed).unwrap();
        let verified = signed.verify_for_usage(
            ALL_VERIFICATION_ALGS,
            &anchors,
            &[],
            UnixTime::now(),
            KeyUsage::server_auth(),
            None,
            None,
        );
        assert!(verified.is_ok(), "{name}: {:?}", verified.err());
    }
    let authority = server.directory().join("root.pem");
    std::fs::write(&authority, root["value"]["certificate"].as_str().unwrap()).unwrap();
    let authority = authority.display().to_string();
    let mut arguments = vec!["verify", "-x509_strict", "-CAfile", &authority];
    arguments.extend(files.iter().map(String::as_str));
    Commanded::run("openssl", &arguments, "").expect(0);
}

fn well_formed() -> Vec<Attack> {
    let text = |name: &str, tag: u8, text: &'static [u8]| -> Attack {
        let change = move |body: &mut Node| *body.at(&[SUBJECT, 0, 0, 1]) = Node::new(tag, text);
        (name.to_owned(), Box::new(change))
    };
    let extension = |name: &str, identifier: &'static [u8], value: &'static [u8]| -> Attack {
        let change = move |body: &mut Node| put_extension(body, identifier, false, value);
        (name.to_owned(), Box::new(change))
    };
    let numbered = |name: &str, arc: u8, value: &'static [u8]| -> Attack {
        let change = move |body: &mut Node| set_extension(body, &[arc], false, value);
        (name.to_owned(), Box::new(change))
    };
    vec![
        ("unchanged".to_owned(), Box::new(|_: &mut Node| {})),
        text("UTF8String", 0x0c, "größer".as_bytes()),
        text("PrintableString", 0x13, b"a (b) '+,-./:=?"),
        text("TeletexString", 0x14, b"gr\xf6\xdfer"),
        text("IA5String", 0x16, b"a@b"),
        text("BMPString", 0x1e, b"\x00a\x20\xac"),
        text("UniversalString", 0x1c, b"\x00\x01\xf6\x00"),
        ("several attributes in one relative name".to_owned(), Box::new(|body: &mut Node| {
            let nodes = ["a", "b"].map(unit);
            body.at(&[SUBJECT]).nodes().push(Node::of(SET, nodes.into()));
        })),
        ("empty subject".to_owned(), Box::new(|body: &mut Node| {
            body.at(&[SUBJECT]).nodes().clear();
            set_extension(body, &[17], true, b"\x30\x03\x82\x01a");
        })),
        numbered("all kinds of alternative names", 17, ALTERNATIVE_NAMES),
        numbered("key usage of nine bits", 15, &[3, 3, 7, 0x88, 0x80]),
        numbered("any extended key usage", 37, b"\x30\x10\x06\x04\x55\x1d\x25\x00\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x01"),
        numbered("distribution points", 31, b"\x30\x0b\x30\x09\xa0\x07\xa0\x05\x86\x03a:b"),
        numbered("policies", 32, b"\x30\x17\x30\x15\x06\x02\x2a\x03\x30\x0f\x30\x0d\x06\x08\x2b\x06\x01\x05\x05\x07\x02\x01\x16\x01a"),
        numbered("freshest revocation list", 46, b"\x30\x0b\x30\x09\xa0\x07\xa0\x05\x86\x03a:b"),
        extension("authority information", b"\x2b\x06\x01\x05\x05\x07\x01\x01",
            b"\x30\x11\x30\x0f\x06\x08\x2b\x06\x01\x05\x05\x07\x30\x01\x86\x03a:b"),
        extension("TLS feature", b"\x2b\x06\x01\x05\x05\x07\x01\x18", b"\x30\x03\x02\x01\x05"),
        extension("Netscape certificate type of a client", b"\x60\x86\x48\x01\x86\xf8\x42\x01\x01", &[3, 2, 7, 0x80]),
        extension("Netscape comment", b"\x60\x86\x48\x01\x86\xf8\x42\x01\x0d", b"\x16\x04text"),
        extension("unknown extension", b"\x2a\x03", b"\x30\x06\x02\x01\x07\x0c\x01a"),
    ]
}

const ALTERNATIVE_NAMES: &[u8] = b"\x30\x36\
    \xa0\x0a\x06\x02\x2a\x03\xa0\x04\x0c\x02id\
    \x81\x03a@b\
    \x82\x03a.b\
    \xa4\x0f\x30\x0d\x31\x0b\x30\x09\x06\x03\x55\x04\x03\x0c\x02cn\
    \x86\x03a:b\
    \x87\x04\x0a\x00\x00\x01\
    \x88\x02\x2a\x03";

async fn server() -> Server {
    Server::start_with(&Options::default().hostile("", "generate = \"sign\"")).await
}

async fn root(server: &Server) -> Value {
    let parameters = json!({"common_name": "root", "is_ca": true, "key_type": "ecdsa-p256", "key_usage": ["key_cert_sign"]});
    server
        .generate_in_mode("no-overwrite", "/root", "certificate", parameters)
        .await
        .expect(200)
        .json()
}

/// Returns a certificate body signed by the root, with many fields.
async fn leaf(server: &Server) -> Node {
    root(server).await;
    let parameters = json!({
        "ca": "/root", "common_name": "leaf", "organization": "o", "country": "AQ",
        "alternative_names": ["a.example.org", "10.0.0.1", "a@example.org", "https://example.org/a"],
        "key_usage": ["digital_signature", "key_encipherment"],
        "extended_key_usage": ["server_auth", "client_auth"],
    });
    body(&server.generated("/leaf", "certificate", parameters).await)
}

fn body(version: &Value) -> Node {
    let pem = field(version, "certificate");
    Node::parse(&certificate(pem)).at(&[0]).clone()
}

/// Returns the plugin's note about signing the changed body, and the certificate. The body's validity must start in the
/// second of the call, so a call that spans two seconds is repeated.
async fn outcome(server: &Server, body: &Node, change: &dyn Fn(&mut Node)) -> (String, Vec<u8>) {
    for _ in 0..ATTEMPTS_MAX {
        let mut body = body.clone();
        let now = Utc::now();
        for (position, time) in [now, now + Duration::days(1)].into_iter().enumerate() {
            *body.at(&[VALIDITY, position]).bytes() = utc_time(time);
        }
        change(&mut body);
        let parameters = json!({
            "ca": "/root",
            "duration": 2,
            "tbs_certificate": hex::encode(body.to_der()),
        });
        let response = server
            .generate_in_mode("overwrite", "/a", "hostile", parameters)
            .await;
        let value = response.expect(200).json()["value"].take();
        let note = value["note"].as_str().unwrap();
        if !note.contains("the validity must not begin") {
            let secret = value["secret"].as_str().unwrap();
            return (note.to_owned(), hex::decode(secret).unwrap());
        }
    }
    panic!("no call started and ended in the same second");
}

fn utc_time(time: DateTime<Utc>) -> Vec<u8> {
    time.format("%y%m%d%H%M%SZ").to_string().into_bytes()
}

/// Asserts that the server still generates credentials, and that nothing has panicked.
pub(crate) async fn assert_alive(server: &Server) {
    server.generated("/alive", "password", json!({})).await;
    assert!(!server.log().contains("panicked"), "{}", server.log());
}
