//! The issuer that a guest borrows for one call, and the rules for certificate bodies. Guests are not trusted: the issuer signs a
//! body only if it follows every rule in the table.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use keywright_core::{
    certificate::{CertificateFacts, IssuanceRules, SigningUsages},
    ports::{CertificateIssuer, SigningError},
};
use x509_parser::{
    asn1_rs::Oid,
    certificate::{TbsCertificate, X509Certificate},
    extensions::{ParsedExtension, X509Extension},
    oid_registry::{
        OID_X509_EXT_AUTHORITY_KEY_IDENTIFIER, OID_X509_EXT_BASIC_CONSTRAINTS,
        OID_X509_EXT_CERT_TYPE, OID_X509_EXT_EXTENDED_KEY_USAGE, OID_X509_EXT_KEY_USAGE,
        OID_X509_EXT_SUBJECT_ALT_NAME, OID_X509_EXT_SUBJECT_KEY_IDENTIFIER,
    },
    prelude::FromDer,
    x509::{AlgorithmIdentifier, X509Version},
};

use super::{
    der::{NEGATIVE, OCTET_STRING, SEQUENCE, Strictness, bit_string, element},
    facts, grammar,
    signing_key::SigningKey,
};

/// The largest certificate body that an issuer signs, in bytes of DER.
pub const TBS_CERTIFICATE_BYTES_MAX: usize = 65_536;

/// A CA that signs once.
pub(super) struct Issuer {
    certificate: Vec<u8>,
    subject: Vec<u8>,
    subject_key_identifier: Option<Vec<u8>>,
    key: SigningKey,
    rules: IssuanceRules,
    is_used: AtomicBool,
    signed: OnceLock<CertificateFacts>,
}

impl Issuer {
    pub(super) fn new(
        certificate: &X509Certificate<'_>,
        key: SigningKey,
        rules: IssuanceRules,
    ) -> Self {
        Self {
            certificate: certificate.as_raw().to_vec(),
            subject: certificate.subject().as_raw().to_vec(),
            subject_key_identifier: subject_key_identifier(certificate),
            key,
            rules,
            is_used: AtomicBool::new(false),
            signed: OnceLock::new(),
        }
    }
}

impl CertificateIssuer for Issuer {
    fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    fn subject(&self) -> &[u8] {
        &self.subject
    }

    fn subject_key_identifier(&self) -> Option<&[u8]> {
        self.subject_key_identifier.as_deref()
    }

    fn signature_algorithm(&self) -> &[u8] {
        self.key.signature_algorithm()
    }

    fn sign_certificate(&self, tbs_certificate: &[u8]) -> Result<Vec<u8>, SigningError> {
        if self.is_used.swap(true, Ordering::Relaxed) {
            return Err(SigningError("the issuer can sign only once in a call"));
        }
        check(self, tbs_certificate)?;
        let signature = self
            .key
            .sign(tbs_certificate)
            .ok_or(SigningError("the signature failed"))?;
        let parts = [
            tbs_certificate,
            self.signature_algorithm(),
            &bit_string(&signature),
        ];
        let certificate = element(SEQUENCE, &parts.concat());
        let facts = facts::parse(&certificate)
            .and_then(|parsed| facts::facts(&parsed))
            .ok_or(SigningError("the certificate can't be read"))?;
        self.signed.get_or_init(|| CertificateFacts {
            is_self_signed: false,
            ..facts
        });
        Ok(certificate)
    }

    fn signed(&self) -> Option<CertificateFacts> {
        self.signed.get().cloned()
    }
}

fn subject_key_identifier(certificate: &X509Certificate<'_>) -> Option<Vec<u8>> {
    certificate
        .extensions()
        .iter()
        .find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(identifier) => Some(identifier.0.to_vec()),
            _ => None,
        })
}

/// Checks a certificate body against every rule.
fn check(issuer: &Issuer, body: &[u8]) -> Result<(), SigningError> {
    if body.len() > TBS_CERTIFICATE_BYTES_MAX {
        return Err(SigningError("the body may have at most 64 KiB"));
    }
    grammar::check_body(body, Strictness::Exact).map_err(|part| SigningError(part.of_body))?;
    let tbs = parse(body).ok_or(SigningError(
        "the body must be a TBSCertificate of RFC 5280",
    ))?;
    let request = Request { tbs: &tbs, issuer };
    match RULES.iter().find(|rule| !(rule.holds)(&request)) {
        Some(broken) => Err(SigningError(broken.message)),
        None => Ok(()),
    }
}

/// Parses a body. No bytes may follow it.
fn parse(body: &[u8]) -> Option<TbsCertificate<'_>> {
    let (rest, tbs) = TbsCertificate::from_der(body).ok()?;
    rest.is_empty().then_some(tbs)
}

/// A body, with the issuer that is to sign it.
struct Request<'a> {
    tbs: &'a TbsCertificate<'a>,
    issuer: &'a Issuer,
}

