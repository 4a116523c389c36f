//! The contents of generated certificates, as another X.509 implementation parses them.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod common;

use common::{Authority, NOW_SECONDS, SHA256_WITH_RSA, der, generated};
use keywright_plugin_certificate::VALUE_SCHEMA;
use keywright_plugin_support::Failure;
use rsa::{
    RsaPrivateKey,
    pkcs1::{DecodeRsaPrivateKey, EncodeRsaPublicKey},
};
use serde_json::{Value, json};
use sha1::{Digest, Sha1};
use x509_cert::{der::Decode, ext::pkix::ExtendedKeyUsage};
use x509_parser::{
    certificate::Validity,
    extensions::{GeneralName, ParsedExtension},
    prelude::{FromDer, X509Certificate},
};

const DAY_SECONDS: i64 = 86_400;

fn parsed(der: &[u8]) -> X509Certificate<'_> {
    let (rest, certificate) = X509Certificate::from_der(der).unwrap();
    assert!(rest.is_empty());
    certificate
}

fn seconds(validity: &Validity) -> (i64, i64) {
    (
        validity.not_before.timestamp(),
        validity.not_after.timestamp(),
    )
}

/// Returns the extensions in order, each with its identifier and its criticality.
fn extensions(certificate: &X509Certificate<'_>) -> Vec<(String, bool)> {
    certificate
        .iter_extensions()
        .map(|extension| (extension.oid.to_id_string(), extension.critical))
        .collect()
}

/// Returns the key identifiers of the subject and of the authority.
fn key_identifiers(certificate: &X509Certificate<'_>) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let mut identifiers = (None, None);
    for extension in certificate.iter_extensions() {
        match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(identifier) => {
                identifiers.0 = Some(identifier.0.to_vec());
            }
            ParsedExtension::AuthorityKeyIdentifier(authority) => {
                assert!(authority.authority_cert_issuer.is_none());
                assert!(authority.authority_cert_serial.is_none());
                identifiers.1 = authority.key_identifier.as_ref().map(|id| id.0.to_vec());
            }
            _ => {}
        }
    }
    identifiers
}

fn root() -> Value {
    generated(
        &json!({"common_name": "root", "is_ca": true}),
        NOW_SECONDS,
        None,
        1,
    )
    .unwrap()
}

#[test]
fn root_is_self_signed_and_its_own_ca() {
    let value = root();
    let schema = serde_json::from_str(VALUE_SCHEMA).unwrap();
    assert!(
        jsonschema::draft202012::new(&schema)
            .unwrap()
            .is_valid(&value)
    );
    assert_eq!(value["ca"], value["certificate"]);
    let der = der(&value, "certificate");
    let root = parsed(&der);
    root.verify_signature(None).unwrap();
    assert_eq!(root.version().0, 2);
    assert_eq!(root.issuer().as_raw(), root.subject().as_raw());
    assert_eq!(
        root.signature_algorithm.algorithm.to_id_string(),
        "1.2.840.113549.1.1.11"
    );
    assert_eq!(root.signature_algorithm, root.tbs_certificate.signature);
    let basic = root.basic_constraints().unwrap().unwrap();
    assert!(basic.critical && basic.value.ca && basic.value.path_len_constraint.is_none());
    assert_eq!(
        extensions(&root),
        [
            ("2.5.29.35", false),
            ("2.5.29.14", false),
            ("2.5.29.19", true)
        ]
        .map(|(identifier, critical)| (identifier.to_owned(), critical))
    );
    let (subject, authority) = key_identifiers(&root);
    assert_eq!(subject, authority);
    let key = RsaPrivateKey::from_pkcs1_pem(value["private_key"].as_str().unwrap()).unwrap();
    let public_key = key.to_public_key().to_pkcs1_der().unwrap();
    assert_eq!(
        root.public_key().subject_public_key.data.as_ref(),
        public_key.as_bytes()
    );
    assert_eq!(
        subject.unwrap(),
        Sha1::digest(public_key.as_bytes()).to_vec()
    );
}

