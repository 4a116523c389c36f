//! The issuer that a guest borrows for one call, and the rules for certificate bodies. Guests are not trusted: the issuer signs a
//! body only if it follows every rule in the lists.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use keywright_core::{
    certificate::{CertificateFacts, IssuanceRules},
    ports::{CertificateIssuer, SigningError},
};
use keywright_der::{
    NEGATIVE, Strictness, bit_string, element,
    tag::{OCTET_STRING, SEQUENCE},
};
use x509_parser::{
    asn1_rs::Oid,
    certificate::{TbsCertificate, X509Certificate},
    extensions::{ParsedExtension, X509Extension},
    oid_registry::{
        OID_X509_EXT_AUTHORITY_KEY_IDENTIFIER, OID_X509_EXT_BASIC_CONSTRAINTS,
        OID_X509_EXT_CERT_TYPE, OID_X509_EXT_SUBJECT_KEY_IDENTIFIER,
    },
    prelude::FromDer,
    x509::{AlgorithmIdentifier, X509Name, X509Version},
};

use super::{facts, grammar, signing_key::SigningKey};

/// The largest certificate body that an issuer signs, in bytes of DER.
const TBS_CERTIFICATE_BYTES_MAX: usize = 65_536;

/// A CA that signs once.
pub(super) struct Issuer {
    certificate: Vec<u8>,
    subject: Vec<u8>,
    subject_key_identifier: Option<Vec<u8>>,
    key: SigningKey,
    rules: IssuanceRules,
    is_used: AtomicBool,
    signed: OnceLock<(Vec<u8>, CertificateFacts)>,
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
            subject_key_identifier: subject_key_identifier(certificate.extensions()),
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
        let facts = CertificateFacts {
            is_self_signed: false,
            ..facts
        };
        self.signed.get_or_init(|| (certificate.clone(), facts));
        Ok(certificate)
    }

    fn signed(&self) -> Option<(&[u8], &CertificateFacts)> {
        let (certificate, facts) = self.signed.get()?;
        Some((certificate, facts))
    }
}

fn subject_key_identifier(extensions: &[X509Extension<'_>]) -> Option<Vec<u8>> {
    extensions
        .iter()
        .find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(identifier) => Some(identifier.0.to_vec()),
            _ => None,
        })
}

/// Checks a certificate body against every rule.
fn check(issuer: &Issuer, body: &[u8]) -> Result<(), SigningError> {
    if body.len() > TBS_CERTIFICATE_BYTES_MAX {
        return Err(SigningError("the body must have at most 64 KiB"));
    }
    grammar::check_body(body, Strictness::Exact).map_err(|part| SigningError(part.of_body))?;
    let (_, tbs) = TbsCertificate::from_der(body)
        .map_err(|_| SigningError("the body must be a TBSCertificate of RFC 5280"))?;
    let broken = field_rules(issuer, &tbs)
        .into_iter()
        .chain(extension_rules(issuer, &tbs))
        .find(|(_, holds)| !holds);
    match broken {
        Some((message, _)) => Err(SigningError(message)),
        None => Ok(()),
    }
}

