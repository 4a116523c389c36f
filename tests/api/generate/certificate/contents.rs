//! The contents of a generated certificate and its response.

use keywright_harness::Server;
use serde_json::{Value, json};
use x509_parser::prelude::{GeneralName, ParsedExtension, X509Certificate};

use crate::{
    given,
    keys::{assert_is_pem, with_certificate},
};

async fn generated(server: &Server, name: &str, parameters: Value) -> Value {
    server
        .generate(name, "certificate", parameters)
        .await
        .expect(200)
        .json()
}

fn pem(version: &Value) -> &str {
    version["value"]["certificate"].as_str().unwrap()
}

/// Returns the OIDs of the extensions in their order, each with whether the extension is critical.
fn extensions(certificate: &X509Certificate<'_>) -> Vec<(String, bool)> {
    let extensions = certificate.extensions().iter();
    extensions
        .map(|extension| (extension.oid.to_id_string(), extension.critical))
        .collect()
}

const SUBJECT_KEY_IDENTIFIER: &str = "2.5.29.14";
const KEY_USAGE: &str = "2.5.29.15";
const SUBJECT_ALTERNATIVE_NAME: &str = "2.5.29.17";
const BASIC_CONSTRAINTS: &str = "2.5.29.19";
const AUTHORITY_KEY_IDENTIFIER: &str = "2.5.29.35";
const EXTENDED_KEY_USAGE: &str = "2.5.29.37";

#[tokio::test]
async fn a_root_is_its_own_ca() {
    let server = Server::start().await;
    let root = generated(
        &server,
        "/root",
        json!({"common_name": "root", "is_ca": true}),
    )
    .await;
    assert_eq!(root["value"]["ca"], root["value"]["certificate"]);
    for (mark, expected) in [
        ("certificate_authority", true),
        ("self_signed", true),
        ("generated", true),
        ("transitional", false),
        ("duration_overridden", false),
    ] {
        assert_eq!(root[mark], expected, "{mark}");
    }
    with_certificate(pem(&root), |certificate| {
        assert!(certificate.verify_signature(None).is_ok());
        assert_eq!(
            certificate.subject().as_raw(),
            certificate.issuer().as_raw()
        );
    });
}

#[tokio::test]
async fn the_flags_describe_the_generated_certificate() {
    let server = Server::start().await;
    generated(
        &server,
        "/root",
        json!({"common_name": "root", "is_ca": true}),
    )
    .await;
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
        let version = generated(&server, name, parameters).await;
        assert_eq!(version["certificate_authority"], is_authority, "{name}");
        assert_eq!(version["self_signed"], is_self_signed, "{name}");
        assert_eq!(version["generated"], true, "{name}");
        let is_own_ca = version["value"]["ca"] == version["value"]["certificate"];
        assert_eq!(is_own_ca, is_self_signed, "{name}");
        assert_eq!(version["value"].as_object().unwrap().len(), 3, "{name}");
    }
}

#[tokio::test]
async fn the_private_key_is_pkcs1_and_matches_the_certificate() {
    let server = Server::start().await;
    let version = generated(
        &server,
        "/a",
        json!({"common_name": "a", "self_sign": true}),
    )
    .await;
    assert_is_pem(pem(&version), "CERTIFICATE");
    assert_is_pem(
        version["value"]["private_key"].as_str().unwrap(),
        "RSA PRIVATE KEY",
    );
    let value = version["value"].clone();
    server.set("/again", "certificate", value).await.expect(200);
}

#[tokio::test]
async fn only_requested_extensions_are_added() {
    let server = Server::start().await;
    let always = [
        (SUBJECT_KEY_IDENTIFIER, false),
        (AUTHORITY_KEY_IDENTIFIER, false),
        (BASIC_CONSTRAINTS, true),
    ];
    let all = json!({
        "common_name": "all",
        "self_sign": true,
        "key_usage": ["crl_sign"],
        "extended_key_usage": ["server_auth"],
        "alternative_names": ["example.org"],
    });
    let requested = [
        (KEY_USAGE, true),
        (EXTENDED_KEY_USAGE, false),
        (SUBJECT_ALTERNATIVE_NAME, false),
    ];
    for (name, parameters, more) in [
        (
            "/leaf",
            json!({"common_name": "leaf", "self_sign": true}),
            &[][..],
        ),
        ("/root", json!({"common_name": "root", "is_ca": true}), &[]),
        ("/all", all, &requested),
    ] {
        let version = generated(&server, name, parameters).await;
        let mut expected: Vec<(String, bool)> = always
            .iter()
            .chain(more)
            .map(|(oid, is_critical)| ((*oid).to_owned(), *is_critical))
            .collect();
        expected.sort();
        let mut found = with_certificate(pem(&version), extensions);
        found.sort();
        assert_eq!(found, expected, "{name}");
    }
}

