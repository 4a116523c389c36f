//! Tests which certificate bodies an issuer signs and which bodies it refuses.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use keywright_core::{
    certificate::{IssuanceRules, SigningUsages},
    ports::{CertificateIssuer, Certificates, SigningError},
};
use keywright_crypto::{TBS_CERTIFICATE_BYTES_MAX, X509Certificates};

use crate::{
    AUTHORITY_KEY_IDENTIFIER, Body, Extension, Identity, KEY_KINDS, Openssl, P256, element,
};

const DAYS: u32 = 30;

#[test]
fn issuer_without_key_identifier_signs_only_without_one() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let authority = openssl.authority_without_key_identifiers();
    let issuer = signer(&authority);
    assert_eq!(issuer.subject_key_identifier(), None);
    let body = leaf(&openssl, issuer.as_ref());
    let der = issuer.sign_certificate(&body.to_der()).unwrap();
    openssl_verifies(&openssl, &authority, &der);
    let invented = element(0x30, &element(0x80, &[1; 20]));
    let body = body.with(Extension::new(AUTHORITY_KEY_IDENTIFIER, false, &invented));
    let refused = signer(&authority)
        .sign_certificate(&body.to_der())
        .unwrap_err();
    assert!(refused.0.contains("authority key identifier"), "{refused}");
}

#[test]
fn issuer_refuses_its_own_key_in_every_encoding() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    for (kind, bits) in KEY_KINDS {
        let authority = openssl.authority(kind);
        openssl.write("own.pem", authority.private_key.expose());
        let own = public_key(&openssl, "own.pem", &[]);
        let forms = match kind {
            ["RSA", ..] => vec![own.clone(), padded(&own, bits)],
            ["EC", ..] => ["uncompressed", "compressed", "hybrid"]
                .map(|form| public_key(&openssl, "own.pem", &["-ec_conv_form", form]))
                .to_vec(),
            _ => vec![own.clone()],
        };
        for (number, form) in forms.into_iter().enumerate() {
            assert_eq!(form == own, number == 0, "{kind:?}: the forms differ");
            let issuer = signer(&authority);
            let body = Body {
                subject_public_key: form,
                ..leaf(&openssl, issuer.as_ref())
            };
            let refused = issuer.sign_certificate(&body.to_der()).unwrap_err();
            assert!(
                refused.0.contains("must not be the issuer's own")
                    || refused.0.contains("has a malformed public key"),
                "{kind:?}, form {number}: {refused}"
            );
        }
    }
}

/// Returns an RSA key with a superfluous leading zero in its modulus. The exponent of the key must be 65537.
fn padded(key: &[u8], bits: u32) -> Vec<u8> {
    const EXPONENT: &[u8] = &[0x02, 0x03, 0x01, 0x00, 0x01];
    let modulus = key.strip_suffix(EXPONENT).unwrap();
    let modulus = modulus
        .get(modulus.len() - usize::try_from(bits / 8).unwrap()..)
        .unwrap();
    let modulus = element(0x02, &[&[0, 0], modulus].concat());
    let key = element(0x30, &[&modulus, EXPONENT].concat());
    let bits = element(0x03, &[&[0], key.as_slice()].concat());
    element(0x30, &[RSA_ENCRYPTION, &bits].concat())
}

/// The DER `AlgorithmIdentifier` of RSA keys.
const RSA_ENCRYPTION: &[u8] = &[
    0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
];

#[test]
fn issuer_signs_only_once_even_after_a_refusal() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let authority = openssl.authority(P256);
    for first_is_good in [true, false] {
        let issuer = signer(&authority);
        let good = leaf(&openssl, issuer.as_ref()).to_der();
        let first: &[u8] = if first_is_good { &good } else { b"raw bytes" };
        assert_eq!(issuer.sign_certificate(first).is_ok(), first_is_good);
        let refused = issuer.sign_certificate(&good).unwrap_err();
        assert_eq!(
            refused,
            SigningError("the issuer can sign only once in a call")
        );
    }
}

#[test]
fn issuer_needs_a_ca_certificate_and_its_key() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let (authority, leaf) = (openssl.authority(P256), openssl.leaf());
    let refused = |certificate: &Identity, key: &Identity| {
        let rules = rules();
        let created = X509Certificates.issuer(&certificate.certificate, &key.private_key, rules);
        created.err().unwrap().to_string()
    };
    assert!(refused(&leaf, &leaf).starts_with("certificate is not a CA certificate"));
    assert_eq!(
        refused(&authority, &leaf),
        "private_key does not belong to certificate"
    );
}

#[test]
fn a_ca_with_a_malformed_certificate_is_refused() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let authority = openssl.authority(P256);
    let mut der = der(&authority.certificate);
    let name = b"Keywright, Ltd.";
    let position = der.windows(name.len()).position(|bytes| bytes == name);
    // Not UTF-8.
    der[position.unwrap()] = 0xff;
    let created = X509Certificates.issuer(&pem(&der), &authority.private_key, rules());
    let refused = created.err().unwrap().to_string();
    assert!(
        refused.starts_with("certificate has a malformed"),
        "{refused}"
    );
}