#[test]
fn chain_of_three_certificates_verifies() {
    let root = root();
    let parameters =
        json!({"common_name": "intermediate", "ca": "/root", "is_ca": true, "key_length": 3072});
    let intermediate = generated(&parameters, NOW_SECONDS, Some(&Authority::of(&root)), 2).unwrap();
    let parameters = json!({"common_name": "leaf", "ca": "/intermediate"});
    let leaf = generated(
        &parameters,
        NOW_SECONDS,
        Some(&Authority::of(&intermediate)),
        3,
    )
    .unwrap();
    assert_eq!(intermediate["ca"], root["certificate"]);
    assert_eq!(leaf["ca"], intermediate["certificate"]);

    for (child, parent, is_ca) in [(&intermediate, &root, true), (&leaf, &intermediate, false)] {
        let (child, parent) = (der(child, "certificate"), der(parent, "certificate"));
        let (child, parent) = (parsed(&child), parsed(&parent));
        child.verify_signature(Some(parent.public_key())).unwrap();
        assert!(child.verify_signature(None).is_err());
        assert_eq!(child.issuer().as_raw(), parent.subject().as_raw());
        assert_eq!(key_identifiers(&child).1, key_identifiers(&parent).0);
        let basic = child.basic_constraints().unwrap().unwrap();
        assert!(basic.critical);
        assert_eq!(basic.value.ca, is_ca);
    }
}

#[test]
fn self_signed_certificate_uses_the_algorithm_of_its_key() {
    for (key_type, algorithm, label, public_key_bytes) in [
        ("rsa", "1.2.840.113549.1.1.11", "RSA PRIVATE KEY", 270),
        ("ecdsa-p256", "1.2.840.10045.4.3.2", "PRIVATE KEY", 65),
        ("ecdsa-p384", "1.2.840.10045.4.3.3", "PRIVATE KEY", 97),
        ("ed25519", "1.3.101.112", "PRIVATE KEY", 32),
    ] {
        let parameters = json!({"common_name": "root", "is_ca": true, "key_type": key_type});
        let value = generated(&parameters, NOW_SECONDS, None, 6).unwrap();
        let private_key = value["private_key"].as_str().unwrap();
        assert!(private_key.starts_with(&format!("-----BEGIN {label}-----\n")));
        assert!(private_key.ends_with(&format!("-----END {label}-----\n")));
        let der = der(&value, "certificate");
        let root = parsed(&der);
        root.verify_signature(None).unwrap();
        assert_eq!(root.signature_algorithm.algorithm.to_id_string(), algorithm);
        assert_eq!(root.signature_algorithm, root.tbs_certificate.signature);
        let bits = &root.public_key().subject_public_key.data;
        assert_eq!(bits.len(), public_key_bytes, "{key_type}");
        let identifier = Sha1::digest(bits).to_vec();
        assert_eq!(
            key_identifiers(&root),
            (Some(identifier.clone()), Some(identifier))
        );
        let again = generated(&parameters, NOW_SECONDS, None, 7).unwrap();
        assert_ne!(again["private_key"], value["private_key"], "{key_type}");
    }
}

