//! The contents of generated certificates, as another X.509 implementation parses them.

use keywright_plugin_support::Failure;
use serde_json::json;
use x509_parser::{
    certificate::Validity,
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
    let root = json!({"common_name": "root", "is_ca": true});
    let authority = authority(&generated(&root, NOW_SECONDS, None, 1).unwrap());
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
