//! Bodies that a hostile guest may pass to an issuer.

use chrono::TimeDelta;
use keywright_crypto::TBS_CERTIFICATE_BYTES_MAX;

use crate::{
    AUTHORITY_KEY_IDENTIFIER, BASIC_CONSTRAINTS, Body, Extension, KEY_KINDS, KEY_USAGE,
    NAME_CONSTRAINTS, Openssl, SUBJECT_ALT_NAME, SUBJECT_KEY_IDENTIFIER, certificate_extension,
    element,
    issuer::{leaf, signer},
};

/// A request of a hostile guest: the change of a good body, and the message of the rule that rejects it.
type Attack = (fn(Body) -> Body, &'static str);

const ATTACKS: [Attack; 37] = [
    (|body| Body { version: 1, ..body }, "a malformed version"),
    (
        |body| Body {
            serial: vec![0],
            ..body
        },
        "the serial number",
    ),
    (
        |body| Body {
            serial: vec![0x80],
            ..body
        },
        "the serial number",
    ),
    (
        |body| Body {
            serial: vec![1; 21],
            ..body
        },
        "the serial number",
    ),
    (
        |body| Body {
            signature_algorithm: SHA1_WITH_RSA.to_vec(),
            ..body
        },
        "the signature algorithm must be the issuer's",
    ),
    (
        |body| Body {
            issuer: body.subject.clone(),
            ..body
        },
        "the issuer field must equal the subject",
    ),
    (
        |body| Body {
            not_before: body.not_before - TimeDelta::seconds(2),
            ..body
        },
        "must not begin before the time of the call",
    ),
    (
        |body| Body {
            not_before: body.not_before + TimeDelta::seconds(1),
            ..body
        },
        "must not begin after the time of the call",
    ),
    (
        |body| Body {
            not_after: body.not_before - TimeDelta::seconds(1),
            ..body
        },
        "must not end before it begins",
    ),
    (
        |body| Body {
            not_after: body.not_after + TimeDelta::seconds(1),
            ..body
        },
        "must not be longer than was requested",
    ),
    (
        |body| Body {
            unique_identifier: vec![0x81, 0x02, 0x00, 0x01],
            ..body
        },
        "no unique identifiers",
    ),
    (
        |body| Body {
            unique_identifier: vec![0x82, 0x02, 0x00, 0x01],
            ..body
        },
        "no unique identifiers",
    ),
    (
        |body| {
            twice(
                body,
                &Extension::new(BASIC_CONSTRAINTS, true, &[0x30, 0x00]),
            )
        },
        "no extension may occur twice",
    ),
    (
        |body| {
            twice(
                body,
                &Extension::new(SUBJECT_ALT_NAME, false, b"\x30\x0a\x82\x08root.com"),
            )
        },
        "no extension may occur twice",
    ),
    (
        |body| body.with(Extension::new(KEY_USAGE, true, &[0x05, 0x00])),
        "has a malformed extension",
    ),
    (
        |body| {
            body.with(Extension::new(
                SUBJECT_ALT_NAME,
                false,
                b"\x30\x0b\x82\x08leaf.com",
            ))
        },
        "has a malformed extension",
    ),
    (
        |body| {
            body.with(Extension {
                oid: vec![0x2a, 0x03],
                is_critical: true,
                value: vec![0x05, 0x00],
            })
        },
        "may be critical",
    ),
    (
        |body| body.with(Extension::new(NAME_CONSTRAINTS, true, NO_NAMES)),
        "may be critical",
    ),
    (
        |body| body.without(&certificate_extension(BASIC_CONSTRAINTS)),
        "the basic constraints",
    ),
    (
        |body| constraints(body, true, &[0x30, 0x03, 0x01, 0x01, 0xff]),
        "the basic constraints",
    ),
    (
        |body| constraints(body, false, &[0x30, 0x03, 0x01, 0x01, 0xff]),
        "the basic constraints",
    ),
    (
        |body| {
            constraints(
                body,
                true,
                &[0x30, 0x06, 0x01, 0x01, 0xff, 0x02, 0x01, 0x00],
            )
        },
        "the basic constraints",
    ),
    (
        |body| constraints(body, true, &[0x30, 0x03, 0x01, 0x01, 0x00]),
        "has a malformed extension",
    ),
    (
        |body| constraints(body, true, &[0x30, 0x03, 0x02, 0x01, 0x00]),
        "the basic constraints",
    ),
    (
        |body| constraints(body, true, &[0x30, 0x03, 0x01, 0x01, 0x01]),
        "has a malformed extension",
    ),
    (
        |body| constraints(body, true, &[0x30, 0x00, 0x30, 0x03, 0x01, 0x01, 0xff]),
        "has a malformed extension",
    ),
    (
        |body| body.without(&certificate_extension(AUTHORITY_KEY_IDENTIFIER)),
        "the authority key identifier",
    ),
    (
        |body| {
            let other = element(0x30, &element(0x80, &[1; 20]));
            body.with(Extension::new(AUTHORITY_KEY_IDENTIFIER, false, &other))
        },
        "the authority key identifier",
    ),
    (
        |body| body.without(&certificate_extension(SUBJECT_KEY_IDENTIFIER)),
        "there must be a subject key identifier",
    ),
    (
        |body| body.with(Extension::new(SUBJECT_KEY_IDENTIFIER, false, &[0x04, 0x00])),
        "has a malformed extension",
    ),
    (
        |body| {
            body.with(Extension::new(
                SUBJECT_KEY_IDENTIFIER,
                true,
                &[0x04, 0x01, 0x07],
            ))
        },
        "may be critical",
    ),
    (
        |body| Body {
            serial: vec![0, 0, 1],
            ..body
        },
        "the body has a malformed ",
    ),
    (
        |body| Body {
            serial: Vec::new(),
            ..body
        },
        "the body has a malformed ",
    ),
    (
        |body| Body {
            subject: vec![0x30, 0x80, 0x00, 0x00],
            ..body
        },
        "the body has a malformed ",
    ),
    (
        |body| Body {
            subject: vec![0x05, 0x00],
            ..body
        },
        "the body has a malformed ",
    ),
    (
        |body| {
            let extensions = body
                .extensions
                .iter()
                .cloned()
                .cycle()
                .take(TBS_CERTIFICATE_BYTES_MAX / 8);
            Body {
                extensions: extensions.collect(),
                ..body
            }
        },
        "at most 64 KiB",
    ),
    (
        |body| Body {
            subject_public_key: vec![0x30, 0x00],
            ..body
        },
        "the body has a malformed ",
    ),
];

#[test]
fn every_issuer_refuses_bodies_that_break_a_rule() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    for (kind, _) in KEY_KINDS {
        let authority = openssl.authority(kind);
        let good = leaf(&openssl, signer(&authority, false).as_ref());
        assert!(
            signer(&authority, false)
                .sign_certificate(&good.to_der())
                .is_ok()
        );
        for (number, (change, words)) in ATTACKS.iter().enumerate() {
            let body = change(good.clone()).to_der();
            let refused = signer(&authority, false)
                .sign_certificate(&body)
                .expect_err(words);
            assert!(
                refused.0.contains(words),
                "{kind:?}, attack {number}: {refused}, not: {words}"
            );
        }
    }
}

fn twice(mut body: Body, extension: &Extension) -> Body {
    body.extensions.push(extension.clone());
    body
}

fn constraints(body: Body, is_critical: bool, value: &[u8]) -> Body {
    body.with(Extension::new(BASIC_CONSTRAINTS, is_critical, value))
}

/// An algorithm that no issuer uses.
const SHA1_WITH_RSA: &[u8] = &[
    0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x05, 0x05, 0x00,
];

const NO_NAMES: &[u8] = &[0x30, 0x00];