#[test]
fn certificate_contains_all_requested_parts() {
    let parameters = json!({
        "common_name": "full", "organization": "org", "organization_unit": "unit", "country": "DE",
        "state": "Bayern", "locality": "München", "self_sign": true, "duration": 90,
        "alternative_names": ["b.example", "10.0.0.1", "*.a.example", "2001:db8::1", ".c_d.example",
            "ada@example.org", "spiffe://example.org/ada"],
        "key_usage": ["decipher_only", "digital_signature", "non_repudiation", "key_encipherment",
            "data_encipherment", "key_agreement", "key_cert_sign", "crl_sign", "encipher_only"],
        "extended_key_usage": ["timestamping", "server_auth", "client_auth", "code_signing", "email_protection"]
    });
    let value = generated(&parameters, NOW_SECONDS, None, 4).unwrap();
    let der = der(&value, "certificate");
    let certificate = parsed(&der);
    assert_eq!(
        certificate.subject().to_string(),
        "CN=full, OU=unit, C=DE, ST=Bayern, O=org, L=München"
    );
    let tags: Vec<u32> = certificate
        .subject()
        .iter_attributes()
        .map(|a| a.attr_value().tag().0)
        .collect();
    assert_eq!(
        tags,
        [12, 12, 19, 12, 12, 12],
        "UTF8String, but PrintableString for the country"
    );
    let now = i64::try_from(NOW_SECONDS).unwrap();
    assert_eq!(
        seconds(certificate.validity()),
        (now, now + 90 * DAY_SECONDS)
    );

    let usage = certificate.key_usage().unwrap().unwrap();
    assert!(usage.critical);
    assert_eq!(usage.value.flags, 0x1ff);
    let purposes = certificate
        .iter_extensions()
        .find(|extension| extension.oid.to_id_string() == "2.5.29.37")
        .unwrap();
    assert!(!purposes.critical);
    let ExtendedKeyUsage(purposes) = ExtendedKeyUsage::from_der(purposes.value).unwrap();
    assert_eq!(
        purposes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [8, 1, 2, 3, 4].map(|purpose| format!("1.3.6.1.5.5.7.3.{purpose}"))
    );
    let names = certificate.subject_alternative_name().unwrap().unwrap();
    assert!(!names.critical);
    assert_eq!(
        names.value.general_names,
        [
            GeneralName::DNSName("b.example"),
            GeneralName::IPAddress(&[10, 0, 0, 1]),
            GeneralName::DNSName("*.a.example"),
            GeneralName::IPAddress(&[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
            GeneralName::DNSName(".c_d.example"),
            GeneralName::RFC822Name("ada@example.org"),
            GeneralName::URI("spiffe://example.org/ada"),
        ]
    );
}

#[test]
fn special_characters_in_a_name_are_plain_text() {
    let long = "ü".repeat(64);
    for text in [
        "a,CN=b",
        "a+OU=b",
        "a;b",
        "#0401",
        "\"quoted\"",
        " leading and trailing ",
        "back\\slash",
        "a=b",
        "<a>",
        "ünï — 名前 \u{1f511}",
        &long,
    ] {
        let parameters = json!({"common_name": text, "organization": text, "self_sign": true});
        let value = generated(&parameters, NOW_SECONDS, None, 1).unwrap();
        let der = der(&value, "certificate");
        let certificate = parsed(&der);
        let attributes: Vec<(String, &str)> = certificate
            .subject()
            .iter_rdn()
            .map(|rdn| {
                assert_eq!(rdn.iter().count(), 1);
                let attribute = rdn.iter().next().unwrap();
                (
                    attribute.attr_type().to_id_string(),
                    attribute.as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            attributes,
            [("2.5.4.3".to_owned(), text), ("2.5.4.10".to_owned(), text)]
        );
    }
}

#[test]
fn issuer_name_is_copied_byte_for_byte() {
    // C=DE as UTF8String, CN=x as TeletexString with OU=y in one relative distinguished name.
    let subject = [
        &[
            0x30, 0x25, 0x31, 0x0b, 0x30, 0x09, 0x06, 0x03, 0x55, 0x04, 0x06, 0x0c, 0x02,
        ][..],
        b"DE",
        &[
            0x31, 0x16, 0x30, 0x08, 0x06, 0x03, 0x55, 0x04, 0x03, 0x14, 0x01,
        ],
        b"x",
        &[0x30, 0x0a, 0x06, 0x03, 0x55, 0x04, 0x0b, 0x1e, 0x03],
        b"yyy",
    ]
    .concat();
    let mut authority = Authority::of(&root());
    authority.subject.clone_from(&subject);
    authority.subject_key_identifier = Some(vec![1, 2, 3]);
    let parameters = json!({"common_name": "leaf", "ca": "/ca"});
    let value = generated(&parameters, NOW_SECONDS, Some(&authority), 5).unwrap();
    let der = der(&value, "certificate");
    let leaf = parsed(&der);
    assert_eq!(leaf.issuer().as_raw(), subject);
    assert_eq!(key_identifiers(&leaf).1, Some(vec![1, 2, 3]));
    assert_eq!(leaf.subject().to_string(), "CN=leaf");
}

#[test]
fn issuer_without_key_identifier_omits_the_extension() {
    let mut authority = Authority::of(&root());
    authority.subject_key_identifier = None;
    let parameters = json!({"common_name": "leaf", "ca": "/ca"});
    let value = generated(&parameters, NOW_SECONDS, Some(&authority), 5).unwrap();
    let der = der(&value, "certificate");
    let (subject, authority) = key_identifiers(&parsed(&der));
    assert!(subject.is_some());
    assert_eq!(authority, None);
}

#[test]
fn signature_algorithm_is_copied_from_the_issuer() {
    let mut authority = Authority::of(&root());
    let mut algorithm = SHA256_WITH_RSA;
    algorithm[12] = 0x0c;
    authority.signature_algorithm = algorithm.to_vec();
    let parameters = json!({"common_name": "leaf", "ca": "/ca"});
    let value = generated(&parameters, NOW_SECONDS, Some(&authority), 5).unwrap();
    let der = der(&value, "certificate");
    let leaf = parsed(&der);
    assert_eq!(
        leaf.tbs_certificate.signature.algorithm.to_id_string(),
        "1.2.840.113549.1.1.12"
    );
    let key = &leaf.tbs_certificate.subject_pki.algorithm;
    assert_eq!(key.algorithm.to_id_string(), "1.2.840.113549.1.1.1");
}

#[test]
fn dates_from_2050_on_are_generalized_time() {
    let year_2049: u64 = 2_493_072_000;
    let parameters = json!({"common_name": "late", "self_sign": true, "duration": 3650});
    let value = generated(&parameters, year_2049, None, 1).unwrap();
    let der = der(&value, "certificate");
    let certificate = parsed(&der);
    let begin = i64::try_from(year_2049).unwrap();
    assert_eq!(
        seconds(certificate.validity()),
        (begin, begin + 3650 * DAY_SECONDS)
    );
    assert!(certificate.validity().not_before.is_utctime());
    assert!(certificate.validity().not_after.is_generalizedtime());
}

#[test]
fn validity_ends_with_the_year_9999_at_the_latest() {
    let last_second: u64 = 253_402_300_799;
    let parameters = json!({"common_name": "late", "self_sign": true, "duration": 3650});
    let value = generated(&parameters, last_second - 1, None, 1).unwrap();
    let der = der(&value, "certificate");
    let last = i64::try_from(last_second).unwrap();
    assert_eq!(seconds(parsed(&der).validity()), (last - 1, last));
    let beyond = generated(&parameters, last_second + 1, None, 1);
    assert!(matches!(beyond, Err(Failure::Other(_))));
}

#[test]
fn body_of_more_than_64_kib_is_an_invalid_parameter() {
    let names: Vec<String> = (0..400)
        .map(|i| format!("{i}.{0}.{0}.{0}", "a".repeat(63)))
        .collect();
    let parameters = json!({"common_name": "x", "self_sign": true, "alternative_names": names});
    let result = generated(&parameters, NOW_SECONDS, None, 1);
    let Err(Failure::InvalidParameters(violation)) = result else {
        panic!("the certificate was generated")
    };
    assert!(violation.rule.contains("64 KiB"));
}

#[test]
fn parameters_must_match_the_issuer() {
    let authority = Authority::of(&root());
    for (parameters, issuer) in [
        (
            json!({"common_name": "x", "self_sign": true}),
            Some(&authority),
        ),
        (json!({"common_name": "x", "ca": "/ca"}), None),
    ] {
        let result = generated(&parameters, NOW_SECONDS, issuer, 1);
        assert!(matches!(result, Err(Failure::Other(_))), "{parameters}");
    }
}
