//! The contents of a generated certificate and its response.

use keywright_harness::{QUICK_KEY, Server};
use serde_json::{Value, json};
use x509_parser::der_parser::asn1_rs::Tag;

use crate::keys::with_certificate;

fn pem(version: &Value) -> &str {
    version["value"]["certificate"].as_str().unwrap()
}

#[tokio::test]
async fn the_flags_describe_the_generated_certificate() {
    let server = Server::reused().await;
    let contents = json!({"common_name": "root", "is_ca": true});
    server.issued("/root", contents).await;
    for (name, parameters, is_authority, is_self_signed) in [
        (
            "/i",
            json!({"common_name": "i", "ca": "/root", "is_ca": true}),
            true,
            false,
        ),
        (
            "/l",
            json!({"common_name": "l", "ca": "/root"}),
            false,
            false,
        ),
        (
            "/s",
            json!({"common_name": "s", "self_sign": true}),
            false,
            true,
        ),
        (
            "/sr",
            json!({"common_name": "sr", "self_sign": true, "is_ca": true}),
            true,
            true,
        ),
    ] {
        let version = server.issued(name, parameters).await;
        assert_eq!(version["certificate_authority"], is_authority, "{name}");
        assert_eq!(version["self_signed"], is_self_signed, "{name}");
        assert_eq!(version["generated"], true, "{name}");
        assert_eq!(version["transitional"], false, "{name}");
        let is_own_ca = version["value"]["ca"] == version["value"]["certificate"];
        assert_eq!(is_own_ca, is_self_signed, "{name}");
        assert_eq!(version["value"].as_object().unwrap().len(), 3, "{name}");
    }
}

/// The key usages, in the order of their bits.
pub(super) const KEY_USAGES: [&str; 9] = [
    "digital_signature",
    "non_repudiation",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
];

#[tokio::test]
async fn each_key_usage_sets_its_own_bit() {
    let server = Server::reused().await;
    for (bit, usage) in KEY_USAGES.into_iter().enumerate() {
        let name = format!("/{usage}");
        let parameters = json!({"key_type": "rsa", "self_sign": true, "key_usage": [usage]});
        let version = server.issued(&name, parameters).await;
        with_certificate(pem(&version), |certificate| {
            let found = certificate.key_usage().unwrap().unwrap();
            assert!(found.critical);
            assert_eq!(found.value.flags, 1 << bit, "{usage}");
        });
    }
}

#[tokio::test]
async fn validity_begins_now_and_lasts_exactly_the_requested_days() {
    let server = Server::reused().await;
    server
        .issued(
            "/root",
            json!({"common_name": "root", "is_ca": true, "duration": 2}),
        )
        .await;
    for duration in [1, 365, 3_650] {
        let name = format!("/{duration}");
        let parameters = json!({"common_name": "leaf", "ca": "/root", "duration": duration});
        let before = chrono::Utc::now().timestamp();
        let version = server.issued(&name, parameters).await;
        let after = chrono::Utc::now().timestamp();
        with_certificate(pem(&version), |certificate| {
            let validity = certificate.validity();
            let (begin, end) = (
                validity.not_before.timestamp(),
                validity.not_after.timestamp(),
            );
            assert_eq!(end - begin, duration * 86_400, "{duration}");
            assert!((before..=after).contains(&begin), "{begin}");
            let expiry = chrono::DateTime::from_timestamp(end, 0).unwrap();
            let expiry = expiry.format("%Y-%m-%dT%H:%M:%SZ").to_string();
            assert_eq!(version["expiry_date"], expiry);
        });
    }
}

#[tokio::test]
async fn serial_numbers_are_positive_random_and_of_at_most_159_bits() {
    let server = Server::reused().await;
    let mut longest = 0;
    let mut serials = std::collections::BTreeSet::new();
    for _ in 0..12 {
        let parameters = json!({"common_name": "a", "self_sign": true, "key_type": QUICK_KEY});
        let response = server
            .generate_in_mode("overwrite", "/a", "certificate", parameters)
            .await;
        let version = response.expect(200).json();
        with_certificate(pem(&version), |certificate| {
            let serial = certificate.tbs_certificate.raw_serial().to_vec();
            assert!(serial.len() <= 20 && serial[0] < 0x80, "{serial:?}");
            longest = longest.max(certificate.tbs_certificate.serial.bits());
            serials.insert(serial);
        });
    }
    assert_eq!(serials.len(), 12);
    // The probability that twelve random numbers of 159 bits all lack the upper seven is 2 to the power of -84.
    assert!((153..=159).contains(&longest), "{longest}");
}

/// Returns the subject's attributes as (OID, encoding, text), one for each RDN.
fn attributes(version: &Value) -> Vec<(String, Tag, String)> {
    with_certificate(pem(version), |certificate| {
        let subject = certificate.subject();
        assert!(subject.iter_rdn().all(|rdn| rdn.iter().count() == 1));
        let attributes = subject.iter_attributes().map(|attribute| {
            let tag = attribute.attr_value().tag();
            let text = attribute.as_str().unwrap().to_owned();
            (attribute.attr_type().to_id_string(), tag, text)
        });
        attributes.collect()
    })
}

const FIELDS: [(&str, &str); 6] = [
    ("common_name", "2.5.4.3"),
    ("organization_unit", "2.5.4.11"),
    ("country", "2.5.4.6"),
    ("state", "2.5.4.8"),
    ("organization", "2.5.4.10"),
    ("locality", "2.5.4.7"),
];

#[tokio::test]
async fn only_given_subject_fields_appear_in_the_specified_order() {
    let server = Server::reused().await;
    let mut all = json!({"self_sign": true});
    for (field, _) in FIELDS.iter().rev() {
        all[*field] = json!(if *field == "country" { "AT" } else { field });
    }
    let version = server.issued("/all", all).await;
    let expected = FIELDS.map(|(field, oid)| match field {
        "country" => (oid.to_owned(), Tag::PrintableString, "AT".to_owned()),
        _ => (oid.to_owned(), Tag::Utf8String, field.to_owned()),
    });
    assert_eq!(attributes(&version), expected);

    let two = json!({"self_sign": true, "locality": "Graz", "common_name": "", "country": "AT"});
    let version = server.issued("/two", two).await;
    let texts = attributes(&version).into_iter().map(|(.., text)| text);
    assert_eq!(texts.collect::<Vec<_>>(), ["AT", "Graz"]);
}
