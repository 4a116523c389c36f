//! Bodies that a hostile guest may pass to an issuer.

use chrono::TimeDelta;

use crate::{
    AUTHORITY_KEY_IDENTIFIER, BASIC_CONSTRAINTS, Body, Extension, KEY_KINDS, KEY_USAGE,
    NAME_CONSTRAINTS, Openssl, SUBJECT_ALT_NAME, SUBJECT_KEY_IDENTIFIER, certificate_extension,
    element,
    issuer::{assert_refused, leaf, signer},
};

type Change = fn(&mut Body);

/// Changes of a good body that a hostile guest may request, by the message of the rule that rejects them.
const ATTACKS: [(&str, &[Change]); 14] = [
    (
        "the signature algorithm must be the issuer's",
        &[|body| body.signature_algorithm = SHA1_WITH_RSA.to_vec()],
    ),
    (
        "the issuer field must equal the subject",
        &[|body| body.issuer = body.subject.clone()],
    ),
    (
        "must not begin before the time of the call",
        &[|body| body.not_before -= TimeDelta::seconds(2)],
    ),
    (
        "must not begin after the time of the call",
        &[|body| body.not_before += TimeDelta::seconds(1)],
    ),
    (
        "must not end before it begins",
        &[|body| body.not_after = body.not_before - TimeDelta::seconds(1)],
    ),
    (
        "must not be longer than was requested",
        &[|body| body.not_after += TimeDelta::seconds(1)],
    ),
    (
        "no unique identifiers",
        &[|body| body.unique_identifier = vec![0x82, 0x02, 0x00, 0x01]],
    ),
    (
        "no extension may occur twice",
        &[
            |body| repeat(body, BASIC_CONSTRAINTS, true, &[0x30, 0x00]),
            |body| repeat(body, SUBJECT_ALT_NAME, false, b"\x30\x0a\x82\x08root.com"),
        ],
    ),
    (
        "has a malformed extension",
        &[
            |body| replace(body, KEY_USAGE, true, &[0x05, 0x00]),
            |body| replace(body, SUBJECT_ALT_NAME, false, b"\x30\x0b\x82\x08leaf.com"),
            |body| constrain(body, true, b"\x30\x03\x01\x01\x00"),
            |body| constrain(body, true, b"\x30\x03\x01\x01\x01"),
            |body| constrain(body, true, b"\x30\x00\x30\x03\x01\x01\xff"),
            |body| replace(body, SUBJECT_KEY_IDENTIFIER, false, &[0x04, 0x00]),
        ],
    ),
    (
        "may be critical",
        &[
            |body| {
                body.extensions.push(Extension {
                    oid: vec![0x2a, 0x03],
                    is_critical: true,
                    value: vec![0x05, 0x00],
                });
            },
            |body| replace(body, NAME_CONSTRAINTS, true, NO_NAMES),
            |body| replace(body, SUBJECT_KEY_IDENTIFIER, true, &[0x04, 0x01, 0x07]),
        ],
    ),
    (
        "the basic constraints",
        &[
            |body| remove(body, BASIC_CONSTRAINTS),
            |body| constrain(body, true, b"\x30\x03\x01\x01\xff"),
            |body| constrain(body, false, b"\x30\x03\x01\x01\xff"),
            |body| constrain(body, true, b"\x30\x06\x01\x01\xff\x02\x01\x00"),
            |body| constrain(body, true, b"\x30\x03\x02\x01\x00"),
        ],
    ),
    (
        "the authority key identifier",
        &[
            |body| remove(body, AUTHORITY_KEY_IDENTIFIER),
            |body| {
                let other = element(0x30, &element(0x80, &[1; 20]));
                replace(body, AUTHORITY_KEY_IDENTIFIER, false, &other);
            },
        ],
    ),
    (
        "there must be a subject key identifier",
        &[|body| remove(body, SUBJECT_KEY_IDENTIFIER)],
    ),
    (
        "the body has a malformed ",
        &[
            |body| body.subject = vec![0x05, 0x00],
            |body| body.subject_public_key = vec![0x30, 0x00],
        ],
    ),
];

#[test]
fn every_issuer_refuses_bodies_that_break_a_rule() {
    let openssl = Openssl::new();
    for (kind, _) in KEY_KINDS {
        let authority = openssl.authority(kind);
        let issuer = signer(&authority);
        let good = leaf(&openssl, issuer.as_ref());
        assert!(issuer.sign_certificate(&good.to_der()).is_ok());
        for (words, changes) in ATTACKS {
            for change in changes {
                let mut body = good.clone();
                change(&mut body);
                assert_refused(&authority, &body.to_der(), words);
            }
        }
    }
}

fn repeat(body: &mut Body, number: u8, is_critical: bool, value: &[u8]) {
    let extension = Extension::new(number, is_critical, value);
    body.extensions.push(extension);
}

fn remove(body: &mut Body, number: u8) {
    let oid = certificate_extension(number);
    body.extensions.retain(|extension| extension.oid != oid);
}

fn replace(body: &mut Body, number: u8, is_critical: bool, value: &[u8]) {
    remove(body, number);
    repeat(body, number, is_critical, value);
}

fn constrain(body: &mut Body, is_critical: bool, value: &[u8]) {
    replace(body, BASIC_CONSTRAINTS, is_critical, value);
}

/// An algorithm that no issuer uses.
const SHA1_WITH_RSA: &[u8] = &[
    0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x05, 0x05, 0x00,
];

const NO_NAMES: &[u8] = &[0x30, 0x00];
