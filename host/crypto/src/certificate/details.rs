//! Reads the contents of a certificate for display.

use std::net::IpAddr;

use chrono::DateTime;
use keywright_core::certificate::{ALTERNATIVE_NAMES_MAX, CertificateDetails, SerialNumber};
use sha2::{Digest as _, Sha256};
use x509_parser::{
    asn1_rs::Oid,
    certificate::X509Certificate,
    extensions::{ExtendedKeyUsage, GeneralName, KeyUsage, ParsedExtension},
    objects::{oid_registry, oid2abbrev},
    oid_registry::{OID_KEY_TYPE_EC_PUBLIC_KEY, OID_PKCS1_RSAENCRYPTION, OID_SIG_ED25519},
    x509::{AttributeTypeAndValue, SubjectPublicKeyInfo, X509Name},
};

use super::{
    facts::{expires_at, key_length_bits, text},
    signature::{curve, name_of},
};

/// Returns the details of a certificate; `None` if its validity can't be represented.
pub(super) fn details(certificate: &X509Certificate<'_>) -> Option<CertificateDetails> {
    let valid_from = certificate.validity().not_before.timestamp();
    let mut details = CertificateDetails {
        subject: name(certificate.subject()),
        issuer: name(certificate.issuer()),
        serial_number: SerialNumber::new(certificate.raw_serial().to_vec()),
        valid_from: DateTime::from_timestamp(valid_from, 0)?,
        expires_at: expires_at(certificate)?,
        key_algorithm: key_algorithm(certificate.public_key()),
        key_length_bits: key_length_bits(certificate.public_key()),
        signature_algorithm: name_of(&certificate.signature_algorithm.algorithm),
        alternative_names: Vec::new(),
        more_alternative_names: 0,
        usages: Vec::new(),
        basic_constraints: None,
        subject_key_id: None,
        authority_key_id: None,
        fingerprint: hex::encode(Sha256::digest(certificate.as_raw())),
    };
    for extension in certificate.iter_extensions() {
        add(extension.parsed_extension(), &mut details);
    }
    Some(details)
}

fn add(extension: &ParsedExtension<'_>, details: &mut CertificateDetails) {
    match extension {
        ParsedExtension::SubjectAlternativeName(alternatives) => {
            let names = &alternatives.general_names;
            let shown = names.iter().take(ALTERNATIVE_NAMES_MAX);
            details.alternative_names = shown.map(general_name).collect();
            details.more_alternative_names = names.len().saturating_sub(ALTERNATIVE_NAMES_MAX);
        }
        ParsedExtension::KeyUsage(usage) => details.usages.extend(key_usages(usage)),
        ParsedExtension::ExtendedKeyUsage(usage) => {
            details.usages.extend(extended_key_usages(usage));
        }
        ParsedExtension::BasicConstraints(constraints) => {
            details.basic_constraints = Some((constraints.ca, constraints.path_len_constraint));
        }
        ParsedExtension::SubjectKeyIdentifier(id) => {
            details.subject_key_id = Some(hex::encode(id.0));
        }
        ParsedExtension::AuthorityKeyIdentifier(authority) => {
            let id = authority.key_identifier.as_ref();
            details.authority_key_id = id.map(|id| hex::encode(id.0));
        }
        _ => {}
    }
}