#[tokio::test]
async fn basic_constraints_have_the_ca_flag_and_no_path_length() {
    let server = Server::start().await;
    for (name, parameters, is_authority) in [
        ("/root", json!({"common_name": "root", "is_ca": true}), true),
        (
            "/leaf",
            json!({"common_name": "leaf", "self_sign": true}),
            false,
        ),
    ] {
        let version = generated(&server, name, parameters).await;
        with_certificate(pem(&version), |certificate| {
            let constraints = certificate.basic_constraints().unwrap().unwrap();
            assert_eq!(constraints.value.ca, is_authority, "{name}");
            assert_eq!(constraints.value.path_len_constraint, None, "{name}");
        });
    }
}

#[tokio::test]
async fn alternative_names_keep_order_and_ips_become_ip_addresses() {
    let server = Server::start().await;
    let names = [
        "z.example.org",
        "10.0.0.1",
        "*.a.example.org",
        "::1",
        "under_score.org",
    ];
    let parameters = json!({"common_name": "a", "self_sign": true, "alternative_names": names});
    let version = generated(&server, "/a", parameters).await;
    with_certificate(pem(&version), |certificate| {
        let found = certificate.subject_alternative_name().unwrap().unwrap();
        assert!(!found.critical);
        assert_eq!(
            found.value.general_names,
            [
                GeneralName::DNSName("z.example.org"),
                GeneralName::IPAddress(&[10, 0, 0, 1]),
                GeneralName::DNSName("*.a.example.org"),
                GeneralName::IPAddress(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
                GeneralName::DNSName("under_score.org"),
            ]
        );
    });
}

#[tokio::test]
async fn each_key_usage_sets_its_own_bit() {
    let server = Server::start().await;
    for (bit, usage) in [
        "digital_signature",
        "non_repudiation",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
        "encipher_only",
        "decipher_only",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("/{usage}");
        let parameters = json!({"common_name": "a", "self_sign": true, "key_usage": [usage]});
        let version = generated(&server, &name, parameters).await;
        with_certificate(pem(&version), |certificate| {
            let found = certificate.key_usage().unwrap().unwrap();
            assert!(found.critical);
            assert_eq!(found.value.flags, 1 << bit, "{usage}");
        });
    }
}

#[tokio::test]
async fn extended_key_usages_keep_their_order() {
    let server = Server::start().await;
    let usages = [
        "timestamping",
        "server_auth",
        "email_protection",
        "client_auth",
        "code_signing",
    ];
    let parameters = json!({"common_name": "a", "self_sign": true, "extended_key_usage": usages});
    let version = generated(&server, "/a", parameters).await;
    with_certificate(pem(&version), |certificate| {
        let extension = certificate
            .extensions()
            .iter()
            .find(|extension| extension.oid.to_id_string() == EXTENDED_KEY_USAGE)
            .unwrap();
        // Each OID is 1.3.6.1.5.5.7.3 and one more number.
        assert_eq!(extension.value.len(), 2 + 5 * 10);
        let numbers: Vec<u8> = extension.value[2..].chunks(10).map(|oid| oid[9]).collect();
        assert_eq!(numbers, [8, 1, 4, 2, 3]);
    });
}

#[tokio::test]
async fn key_identifiers_link_a_certificate_to_its_issuer() {
    let server = Server::start().await;
    let root = generated(
        &server,
        "/root",
        json!({"common_name": "root", "is_ca": true}),
    )
    .await;
    let leaf = generated(
        &server,
        "/leaf",
        json!({"common_name": "leaf", "ca": "/root"}),
    )
    .await;
    let (root_subject_id, root_authority_id) = with_certificate(pem(&root), key_identifiers);
    let (leaf_subject_id, leaf_authority_id) = with_certificate(pem(&leaf), key_identifiers);
    assert_eq!(root_subject_id.len(), 20);
    assert_eq!(root_subject_id, root_authority_id);
    assert_eq!(leaf_authority_id, root_subject_id);
    assert_ne!(leaf_subject_id, root_subject_id);
}

/// Returns the subject key identifier, and the key id of the authority key identifier, which contains no other field.
fn key_identifiers(certificate: &X509Certificate<'_>) -> (Vec<u8>, Vec<u8>) {
    let (mut subject, mut authority) = (None, None);
    for extension in certificate.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => subject = Some(id.0.to_vec()),
            ParsedExtension::AuthorityKeyIdentifier(id) => {
                assert!(id.authority_cert_issuer.is_none() && id.authority_cert_serial.is_none());
                authority = id.key_identifier.as_ref().map(|id| id.0.to_vec());
            }
            _ => {}
        }
    }
    (subject.unwrap(), authority.unwrap())
}

