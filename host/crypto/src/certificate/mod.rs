//! X.509 certificates: parses them, checks the values that callers set and guests generate, and creates issuers.

mod details;
mod facts;
mod grammar;
mod issuer;
mod pem;
mod shape;
mod signature;
mod signing_key;

use std::{borrow::Cow, sync::Arc};

use chrono::{DateTime, Utc};
use keywright_core::{
    Secret,
    certificate::{
        CertificateDetails, CertificateFacts, IssuanceFacts, IssuanceRules, RSA_BITS_MIN,
    },
    ports::{
        CertificateError, CertificateFields, CertificateIssuer, Certificates, CheckedFields,
        NOT_AN_AUTHORITY,
    },
};
use x509_parser::certificate::X509Certificate;

pub use facts::{client_authority_facts, client_certificate_facts, may_issue_for_clients};
use issuer::Issuer;
use signing_key::SigningKey;

/// Implements [`Certificates`] with a parser and a cryptographic library in the host.
#[derive(Clone, Copy, Debug, Default)]
pub struct X509Certificates;

impl Certificates for X509Certificates {
    fn facts(&self, certificate: &str) -> Result<CertificateFacts, CertificateError> {
        read_facts(&parse(CERTIFICATE, &first_der(CERTIFICATE, certificate)?)?)
    }

    fn issuance_facts(&self, certificate: &str) -> Result<IssuanceFacts, CertificateError> {
        let der = first_der(CERTIFICATE, certificate)?;
        Ok(facts::issuance_facts(&parse(CERTIFICATE, &der)?))
    }

    fn check_fields(
        &self,
        fields: CertificateFields<'_>,
    ) -> Result<CheckedFields, CertificateError> {
        let (facts, ca_expires_at, key) = check_together(fields)?;
        // Only a signature shows whether the primes of an RSA key are prime.
        if key.is_some_and(|key| key.sign(b"").is_none()) {
            return Err(refused(PRIVATE_KEY, CANNOT_SIGN));
        }
        let rsa_bits = shortest_rsa_key(fields)?;
        let facts = facts.map(|facts| CertificateFacts {
            is_self_signed: facts.is_self_signed
                && facts.is_certificate_authority
                && !fields.ca_is_stored,
            ..facts
        });
        Ok(CheckedFields {
            ca: fields.ca.map(facts::stored_text),
            ca_expires_at,
            certificate: fields.certificate.map(facts::stored_text),
            private_key: fields.private_key.map(signing_key::stored_text),
            facts,
            rsa_bits,
        })
    }

    fn rsa_bits(&self, key: &str) -> Option<u32> {
        signing_key::rsa_bits_of_text(key)
    }

    fn check_stored(
        &self,
        fields: CertificateFields<'_>,
    ) -> Result<Option<CertificateFacts>, CertificateError> {
        check_together(fields).map(|(facts, ..)| facts)
    }

    fn check_generated(
        &self,
        fields: CertificateFields<'_>,
        issuer: Option<&dyn CertificateIssuer>,
    ) -> Result<CertificateFacts, CertificateError> {
        let pem = fields.certificate.ok_or(absent(CERTIFICATE))?;
        let der = first_der(CERTIFICATE, pem)?;
        let certificate = parse_well_formed(CERTIFICATE, &der)?;
        let private_key = fields.private_key.ok_or(absent(PRIVATE_KEY))?;
        check_private_key(Some(&certificate), private_key)?;
        let signer_der = issuer.map_or(der.as_slice(), CertificateIssuer::certificate);
        let signer = parse(CA, signer_der)?;
        match signature::is_made_by(&certificate, signer.public_key()) {
            Ok(true) => {}
            Ok(false) => return Err(refused(CERTIFICATE, "is not signed by its issuer")),
            Err(reason) => return Err(refused(CERTIFICATE, reason.to_string())),
        }
        let was_signed = |issuer: &dyn CertificateIssuer| {
            issuer.signed().is_some_and(|(signed, _)| signed == der)
        };
        if !issuer.is_none_or(was_signed) {
            return Err(refused(CERTIFICATE, "was not signed in this call"));
        }
        let ca = fields.ca.ok_or(absent(CA))?;
        // Programs trust every certificate in it.
        if first_der(CA, ca)? != signer_der || facts::all_certificates(ca).count() > 1 {
            return Err(refused(CA, "is not the certificate of the issuer"));
        }
        for (field, text) in [(CERTIFICATE, pem), (CA, ca)] {
            if facts::stored_text(text) != text {
                return Err(refused(field, "is PEM that programs read differently"));
            }
        }
        read_facts(&certificate)
    }

