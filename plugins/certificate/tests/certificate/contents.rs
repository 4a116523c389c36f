//! The contents of generated certificates, as another X.509 implementation parses them.

use keywright_plugin_certificate::VALUE_SCHEMA;
use keywright_plugin_support::Failure;
use rsa::{
    RsaPrivateKey,
    pkcs1::{DecodeRsaPrivateKey, EncodeRsaPublicKey},
};
use serde_json::{Value, json};
use sha1::{Digest, Sha1};
use x509_parser::{
    certificate::Validity,
    extensions::ParsedExtension,
    prelude::{FromDer, X509Certificate},
};

use crate::{NOW_SECONDS, authority, der, generated};

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
    let authority = authority(&root());
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