/// Returns a name with its attributes in the order of the certificate, escaped as in RFC 4514, so that no value looks like
/// several attributes.
fn name(name: &X509Name<'_>) -> String {
    let parts = name.iter_rdn().map(|part| {
        let attributes: Vec<_> = part.iter().map(attribute).collect();
        attributes.join(" + ")
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> String {
    let number = attribute.attr_type();
    let label = match oid2abbrev(number, oid_registry()) {
        Ok(label) => label.to_owned(),
        Err(_) => name_of(number),
    };
    match text(attribute) {
        Some(value) => format!("{label}={}", escaped(&value)),
        None => format!("{label}=#{}", hex::encode(attribute.attr_value().data)),
    }
}

fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for (index, character) in value.char_indices() {
        let looks_like_hex = index == 0 && character == '#';
        if looks_like_hex || ",+\"\\<>;=".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

fn general_name(general: &GeneralName<'_>) -> String {
    match general {
        GeneralName::DNSName(host) => format!("DNS: {host}"),
        GeneralName::RFC822Name(address) => format!("email: {address}"),
        GeneralName::URI(uri) => format!("URI: {uri}"),
        GeneralName::DirectoryName(directory) => format!("directory: {}", name(directory)),
        GeneralName::IPAddress(octets) => match ip_address(octets) {
            Some(address) => format!("IP: {address}"),
            None => format!("IP: #{}", hex::encode(octets)),
        },
        GeneralName::RegisteredID(number) => format!("registered id: {}", name_of(number)),
        GeneralName::OtherName(number, _) => format!("other name: {}", name_of(number)),
        GeneralName::X400Address(_) => "X.400 address".to_owned(),
        GeneralName::EDIPartyName(_) => "EDI party name".to_owned(),
        GeneralName::Invalid(..) => "invalid".to_owned(),
    }
}

fn ip_address(octets: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(octets).map(IpAddr::from);
    let v6 = <[u8; 16]>::try_from(octets).map(IpAddr::from);
    v4.or(v6).ok()
}

fn key_usages(usage: &KeyUsage) -> impl Iterator<Item = String> {
    let usages = [
        (usage.digital_signature(), "digital_signature"),
        (usage.non_repudiation(), "non_repudiation"),
        (usage.key_encipherment(), "key_encipherment"),
        (usage.data_encipherment(), "data_encipherment"),
        (usage.key_agreement(), "key_agreement"),
        (usage.key_cert_sign(), "key_cert_sign"),
        (usage.crl_sign(), "crl_sign"),
        (usage.encipher_only(), "encipher_only"),
        (usage.decipher_only(), "decipher_only"),
    ];
    names_of(usages)
}

fn extended_key_usages(usage: &ExtendedKeyUsage<'_>) -> impl Iterator<Item = String> {
    let usages = [
        (usage.any, "any"),
        (usage.server_auth, "server_auth"),
        (usage.client_auth, "client_auth"),
        (usage.code_signing, "code_signing"),
        (usage.email_protection, "email_protection"),
        (usage.time_stamping, "timestamping"),
        (usage.ocsp_signing, "ocsp_signing"),
    ];
    names_of(usages).chain(usage.other.iter().map(name_of))
}

fn names_of<const COUNT: usize>(
    usages: [(bool, &'static str); COUNT],
) -> impl Iterator<Item = String> {
    let present = usages.into_iter().filter(|(is_present, _)| *is_present);
    present.map(|(_, name)| name.to_owned())
}

fn key_algorithm(key: &SubjectPublicKeyInfo<'_>) -> String {
    let algorithm: &Oid<'_> = &key.algorithm.algorithm;
    if *algorithm == OID_PKCS1_RSAENCRYPTION {
        return "RSA".to_owned();
    }
    if *algorithm == OID_SIG_ED25519 {
        return "Ed25519".to_owned();
    }
    if *algorithm == OID_KEY_TYPE_EC_PUBLIC_KEY {
        let curve = curve(key).map(|curve| name_of(&curve));
        return format!("EC, curve {}", curve.as_deref().unwrap_or("unknown"));
    }
    name_of(algorithm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_can_not_look_like_hex_or_several_attributes() {
        assert_eq!(escaped("#a#"), "\\#a#");
        assert_eq!(escaped("a, O=\"b\"+c\\"), "a\\, O\\=\\\"b\\\"\\+c\\\\");
    }

    #[test]
    fn addresses_of_other_lengths_are_not_interpreted() {
        assert_eq!(ip_address(&[127, 0, 0, 1]), Some([127, 0, 0, 1].into()));
        assert_eq!(ip_address(&[0; 15]), None);
        let shown = general_name(&GeneralName::IPAddress(&[10, 0, 0, 0, 255, 0, 0, 0]));
        assert_eq!(shown, "IP: #0a000000ff000000");
    }
}
