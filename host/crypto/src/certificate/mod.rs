//! X.509 certificates: parses them, checks the values that callers set and guests generate, and creates issuers.

mod der;
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
    certificate::{CertificateFacts, IssuanceFacts, IssuanceRules, RSA_BITS_MIN},
    ports::{
        CertificateIssuer, CertificateMembers, CertificateRefused, Certificates, CheckedMembers,
        NOT_AN_AUTHORITY,
    },
};
use x509_parser::certificate::X509Certificate;

pub use facts::{client_authority_facts, client_certificate_facts, may_issue_for_clients};
use issuer::Issuer;
pub use issuer::TBS_CERTIFICATE_BYTES_MAX;
use signing_key::SigningKey;

/// Implements [`Certificates`] with a parser and a cryptographic library in the host.
#[derive(Clone, Copy, Debug, Default)]
pub struct X509Certificates;

impl Certificates for X509Certificates {
    fn facts(&self, certificate: &str) -> Result<CertificateFacts, CertificateRefused> {
        read_facts(&parse(CERTIFICATE, &first_der(CERTIFICATE, certificate)?)?)
    }

    fn issuance_facts(&self, certificate: &str) -> Result<IssuanceFacts, CertificateRefused> {
        let der = first_der(CERTIFICATE, certificate)?;
        Ok(facts::issuance_facts(&parse(CERTIFICATE, &der)?))
    }

    fn check_members(
        &self,
        members: CertificateMembers<'_>,
    ) -> Result<CheckedMembers, CertificateRefused> {
        let (facts, ca_expires_at) = check_together(members)?;
        let rsa_bits = shortest_rsa_key(members)?;
        let facts = facts.map(|facts| CertificateFacts {
            is_self_signed: facts.is_self_signed
                && facts.is_certificate_authority
                && !members.ca_is_stored,
            ..facts
        });
        Ok(CheckedMembers {
            ca: members.ca.map(facts::stored_text),
            ca_expires_at,
            certificate: members.certificate.map(facts::stored_text),
            private_key: members.private_key.map(signing_key::stored_text),
            facts,
            rsa_bits,
        })
    }

    fn rsa_bits(&self, key: &str) -> Option<u32> {
        signing_key::rsa_bits_of_text(key)
    }

    fn check_stored(
        &self,
        members: CertificateMembers<'_>,
    ) -> Result<Option<CertificateFacts>, CertificateRefused> {
        check_together(members).map(|(facts, _)| facts)
    }

    fn check_generated(
        &self,
        members: CertificateMembers<'_>,
        issuer: Option<&dyn CertificateIssuer>,
    ) -> Result<CertificateFacts, CertificateRefused> {
        let der = first_der(CERTIFICATE, members.certificate.ok_or(absent(CERTIFICATE))?)?;
        let certificate = parse_well_formed(CERTIFICATE, &der)?;
        let private_key = members.private_key.ok_or(absent(PRIVATE_KEY))?;
        check_private_key(Some(&certificate), private_key)?;
        let signer_der = issuer.map_or(der.as_slice(), CertificateIssuer::certificate);
        let signer = parse(CA, signer_der)?;
        match signature::is_made_by(&certificate, signer.public_key()) {
            Ok(true) => {}
            Ok(false) => return Err(refused(CERTIFICATE, "is not signed by its issuer")),
            Err(reason) => return Err(refused(CERTIFICATE, reason.to_string())),
        }
        if first_der(CA, members.ca.ok_or(absent(CA))?)? != signer_der {
            return Err(refused(CA, "is not the certificate of the issuer"));
        }
        read_facts(&certificate)
    }

    fn issuer(
        &self,
        certificate: &str,
        private_key: &Secret,
        rules: IssuanceRules,
    ) -> Result<Arc<dyn CertificateIssuer>, CertificateRefused> {
        let der = first_der(CERTIFICATE, certificate)?;
        let parsed = parse_well_formed(CERTIFICATE, &der)?;
        check_authority(CERTIFICATE, &parsed, false)?;
        let key = check_private_key(Some(&parsed), private_key)?;
        Ok(Arc::new(Issuer::new(&parsed, key, rules)))
    }

    fn first_certificate(&self, pem: &str) -> Option<Vec<u8>> {
        facts::first_certificate(pem)
    }
}

/// Checks the fields against each other. Returns the facts in the certificate, and the expiry of the CA certificate.
fn check_together(
    members: CertificateMembers<'_>,
) -> Result<(Option<CertificateFacts>, Option<DateTime<Utc>>), CertificateRefused> {
    let ca_member = if members.ca_is_stored { CA_NAME } else { CA };
    let certificate_der = members
        .certificate
        .map(|pem| first_of_well_formed(CERTIFICATE, pem))
        .transpose()?;
    let certificate = certificate_der
        .as_deref()
        .map(|der| parse(CERTIFICATE, der))
        .transpose()?;
    let ca_der = members
        .ca
        .map(|pem| first_of_well_formed(ca_member, pem))
        .transpose()?;
    let ca = ca_der
        .as_deref()
        .map(|der| parse(ca_member, der))
        .transpose()?;
    if let Some(ca) = &ca {
        let is_itself = !members.ca_is_stored && certificate_der == ca_der;
        check_authority(ca_member, ca, is_itself)?;
        check_signed(certificate.as_ref(), ca, members.ca_is_stored)?;
    }
    if let Some(private_key) = members.private_key {
        check_private_key(certificate.as_ref(), private_key)?;
    }
    let facts = certificate.as_ref().map(read_facts).transpose()?;
    let ca_expires_at = ca
        .as_ref()
        .map(|ca| facts::expires_at(ca).ok_or_else(|| refused(ca_member, NOT_A_CERTIFICATE)));
    Ok((facts, ca_expires_at.transpose()?))
}