    fn issuer(
        &self,
        certificate: &str,
        private_key: &Secret,
        rules: IssuanceRules,
    ) -> Result<Arc<dyn CertificateIssuer>, CertificateError> {
        let der = first_der(CERTIFICATE, certificate)?;
        let parsed = parse_well_formed(CERTIFICATE, &der)?;
        if !parsed.is_ca() {
            return Err(refused(CERTIFICATE, NOT_AN_AUTHORITY));
        }
        let key = check_private_key(Some(&parsed), private_key)?;
        Ok(Arc::new(Issuer::new(&parsed, key, rules)))
    }

    fn details(&self, pem: &str) -> Option<CertificateDetails> {
        let der = facts::first_certificate(pem)?;
        details::details(&facts::parse(&der)?)
    }

    fn certificates_in(&self, pem: &str) -> Vec<String> {
        let certificates = facts::all_certificates(pem).flatten();
        certificates.map(|der| facts::to_pem(&der)).collect()
    }

    fn first_certificate(&self, pem: &str) -> Option<Vec<u8>> {
        facts::first_certificate(pem)
    }
}

/// Checks the fields against each other. Returns the facts in the certificate, the expiry of the CA certificate, and the key.
fn check_together(fields: CertificateFields<'_>) -> Result<CheckedTogether, CertificateError> {
    let ca_field = if fields.ca_is_stored { CA_NAME } else { CA };
    let read =
        |field, pem: Option<&str>| pem.map(|pem| first_of_well_formed(field, pem)).transpose();
    let certificate_der = read(CERTIFICATE, fields.certificate)?;
    let ca_der = read(ca_field, fields.ca)?;
    let certificate = certificate_der
        .as_deref()
        .map(|der| parse(CERTIFICATE, der))
        .transpose()?;
    let ca = ca_der
        .as_deref()
        .map(|der| parse(ca_field, der))
        .transpose()?;
    if let Some(ca) = &ca {
        let is_itself = !fields.ca_is_stored && certificate_der == ca_der;
        if !ca.is_ca() && !is_itself {
            return Err(refused(ca_field, NOT_AN_AUTHORITY));
        }
        if let Some(certificate) = &certificate {
            check_signed(certificate, ca, fields.ca_is_stored)?;
        }
    }
    let key = fields
        .private_key
        .map(|private_key| check_private_key(certificate.as_ref(), private_key))
        .transpose()?;
    let facts = certificate.as_ref().map(read_facts).transpose()?;
    let ca_expires_at = ca
        .as_ref()
        .map(|ca| facts::expires_at(ca).ok_or_else(|| refused(ca_field, NOT_A_CERTIFICATE)));
    Ok((facts, ca_expires_at.transpose()?, key))
}

type CheckedTogether = (
    Option<CertificateFacts>,
    Option<DateTime<Utc>>,
    Option<SigningKey>,
);

/// Checks the length of each RSA key that the caller set, and returns the shortest length in bits.
fn shortest_rsa_key(fields: CertificateFields<'_>) -> Result<Option<u32>, CertificateError> {
    let ca = fields.ca.filter(|_| !fields.ca_is_stored);
    let mut shortest = None;
    for (field, pem) in [(CA, ca), (CERTIFICATE, fields.certificate)] {
        let Some(pem) = pem else { continue };
        let der = first_der(field, pem)?;
        let Some(bits) = facts::rsa_bits(parse(field, &der)?.public_key()) else {
            continue;
        };
        if bits < RSA_BITS_MIN {
            return Err(refused(field, RSA_KEY_TOO_SHORT));
        }
        shortest = Some(shortest.map_or(bits, |shortest: u32| shortest.min(bits)));
    }
    // A private key without a certificate may be the shortest. Its length was checked when it was parsed.
    let private_key = fields
        .private_key
        .and_then(|key| signing_key::rsa_bits_of_text(key.expose()));
    Ok([shortest, private_key].into_iter().flatten().min())
}