/// A rule: its message for the guest, and its check.
struct Rule {
    message: &'static str,
    holds: fn(&Request<'_>) -> bool,
}

const RULES: [Rule; 19] = [
    Rule {
        message: "the version must be 3",
        holds: is_version_3,
    },
    Rule {
        message: "the serial number must be positive and of at most 20 octets",
        holds: has_proper_serial,
    },
    Rule {
        message: "the signature algorithm must be the issuer's",
        holds: has_signature_algorithm_of_issuer,
    },
    Rule {
        message: "the issuer field must equal the subject of the issuing CA's certificate, byte for byte",
        holds: names_issuer,
    },
    Rule {
        message: "the validity must not begin before the time of the call",
        holds: does_not_begin_before_call,
    },
    Rule {
        message: "the validity must not begin after the time of the call",
        holds: does_not_begin_after_call,
    },
    Rule {
        message: "the validity must not end before it begins",
        holds: does_not_end_before_it_begins,
    },
    Rule {
        message: "the validity must not be longer than was requested",
        holds: is_no_longer_than_requested,
    },
    Rule {
        message: "the public key must not be the issuer's own, in any encoding",
        holds: has_public_key_of_its_own,
    },
    Rule {
        message: "there must be no unique identifiers",
        holds: has_no_unique_identifiers,
    },
    Rule {
        message: "every extension must be well formed",
        holds: has_well_formed_extensions,
    },
    Rule {
        message: "only basic constraints, key usage, extended key usage and subject alternative name may be critical",
        holds: has_known_critical_extensions,
    },
    Rule {
        message: "the basic constraints must be present; they may mark the certificate as a CA only if a CA was \
                requested, and must then be critical",
        holds: has_requested_basic_constraints,
    },
    Rule {
        message: "the authority key identifier must be the issuer's subject key identifier, or absent if the issuer has none",
        holds: has_key_identifier_of_issuer,
    },
    Rule {
        message: "there must be a subject key identifier",
        holds: has_subject_key_identifier,
    },
    Rule {
        message: "the subject key identifier must not be the issuer's",
        holds: has_key_identifier_of_its_own,
    },
    Rule {
        message: "the subject must not be the issuer's, unless a CA or this common name was requested",
        holds: has_subject_of_its_own,
    },
    Rule {
        message: "the key usage and extended key usage must not allow the key to sign certificates, revocation lists or \
                OCSP responses, unless this was requested",
        holds: has_requested_signing_usages,
    },
    Rule {
        message: "the Netscape certificate type must not mark the certificate as a CA, unless a CA was requested",
        holds: has_requested_netscape_type,
    },
];

fn is_version_3(request: &Request<'_>) -> bool {
    request.tbs.version == X509Version::V3
}

fn has_proper_serial(request: &Request<'_>) -> bool {
    let serial = request.tbs.raw_serial();
    let is_negative = serial.first().is_none_or(|first| *first >= NEGATIVE);
    let is_zero = serial.iter().all(|octet| *octet == 0);
    serial.len() <= SERIAL_OCTETS_MAX && !is_negative && !is_zero
}

fn has_signature_algorithm_of_issuer(request: &Request<'_>) -> bool {
    AlgorithmIdentifier::from_der(request.issuer.key.signature_algorithm())
        .is_ok_and(|(_, algorithm)| algorithm == request.tbs.signature)
}

fn names_issuer(request: &Request<'_>) -> bool {
    request.tbs.issuer.as_raw() == request.issuer.subject
}

/// A guest gets the time in whole seconds, and may use it up to a second later.
fn does_not_begin_before_call(request: &Request<'_>) -> bool {
    let earliest = request.issuer.rules.now.timestamp() - VALIDITY_BEGIN_TOLERANCE_SECONDS;
    request.tbs.validity.not_before.timestamp() >= earliest
}

fn does_not_begin_after_call(request: &Request<'_>) -> bool {
    request.tbs.validity.not_before.timestamp() <= request.issuer.rules.now.timestamp()
}

fn does_not_end_before_it_begins(request: &Request<'_>) -> bool {
    request.tbs.validity.not_after >= request.tbs.validity.not_before
}

fn is_no_longer_than_requested(request: &Request<'_>) -> bool {
    let validity = &request.tbs.validity;
    let seconds = validity.not_after.timestamp() - validity.not_before.timestamp();
    seconds <= i64::from(request.issuer.rules.duration_days_max) * DAY_SECONDS
}

/// Detects the issuer's key in any encoding, such as a compressed point or a padded integer: the number that identifies the key
/// must not occur anywhere in the bytes.
fn has_public_key_of_its_own(request: &Request<'_>) -> bool {
    let number = request.issuer.key.public_number();
    !number.is_empty()
        && !request
            .tbs
            .subject_pki
            .raw
            .windows(number.len())
            .any(|bytes| bytes == number)
}

fn has_no_unique_identifiers(request: &Request<'_>) -> bool {
    request.tbs.issuer_uid.is_none() && request.tbs.subject_uid.is_none()
}

fn has_well_formed_extensions(request: &Request<'_>) -> bool {
    let is_malformed = |extension: &X509Extension<'_>| {
        matches!(
            extension.parsed_extension(),
            ParsedExtension::ParseError { .. }
        )
    };
    !request.tbs.iter_extensions().any(is_malformed)
}