#[test]
fn validity_may_start_one_second_before_the_call() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let authority = openssl.authority(P256);
    let good = leaf(&openssl, signer(&authority).as_ref());
    for (begin, end, words) in [
        (-1, -1, None),
        (-2, -2, Some("must not begin before the time of the call")),
        (1, 1, Some("must not begin after the time of the call")),
        (0, 1, Some("must not be longer than was requested")),
        (
            0,
            -86_400 * i64::from(DAYS) - 1,
            Some("must not end before it begins"),
        ),
    ] {
        let body = Body {
            not_before: good.not_before + TimeDelta::seconds(begin),
            not_after: good.not_after + TimeDelta::seconds(end),
            ..good.clone()
        };
        let signed = signer(&authority).sign_certificate(&body.to_der());
        match words {
            None => assert!(signed.is_ok()),
            Some(words) => assert!(signed.is_err_and(|refused| refused.0.contains(words))),
        }
    }
}

#[test]
fn other_bytes_than_a_body_are_refused() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let authority = openssl.authority(P256);
    let good = leaf(&openssl, signer(&authority).as_ref()).to_der();
    let whole = signer(&authority).sign_certificate(&good).unwrap();
    for (body, words) in [
        ([good, vec![0x05, 0x00]].concat(), "a malformed encoding"),
        (whole, "a malformed serial number"),
        (Vec::new(), "a malformed encoding"),
        (b"any message at all".to_vec(), "a malformed encoding"),
    ] {
        let refused = signer(&authority).sign_certificate(&body);
        assert!(refused.unwrap_err().0.contains(words), "{words}");
    }
}

#[test]
fn bodies_are_signed_up_to_the_size_limit() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let authority = openssl.authority(P256);
    let good = leaf(&openssl, signer(&authority).as_ref());
    let padded = |bytes: usize| {
        let extension = Extension {
            oid: vec![0x2a, 0x03],
            is_critical: false,
            value: element(0x04, &vec![0; bytes]),
        };
        good.clone().with(extension).to_der()
    };
    let frame = padded(60_000).len() - 60_000;
    let largest = padded(TBS_CERTIFICATE_BYTES_MAX - frame);
    assert_eq!(largest.len(), TBS_CERTIFICATE_BYTES_MAX);
    assert!(signer(&authority).sign_certificate(&largest).is_ok());
    let larger = padded(TBS_CERTIFICATE_BYTES_MAX - frame + 1);
    let refused = signer(&authority).sign_certificate(&larger).unwrap_err();
    assert!(refused.0.contains("64 KiB"), "{refused}");
}

fn signer(authority: &Identity) -> Arc<dyn CertificateIssuer> {
    X509Certificates
        .issuer(&authority.certificate, &authority.private_key, rules())
        .unwrap()
}

fn rules() -> IssuanceRules {
    IssuanceRules {
        common_name: None,
        may_be_authority: false,
        signing_usages: SigningUsages::default(),
        duration_days_max: DAYS,
        now: now(),
    }
}

/// Returns the same time for the whole run, so that a body can be created before its issuer.
fn now() -> DateTime<Utc> {
    static NOW: std::sync::OnceLock<DateTime<Utc>> = std::sync::OnceLock::new();
    *NOW.get_or_init(|| Utc::now().trunc_subsecs(0))
}

fn leaf(openssl: &Openssl, issuer: &dyn CertificateIssuer) -> Body {
    openssl.private_key(P256);
    Body::leaf(
        issuer,
        public_key(openssl, "key.pem", &[]),
        now(),
        i64::from(DAYS),
    )
}

/// Returns the public key of the key pair in a file, in DER.
fn public_key(openssl: &Openssl, file: &str, options: &[&str]) -> Vec<u8> {
    der(&openssl.run(&[&["pkey", "-in", file, "-pubout"], options].concat()))
}

fn der(pem: &str) -> Vec<u8> {
    let lines = pem.lines().filter(|line| !line.starts_with('-'));
    STANDARD.decode(lines.collect::<String>()).unwrap()
}

fn pem(der: &[u8]) -> String {
    format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        STANDARD.encode(der)
    )
}

fn openssl_verifies(openssl: &Openssl, authority: &Identity, der: &[u8]) {
    openssl.write("ca.pem", &authority.certificate);
    openssl.write("signed.pem", &pem(der));
    let has_key_identifiers = openssl
        .run(&["x509", "-in", "ca.pem", "-noout", "-text"])
        .contains("Key Identifier");
    let strictness: &[&str] = if has_key_identifiers {
        &["-x509_strict"]
    } else {
        &[]
    };
    let arguments = [
        &["verify", "-CAfile", "ca.pem"],
        strictness,
        &["signed.pem"],
    ]
    .concat();
    assert_eq!(openssl.run(&arguments), "signed.pem: OK\n");
}