fn check_signed(
    certificate: &X509Certificate<'_>,
    ca: &X509Certificate<'_>,
    ca_is_stored: bool,
) -> Result<(), CertificateError> {
    match signature::is_made_by(certificate, ca.public_key()) {
        Ok(true) => Ok(()),
        Ok(false) if ca_is_stored => Err(refused(
            CERTIFICATE,
            "was not signed by the active version of the CA in ca_name",
        )),
        Ok(false) => Err(refused(CERTIFICATE, "was not signed by ca")),
        Err(reason) => Err(refused(CERTIFICATE, reason.to_string())),
    }
}

/// Parses a private key, and checks that it belongs to the certificate, if there is one.
fn check_private_key(
    certificate: Option<&X509Certificate<'_>>,
    private_key: &Secret,
) -> Result<SigningKey, CertificateError> {
    let key = SigningKey::parse(private_key).map_err(|rule| refused(PRIVATE_KEY, rule))?;
    let belongs = certificate.is_none_or(|certificate| key.is_of(certificate.public_key()));
    if belongs {
        Ok(key)
    } else {
        Err(refused(PRIVATE_KEY, "does not belong to certificate"))
    }
}

fn first_der(field: &'static str, pem: &str) -> Result<Vec<u8>, CertificateError> {
    facts::first_certificate(pem).ok_or(refused(field, NOT_A_CERTIFICATE))
}

fn parse<'a>(field: &'static str, der: &'a [u8]) -> Result<X509Certificate<'a>, CertificateError> {
    facts::parse(der).ok_or(refused(field, NOT_A_CERTIFICATE))
}

/// Returns the DER of the first certificate in a PEM text. All certificates in it must be well-formed.
fn first_of_well_formed(field: &'static str, pem: &str) -> Result<Vec<u8>, CertificateError> {
    let first = first_der(field, pem)?;
    for certificate in facts::all_certificates(pem) {
        let certificate = certificate.ok_or(refused(field, NOT_A_CERTIFICATE))?;
        parse_well_formed(field, &certificate)?;
    }
    Ok(first)
}

/// Parses a certificate that must follow the definitions of X.509, so that all programs read it in the same way.
fn parse_well_formed<'a>(
    field: &'static str,
    der: &'a [u8],
) -> Result<X509Certificate<'a>, CertificateError> {
    grammar::check_certificate(der).map_err(|part| refused(field, part.of_certificate))?;
    let certificate = parse(field, der)?;
    if !facts::has_readable_extensions(&certificate) {
        return Err(refused(field, "has an extension that can't be read"));
    }
    if certificate.is_ca() && certificate.subject().iter().next().is_none() {
        return Err(refused(
            field,
            "is a CA without a subject: certificates that it signs could not name their issuer",
        ));
    }
    Ok(certificate)
}

fn read_facts(certificate: &X509Certificate<'_>) -> Result<CertificateFacts, CertificateError> {
    facts::facts(certificate).ok_or(refused(CERTIFICATE, NOT_A_CERTIFICATE))
}

fn absent(field: &'static str) -> CertificateError {
    refused(field, "is missing")
}

fn refused(field: &'static str, rule: impl Into<Cow<'static, str>>) -> CertificateError {
    CertificateError {
        field,
        rule: rule.into(),
    }
}

const CA: &str = "ca";
const CA_NAME: &str = "the certificate named by ca_name";
const CERTIFICATE: &str = "certificate";
const PRIVATE_KEY: &str = "private_key";
const CANNOT_SIGN: &str =
    "is malformed: its signatures are wrong, because its numbers do not belong to one RSA key";
const RSA_KEY_TOO_SHORT: &str = "has an RSA key of fewer than 1024 bits";
const NOT_A_CERTIFICATE: &str = "must be a PEM-encoded X.509 certificate";