#[tokio::test]
async fn validity_begins_now_and_lasts_exactly_the_requested_days() {
    let server = Server::start().await;
    generated(
        &server,
        "/root",
        json!({"common_name": "root", "is_ca": true, "duration": 2}),
    )
    .await;
    for duration in [1, 365, 3_650] {
        let name = format!("/{duration}");
        let parameters = json!({"common_name": "leaf", "ca": "/root", "duration": duration});
        let before = chrono::Utc::now().timestamp();
        let version = generated(&server, &name, parameters).await;
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
    let server = Server::start().await;
    let mut longest = 0;
    let mut serials = std::collections::BTreeSet::new();
    for _ in 0..12 {
        let parameters = json!({"common_name": "a", "self_sign": true});
        let response = server
            .generate_in_mode("overwrite", "/a", "certificate", parameters)
            .await;
        let version = response.expect(200).json();
        with_certificate(pem(&version), |certificate| {
            let serial = certificate.tbs_certificate.raw_serial().to_vec();
            assert!(serial.len() <= 20 && serial[0] < 0x80, "{serial:?}");
            longest = longest.max(certificate.tbs_certificate.serial.bits());
            serials.insert(serial);
            assert_eq!(certificate.version().0, 2);
            let algorithm = certificate.signature_algorithm.algorithm.to_id_string();
            assert_eq!(algorithm, "1.2.840.113549.1.1.11");
        });
    }
    assert_eq!(serials.len(), 12);
    // The probability that twelve random numbers of 159 bits all lack the upper seven is 2 to the power of -84.
    assert!((153..=159).contains(&longest), "{longest}");
}

// The subject: the order of its fields, and texts that must remain one attribute.

/// Returns the subject's attributes as (OID, text), one for each RDN.
fn attributes(version: &Value) -> Vec<(String, String)> {
    with_certificate(
        version["value"]["certificate"].as_str().unwrap(),
        |certificate| {
            let subject = certificate.subject();
            assert!(subject.iter_rdn().all(|rdn| rdn.iter().count() == 1));
            let attributes = subject.iter_attributes();
            attributes
                .map(|one| {
                    (
                        one.attr_type().to_id_string(),
                        one.as_str().unwrap().to_owned(),
                    )
                })
                .collect()
        },
    )
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
    let server = Server::start().await;
    let mut all = json!({"self_sign": true});
    for (field, _) in FIELDS.iter().rev() {
        all[*field] = json!(if *field == "country" { "AT" } else { field });
    }
    let version = given::generate(&server, "/all", "certificate", all).await;
    let expected: Vec<(String, String)> = FIELDS
        .iter()
        .map(|(field, oid)| {
            let text = if *field == "country" { "AT" } else { field };
            ((*oid).to_owned(), text.to_owned())
        })
        .collect();
    assert_eq!(attributes(&version), expected);

    let two = json!({"self_sign": true, "locality": "Graz", "common_name": "", "country": "AT"});
    let version = given::generate(&server, "/two", "certificate", two).await;
    let expected = [("2.5.4.6", "AT"), ("2.5.4.7", "Graz")];
    assert_eq!(
        attributes(&version),
        expected.map(|(oid, text)| (oid.into(), text.into()))
    );
}

#[tokio::test]
async fn every_subject_text_remains_a_single_unchanged_attribute() {
    let server = Server::start().await;
    let longest = "x".repeat(64);
    let longest_non_ascii = "ß".repeat(64);
    for text in [
        "comma, O=Injected",
        "plus + O=Injected",
        "semicolon; O=Injected",
        "#0403020101",
        "\"quoted\"",
        "back\\slash \\2C",
        "equals = sign",
        "<angle> brackets",
        " spaces around ",
        "CN=nested,OU=nested+C=AT",
        "/CN=slashes/O=Injected",
        "Ämter für Ünicode",
        "密钥 ключ 🔑",
        "100% *.example.org",
        "a'b`c",
        &longest,
        &longest_non_ascii,
    ] {
        for (field, oid) in [FIELDS[0], FIELDS[4]] {
            let parameters = json!({field: text, "self_sign": true});
            let response = server
                .generate_in_mode("overwrite", "/a", "certificate", parameters)
                .await;
            assert_eq!(response.status, 200, "{field} {text:?}: {}", response.body);
            let version = response.json();
            assert_eq!(attributes(&version), [(oid.to_owned(), text.to_owned())]);
        }
    }
}

#[tokio::test]
async fn a_certificates_issuer_equals_its_cas_subject_byte_for_byte() {
    let server = Server::start().await;
    let root = json!({
        "common_name": "Wurzel, ß+", "organization": "#o", "country": "AT", "is_ca": true,
    });
    let root = given::generate(&server, "/root", "certificate", root).await;
    let leaf = json!({"common_name": "leaf", "ca": "/root"});
    let leaf = given::generate(&server, "/leaf", "certificate", leaf).await;
    let bytes = |version: &Value, of_issuer: bool| {
        with_certificate(
            version["value"]["certificate"].as_str().unwrap(),
            |certificate| {
                let name = if of_issuer {
                    certificate.issuer()
                } else {
                    certificate.subject()
                };
                name.as_raw().to_vec()
            },
        )
    };
    assert_eq!(bytes(&leaf, true), bytes(&root, false));
}