/// Checks the length of every set RSA key, and returns the shortest length in bits.
fn shortest_rsa_key(members: CertificateMembers<'_>) -> Result<Option<u32>, CertificateRefused> {
    let ca = members.ca.filter(|_| !members.ca_is_stored);
    let mut shortest = None;
    for (member, pem) in [(CA, ca), (CERTIFICATE, members.certificate)] {
        let Some(pem) = pem else { continue };
        let der = first_der(member, pem)?;
        let Some(bits) = facts::rsa_bits(parse(member, &der)?.public_key()) else {
            continue;
        };
        if bits < RSA_BITS_MIN {
            return Err(refused(member, RSA_KEY_TOO_SHORT));
        }
        shortest = Some(shortest.map_or(bits, |shortest: u32| shortest.min(bits)));
    }
    // A private key without a certificate may be the shortest. Its length was checked when it was parsed.
    let private_key = members
        .private_key
        .and_then(|key| signing_key::rsa_bits_of_text(key.expose()));
    Ok([shortest, private_key].into_iter().flatten().min())
}

fn check_authority(
    member: &'static str,
    ca: &X509Certificate<'_>,
    is_itself: bool,
) -> Result<(), CertificateRefused> {
    if ca.is_ca() || is_itself {
        return Ok(());
    }
    Err(refused(member, NOT_AN_AUTHORITY))
}

fn check_signed(
    certificate: Option<&X509Certificate<'_>>,
    ca: &X509Certificate<'_>,
    ca_is_stored: bool,
) -> Result<(), CertificateRefused> {
    let Some(certificate) = certificate else {
        return Ok(());
    };
    match signature::is_made_by(certificate, ca.public_key()) {
        Ok(true) => Ok(()),
        Ok(false) if ca_is_stored => Err(refused(
            CERTIFICATE,
            "was not signed by the current certificate of the credential that ca_name names",
        )),
        Ok(false) => Err(refused(CERTIFICATE, "was not signed by ca")),
        Err(reason) => Err(refused(CERTIFICATE, reason.to_string())),
    }
}

/// Parses a private key, and checks that it belongs to the certificate, if there is one.
fn check_private_key(
    certificate: Option<&X509Certificate<'_>>,
    private_key: &Secret,
) -> Result<SigningKey, CertificateRefused> {
    let key = SigningKey::parse(private_key).map_err(|rule| refused(PRIVATE_KEY, rule))?;
    let belongs = certificate.is_none_or(|certificate| key.is_of(certificate.public_key()));
    if belongs {
        Ok(key)
    } else {
        Err(refused(PRIVATE_KEY, "does not belong to certificate"))
    }
}

fn first_der(member: &'static str, pem: &str) -> Result<Vec<u8>, CertificateRefused> {
    facts::first_certificate(pem).ok_or(refused(member, NOT_A_CERTIFICATE))
}

fn parse<'a>(
    member: &'static str,
    der: &'a [u8],
) -> Result<X509Certificate<'a>, CertificateRefused> {
    facts::parse(der).ok_or(refused(member, NOT_A_CERTIFICATE))
}

/// Returns the DER of the first certificate in a PEM text. All certificates in it must be well-formed.
fn first_of_well_formed(member: &'static str, pem: &str) -> Result<Vec<u8>, CertificateRefused> {
    let first = first_der(member, pem)?;
    for certificate in facts::all_certificates(pem) {
        let certificate = certificate.ok_or(refused(member, NOT_A_CERTIFICATE))?;
        parse_well_formed(member, &certificate)?;
    }
    Ok(first)
}

/// Parses a certificate that must follow the definitions of X.509, so that all programs read it in the same way.
fn parse_well_formed<'a>(
    member: &'static str,
    der: &'a [u8],
) -> Result<X509Certificate<'a>, CertificateRefused> {
    grammar::check_certificate(der).map_err(|part| refused(member, part.of_certificate))?;
    let certificate = parse(member, der)?;
    if !facts::has_readable_extensions(&certificate) {
        return Err(refused(member, "has an extension that can't be read"));
    }
    if certificate.is_ca() && certificate.subject().iter().next().is_none() {
        return Err(refused(
            member,
            "is a certificate authority without a subject: certificates that it signs could not name their issuer",
        ));
    }
    Ok(certificate)
}

fn read_facts(certificate: &X509Certificate<'_>) -> Result<CertificateFacts, CertificateRefused> {
    facts::facts(certificate).ok_or(refused(CERTIFICATE, NOT_A_CERTIFICATE))
}

fn absent(member: &'static str) -> CertificateRefused {
    refused(member, "is absent")
}

fn refused(member: &'static str, rule: impl Into<Cow<'static, str>>) -> CertificateRefused {
    CertificateRefused {
        member,
        rule: rule.into(),
    }
}

const CA: &str = "ca";
const CA_NAME: &str = "ca_name";
const CERTIFICATE: &str = "certificate";
const PRIVATE_KEY: &str = "private_key";
const RSA_KEY_TOO_SHORT: &str = "has an RSA key of fewer than 1024 bits";
const NOT_A_CERTIFICATE: &str = "must be a PEM-encoded X.509 certificate";
