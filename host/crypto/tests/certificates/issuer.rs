//! Tests which certificate bodies an issuer signs and which bodies it refuses.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use keywright_core::{
    certificate::{IssuanceRules, SigningUsages},
    ports::{CertificateIssuer, Certificates, SigningError},
};
use keywright_crypto::X509Certificates;

use crate::{
    AUTHORITY_KEY_IDENTIFIER, Body, EXTENDED_KEY_USAGE, Extension, Identity, KEY_KINDS, KEY_USAGE,
    Openssl, P256, element,
};

const DAYS: u32 = 30;

#[test]
fn openssl_verifies_signatures_by_every_kind_of_ca() {
    let openssl = Openssl::new();
    for (kind, _) in KEY_KINDS {
        let authority = openssl.authority(kind);
        let issuer = signer(&authority);
        let body = leaf(&openssl, issuer.as_ref());
        let der = issuer.sign_certificate(&body.to_der()).unwrap();
        openssl_verifies(&openssl, &authority, &der);
    }
}

#[test]
fn requested_key_usages_are_signed_for_leaves() {
    let openssl = Openssl::new();
    let authority = openssl.authority(P256);
    let mut usages = [SigningUsages::default(); 3];
    usages[0].certificates = true;
    usages[1].revocation_lists = true;
    usages[2].ocsp_responses = true;
    let extensions = [
        Extension::new(KEY_USAGE, true, KEY_CERT_SIGN),
        Extension::new(KEY_USAGE, true, CRL_SIGN),
        Extension::new(EXTENDED_KEY_USAGE, false, OCSP_SIGNING),
    ];
    for (signing_usages, extension) in usages.into_iter().zip(extensions) {
        let requested = IssuanceRules {
            signing_usages,
            ..rules()
        };
        let issuer = X509Certificates
            .issuer(&authority.certificate, &authority.private_key, requested)
            .unwrap();
        let body = leaf(&openssl, issuer.as_ref()).with(extension);
        assert_refused(&authority, &body.to_der(), "unless this was requested");
        let der = issuer.sign_certificate(&body.to_der()).unwrap();
        assert!(
            !X509Certificates
                .facts(&pem(&der))
                .unwrap()
                .is_certificate_authority
        );
    }
}

#[test]
fn a_leaf_without_a_common_name_never_gets_its_cas_subject() {
    let openssl = Openssl::new();
    let authority = openssl.self_signed(P256, &["-subj", "/O=Keywright"]);
    let mut body = leaf(&openssl, signer(&authority).as_ref());
    let in_other_case = b"\x30\x14\x31\x12\x30\x10\x06\x03\x55\x04\x0a\x13\x09KEYWRIGHT";
    for subject in [body.issuer.clone(), in_other_case.to_vec()] {
        body.subject = subject;
        assert_refused(
            &authority,
            &body.to_der(),
            "the subject must not be the issuer's",
        );
    }
}

#[test]
fn issuer_without_key_identifier_signs_only_without_one() {
    let openssl = Openssl::new();
    let authority = openssl.authority_without_key_identifiers();
    let issuer = signer(&authority);
    assert_eq!(issuer.subject_key_identifier(), None);
    let body = leaf(&openssl, issuer.as_ref());
    let der = issuer.sign_certificate(&body.to_der()).unwrap();
    openssl_verifies(&openssl, &authority, &der);
    let invented = element(0x30, &element(0x80, &[1; 20]));
    let body = body.with(Extension::new(AUTHORITY_KEY_IDENTIFIER, false, &invented));
    assert_refused(&authority, &body.to_der(), "authority key identifier");
}

#[test]
fn issuer_refuses_its_own_key_in_every_encoding() {
    let openssl = Openssl::new();
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
    let openssl = Openssl::new();
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
    let openssl = Openssl::new();
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
    let openssl = Openssl::new();
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
    let openssl = Openssl::new();
    let authority = openssl.authority(P256);
    let issuer = signer(&authority);
    let good = leaf(&openssl, issuer.as_ref());
    let second = TimeDelta::seconds(1);
    let earlier = Body {
        not_before: good.not_before - second,
        not_after: good.not_after - second,
        ..good
    };
    assert!(issuer.sign_certificate(&earlier.to_der()).is_ok());
}

#[test]
fn trailing_bytes_and_other_messages_are_refused() {
    let openssl = Openssl::new();
    for (kind, _) in KEY_KINDS {
        let authority = openssl.authority(kind);
        let good = leaf(&openssl, signer(&authority).as_ref()).to_der();
        let trailing = [&good[..], &[0x05, 0x00]].concat();
        let whole = signer(&authority).sign_certificate(&good).unwrap();
        for (body, words) in [
            (&*trailing, "a malformed encoding"),
            (&*whole, "a malformed serial number"),
            (b"", "a malformed encoding"),
            (b"any message at all", "a malformed encoding"),
        ] {
            assert_refused(&authority, body, words);
        }
    }
}

/// Asserts that a new issuer refuses a body with these words.
#[track_caller]
pub(crate) fn assert_refused(authority: &Identity, body: &[u8], words: &str) {
    let refused = signer(authority).sign_certificate(body);
    let refused = refused.unwrap_err();
    assert!(refused.0.contains(words), "{refused}, not: {words}");
}

const KEY_CERT_SIGN: &[u8] = &[0x03, 0x02, 0x02, 0x04];
const CRL_SIGN: &[u8] = &[0x03, 0x02, 0x01, 0x02];
const OCSP_SIGNING: &[u8] = b"\x30\x0a\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x09";

pub(crate) fn signer(authority: &Identity) -> Arc<dyn CertificateIssuer> {
    let rules = rules();
    X509Certificates
        .issuer(&authority.certificate, &authority.private_key, rules)
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

pub(crate) fn leaf(openssl: &Openssl, issuer: &dyn CertificateIssuer) -> Body {
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

pub(crate) fn pem(der: &[u8]) -> String {
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