fn has_known_critical_extensions(request: &Request<'_>) -> bool {
    request
        .tbs
        .iter_extensions()
        .all(|extension| !extension.critical || CRITICAL_EXTENSIONS.contains(&extension.oid))
}

/// Compares the extension with its few allowed encodings, so that no program can read it differently.
fn has_requested_basic_constraints(request: &Request<'_>) -> bool {
    let Some(extension) = extension(request, &OID_X509_EXT_BASIC_CONSTRAINTS) else {
        return false;
    };
    match extension.value {
        LEAF_CONSTRAINTS => true,
        AUTHORITY_CONSTRAINTS | [0x30, 0x06, 0x01, 0x01, 0xff, 0x02, 0x01, 0x00..NEGATIVE] => {
            extension.critical && request.issuer.rules.may_be_authority
        }
        _ => false,
    }
}

fn has_key_identifier_of_issuer(request: &Request<'_>) -> bool {
    let found = extension(request, &OID_X509_EXT_AUTHORITY_KEY_IDENTIFIER);
    match (found, request.issuer.subject_key_identifier.as_deref()) {
        (None, None) => true,
        (Some(found), Some(identifier)) => {
            found.value == element(SEQUENCE, &element(KEY_IDENTIFIER, identifier))
        }
        _ => false,
    }
}

fn has_subject_key_identifier(request: &Request<'_>) -> bool {
    extension(request, &OID_X509_EXT_SUBJECT_KEY_IDENTIFIER).is_some_and(|extension| {
        matches!(
            extension.parsed_extension(),
            ParsedExtension::SubjectKeyIdentifier(identifier)
                if !identifier.0.is_empty() && extension.value == element(OCTET_STRING, identifier.0)
        )
    })
}

fn has_key_identifier_of_its_own(request: &Request<'_>) -> bool {
    let own = extension(request, &OID_X509_EXT_SUBJECT_KEY_IDENTIFIER);
    match (own, request.issuer.subject_key_identifier.as_deref()) {
        (Some(own), Some(identifier)) => own.value != element(OCTET_STRING, identifier),
        _ => true,
    }
}

/// A CA may be issued by a CA with the same name, for example when a CA replaces its key. A request may also give a leaf the
/// name of its CA; other programs distinguish the two by their key identifiers.
fn has_subject_of_its_own(request: &Request<'_>) -> bool {
    let rules = &request.issuer.rules;
    let subject = &request.tbs.subject;
    let has_requested_name = || {
        let name = subject.iter_common_name().next().and_then(facts::text);
        name.is_some() && name == rules.common_name
    };
    rules.may_be_authority || subject.as_raw() != request.issuer.subject || has_requested_name()
}

fn has_requested_signing_usages(request: &Request<'_>) -> bool {
    let rules = &request.issuer.rules;
    let requested = if rules.may_be_authority {
        SigningUsages {
            certificates: true,
            revocation_lists: true,
            ..rules.signing_usages
        }
    } else {
        rules.signing_usages
    };
    facts::signing_usages(request.tbs).is_within(requested)
}

fn has_requested_netscape_type(request: &Request<'_>) -> bool {
    let names_authority = extension(request, &OID_X509_EXT_CERT_TYPE).is_some_and(|extension| {
        matches!(extension.value, [_, _, _, bits, ..] if bits & NETSCAPE_AUTHORITY_BITS != 0)
    });
    request.issuer.rules.may_be_authority || !names_authority
}

fn extension<'a>(request: &Request<'a>, oid: &Oid<'_>) -> Option<&'a X509Extension<'a>> {
    request.tbs.get_extension_unique(oid).ok().flatten()
}

/// The maximum time from the start of a validity to the call, in seconds.
const VALIDITY_BEGIN_TOLERANCE_SECONDS: i64 = 1;

const DAY_SECONDS: i64 = 24 * 60 * 60;
const SERIAL_OCTETS_MAX: usize = 20;

/// The tag of `keyIdentifier` in an authority key identifier.
const KEY_IDENTIFIER: u8 = 0x80;

/// Bits 5 to 7 of a Netscape certificate type, in its first octet: a CA for TLS, e-mail or code signing.
const NETSCAPE_AUTHORITY_BITS: u8 = 0x07;

const LEAF_CONSTRAINTS: &[u8] = &[0x30, 0x00];
const AUTHORITY_CONSTRAINTS: &[u8] = &[0x30, 0x03, 0x01, 0x01, 0xff];

const CRITICAL_EXTENSIONS: [Oid<'static>; 4] = [
    OID_X509_EXT_BASIC_CONSTRAINTS,
    OID_X509_EXT_KEY_USAGE,
    OID_X509_EXT_EXTENDED_KEY_USAGE,
    OID_X509_EXT_SUBJECT_ALT_NAME,
];