/// A rule: its message for the guest, and whether it holds.
type Rule = (&'static str, bool);

/// Lists rules.
macro_rules! rules {
    ($($message:literal => $holds:expr;)*) => {
        [$(($message, $holds)),*]
    };
}

fn field_rules(issuer: &Issuer, tbs: &TbsCertificate<'_>) -> [Rule; 10] {
    let serial = tbs.raw_serial();
    let is_negative = serial.first().is_none_or(|first| *first >= NEGATIVE);
    let is_zero = serial.iter().all(|octet| *octet == 0);
    let now = issuer.rules.now.timestamp();
    let begin = tbs.validity.not_before.timestamp();
    let seconds = tbs.validity.not_after.timestamp() - begin;
    let has_signature_algorithm_of_issuer =
        AlgorithmIdentifier::from_der(issuer.key.signature_algorithm())
            .is_ok_and(|(_, algorithm)| algorithm == tbs.signature);
    rules! {
        "the version must be 3" => tbs.version == X509Version::V3;
        "the serial number must be positive and of at most 20 octets" =>
            serial.len() <= SERIAL_OCTETS_MAX && !is_negative && !is_zero;
        "the signature algorithm must be the issuer's" => has_signature_algorithm_of_issuer;
        "the issuer field must equal the subject of the issuing CA's certificate, byte for byte" =>
            tbs.issuer.as_raw() == issuer.subject;
        // A guest gets the time in whole seconds, and may use it up to a second later.
        "the validity must not begin before the time of the call" =>
            begin >= now - VALIDITY_BEGIN_TOLERANCE_SECONDS;
        "the validity must not begin after the time of the call" => begin <= now;
        "the validity must not end before it begins" => seconds >= 0;
        "the validity must not be longer than was requested" =>
            seconds <= i64::from(issuer.rules.duration_days_max) * DAY_SECONDS;
        "the public key must not be the issuer's own, in any encoding" =>
            has_public_key_of_its_own(issuer, tbs);
        "there must be no unique identifiers" =>
            tbs.issuer_uid.is_none() && tbs.subject_uid.is_none();
    }
}

/// The rules for the extensions of a body, and for the subject, which the key identifiers distinguish from the issuer's.
fn extension_rules(issuer: &Issuer, tbs: &TbsCertificate<'_>) -> [Rule; 9] {
    let is_unknown_critical = |extension: &X509Extension<'_>| {
        extension.critical && !facts::INTERPRETED_EXTENSIONS.contains(&extension.oid)
    };
    let value = |oid: Oid<'_>| extension(tbs, &oid).map(|extension| extension.value);
    let own_identifier = value(OID_X509_EXT_SUBJECT_KEY_IDENTIFIER);
    let encoded_own_identifier = subject_key_identifier(tbs.extensions())
        .map(|identifier| element(OCTET_STRING, &identifier));
    let issuer_identifier = issuer.subject_key_identifier.as_deref();
    let authority_identifier =
        issuer_identifier.map(|identifier| element(SEQUENCE, &element(KEY_IDENTIFIER, identifier)));
    let encoded_issuer_identifier =
        issuer_identifier.map(|identifier| element(OCTET_STRING, identifier));
    let names_netscape_authority = value(OID_X509_EXT_CERT_TYPE).is_some_and(
        |value| matches!(value, [_, _, _, bits, ..] if bits & NETSCAPE_AUTHORITY_BITS != 0),
    );
    rules! {
        "every extension must be well formed" => !tbs.iter_extensions().any(facts::is_malformed);
        "only basic constraints, key usage, extended key usage and subject alternative name may be critical" =>
            !tbs.iter_extensions().any(is_unknown_critical);
        "the basic constraints must be present; they may mark the certificate as a CA only if a CA was \
            requested, and must then be critical" => has_requested_basic_constraints(issuer, tbs);
        "the authority key identifier must be the issuer's subject key identifier, or absent if the issuer has none" =>
            value(OID_X509_EXT_AUTHORITY_KEY_IDENTIFIER) == authority_identifier.as_deref();
        "there must be a subject key identifier" =>
            own_identifier.is_some() && own_identifier == encoded_own_identifier.as_deref();
        "the subject key identifier must not be the issuer's" =>
            own_identifier.is_none() || own_identifier != encoded_issuer_identifier.as_deref();
        "the subject must not be the issuer's, unless a CA or this common name was requested" =>
            has_subject_of_its_own(issuer, tbs);
        "the key usage and extended key usage must not allow the key to sign certificates, revocation lists or \
            OCSP responses, unless this was requested" => has_requested_signing_usages(issuer, tbs);
        "the Netscape certificate type must not mark the certificate as a CA, unless a CA was requested" =>
            issuer.rules.may_be_authority || !names_netscape_authority;
    }
}

/// Detects the issuer's key in any encoding, such as a compressed point or a padded integer: the number that identifies the key
/// must not occur anywhere in the bytes.
fn has_public_key_of_its_own(issuer: &Issuer, tbs: &TbsCertificate<'_>) -> bool {
    let number = issuer.key.public_number();
    !number.is_empty()
        && !tbs
            .subject_pki
            .raw
            .windows(number.len())
            .any(|bytes| bytes == number)
}

/// Compares the extension with its few allowed encodings, so that no program can read it differently.
fn has_requested_basic_constraints(issuer: &Issuer, tbs: &TbsCertificate<'_>) -> bool {
    extension(tbs, &OID_X509_EXT_BASIC_CONSTRAINTS).is_some_and(|extension| match extension.value {
        LEAF_CONSTRAINTS => true,
        AUTHORITY_CONSTRAINTS | [0x30, 0x06, 0x01, 0x01, 0xff, 0x02, 0x01, 0x00..NEGATIVE] => {
            extension.critical && issuer.rules.may_be_authority
        }
        _ => false,
    })
}

/// A CA may be issued by a CA with the same name, for example when a CA replaces its key. A request may also give a leaf the
/// name of its CA; other programs distinguish the two by their key identifiers.
fn has_subject_of_its_own(issuer: &Issuer, tbs: &TbsCertificate<'_>) -> bool {
    let rules = &issuer.rules;
    let has_requested_name = || {
        let name = tbs.subject.iter_common_name().next().and_then(facts::text);
        name.is_some() && name == rules.common_name
    };
    let has_issuers_name = X509Name::from_der(&issuer.subject)
        .map_or(true, |(_, name)| facts::is_same_name(&name, &tbs.subject));
    rules.may_be_authority || !has_issuers_name || has_requested_name()
}

fn has_requested_signing_usages(issuer: &Issuer, tbs: &TbsCertificate<'_>) -> bool {
    let rules = &issuer.rules;
    let requested = rules.signing_usages;
    let allowed = requested.with_those_of_authorities(rules.may_be_authority);
    facts::signing_usages(tbs).is_within(allowed)
}

fn extension<'a>(tbs: &'a TbsCertificate<'_>, oid: &Oid<'_>) -> Option<&'a X509Extension<'a>> {
    tbs.get_extension_unique(oid).ok().flatten()
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
