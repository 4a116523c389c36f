//! Client and server certificates that test CAs issue.

use std::fmt::Write;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, SigningKey,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject};
use x509_parser::prelude::{FromDer, X509Certificate};

/// A test CA. Whether it is trusted depends on the server's configuration.
pub(crate) struct Authority {
    parameters: CertificateParams,
    key: KeyPair,
    certificate: CertificateDer<'static>,
}

/// The certificate and key that a client or server presents.
pub(crate) struct Holder {
    /// Its own certificate, followed by the CA certificates that it sends.
    pub(crate) chain: Vec<CertificateDer<'static>>,
    key: KeyPair,
}

#[derive(Clone)]
pub(crate) struct Contents {
    /// The organizational units after the common name of the subject. Each item is one relative distinguished name.
    units: Vec<Vec<String>>,
    /// The string type of the units, as a DER tag.
    unit_tag: u8,
    /// The other contents.
    parameters: CertificateParams,
}

impl Authority {
    /// Generates a self-signed CA.
    pub(crate) fn root(common_name: &str) -> Self {
        Self::root_with(common_name, |_| {})
    }

    /// Generates a self-signed CA with changed contents.
    pub(crate) fn root_with(
        common_name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Self {
        let parameters = authority_parameters(common_name);
        Self::self_signed(parameters, KeyPair::generate().unwrap(), change)
    }

    /// Returns the same CA with a new certificate for its name and key.
    pub(crate) fn renewed_with(&self, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let key = KeyPair::from_pem(&self.key.serialize_pem()).unwrap();
        Self::self_signed(self.parameters.clone(), key, change)
    }

    fn self_signed(
        mut parameters: CertificateParams,
        key: KeyPair,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Self {
        change(&mut parameters);
        let certificate = parameters.self_signed(&key).unwrap().der().clone();
        Self {
            parameters,
            key,
            certificate,
        }
    }

    /// Generates an intermediate CA with these extended key usages; unrestricted if the list is empty.
    pub(crate) fn below(&self, common_name: &str, purposes: &[ExtendedKeyUsagePurpose]) -> Self {
        self.below_with(common_name, |parameters| {
            parameters.extended_key_usages = purposes.to_vec();
        })
    }

    /// Generates an intermediate CA with changed contents.
    pub(crate) fn below_with(
        &self,
        common_name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut parameters = authority_parameters(common_name);
        change(&mut parameters);
        let certificate = parameters.signed_by(&key, &self.issuer()).unwrap();
        Self {
            parameters,
            key,
            certificate: certificate.der().clone(),
        }
    }

    pub(crate) fn issue(&self, contents: &Contents) -> Holder {
        let key = KeyPair::generate().unwrap();
        let certificate = contents.parameters.signed_by(&key, &self.issuer()).unwrap();
        Holder {
            chain: vec![contents.complete(certificate.der(), &self.key)],
            key,
        }
    }

    pub(crate) fn pem(&self) -> String {
        pem(&self.certificate)
    }

    /// Presents the CA's own certificate as a client certificate.
    pub(crate) fn as_holder(&self) -> Holder {
        Holder {
            chain: vec![self.certificate.clone()],
            key: KeyPair::from_pem(&self.key.serialize_pem()).unwrap(),
        }
    }

    fn issuer(&self) -> Issuer<'_, &KeyPair> {
        Issuer::from_params(&self.parameters, &self.key)
    }
}

impl Holder {
    /// Also presents a CA's certificate.
    pub(crate) fn sending(mut self, authority: &Authority) -> Self {
        self.chain.push(authority.certificate.clone());
        self
    }

    /// Returns the same certificates with another holder's key.
    pub(crate) fn with_the_key_of(self, other: Self) -> Self {
        Self {
            chain: self.chain,
            key: other.key,
        }
    }

    /// Parses a certificate chain and a private key, both PEM.
    pub(crate) fn of_pem(chain: &str, key: &str) -> Self {
        let chain = CertificateDer::pem_slice_iter(chain.as_bytes());
        Self {
            chain: chain.map(Result::unwrap).collect(),
            key: KeyPair::from_pem(key).unwrap(),
        }
    }

    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.serialize_der()).into()
    }

    pub(crate) fn chain_pem(&self) -> String {
        self.chain.iter().map(pem).collect()
    }

    pub(crate) fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }
}

impl Contents {
    /// Returns the contents of a client's certificate, with these relative distinguished names of organizational units.
    pub(crate) fn of_client(units: &[&[&str]]) -> Self {
        let mut parameters = parameters("instance");
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        Self {
            units: units
                .iter()
                .map(|name| name.iter().map(|unit| (*unit).to_owned()).collect())
                .collect(),
            unit_tag: UTF8_STRING,
            parameters,
        }
    }

    /// Returns the contents of the certificate of a server on the loopback address.
    pub(crate) fn of_server() -> Self {
        let mut parameters = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        parameters.distinguished_name = name("server");
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        Self {
            units: Vec::new(),
            unit_tag: UTF8_STRING,
            parameters,
        }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut CertificateParams)) -> Self {
        change(&mut self.parameters);
        self
    }

    pub(crate) fn purposes(self, purposes: &[ExtendedKeyUsagePurpose]) -> Self {
        self.with(|parameters| parameters.extended_key_usages = purposes.to_vec())
    }

    /// Sets the string type of the organizational units, as a DER tag.
    pub(crate) fn unit_tag(self, unit_tag: u8) -> Self {
        Self { unit_tag, ..self }
    }

    /// Returns a self-signed certificate with these contents.
    pub(crate) fn self_signed(&self) -> Holder {
        let key = KeyPair::generate().unwrap();
        let certificate = self.parameters.self_signed(&key).unwrap();
        Holder {
            chain: vec![self.complete(certificate.der(), &key)],
            key,
        }
    }

    /// Inserts the units after the subject's common name and signs again: rcgen cannot write several units, or several
    /// attributes in one relative distinguished name.
    fn complete(
        &self,
        certificate: &CertificateDer<'_>,
        signer: &KeyPair,
    ) -> CertificateDer<'static> {
        let (_, parsed) = X509Certificate::from_der(certificate).unwrap();
        let subject = parsed.subject().as_raw();
        let mut names = content(subject).to_vec();
        names.extend(
            self.units
                .iter()
                .flat_map(|units| self.relative_name(units)),
        );
        let body = content(parsed.tbs_certificate.as_ref());
        // A self-signed certificate contains its subject twice; the first is the issuer.
        let at = (0..body.len())
            .rev()
            .find(|at| body[*at..].starts_with(subject))
            .unwrap();
        let (before, after) = (&body[..at], &body[at + subject.len()..]);
        let names = element(SEQUENCE, &names);
        let body = element(SEQUENCE, &[before, &names, after].concat());
        let signature = [&[0][..], &signer.sign(&body).unwrap()].concat();
        let signature = element(BIT_STRING, &signature);
        let parts = [&body, ECDSA_WITH_SHA256, &signature].concat();
        CertificateDer::from(element(SEQUENCE, &parts))
    }

    fn relative_name(&self, units: &[String]) -> Vec<u8> {
        let attribute = |unit: &String| {
            let value = element(self.unit_tag, &encoded(unit, self.unit_tag));
            element(SEQUENCE, &[ORGANIZATIONAL_UNIT, &value].concat())
        };
        let mut attributes: Vec<_> = units.iter().map(attribute).collect();
        attributes.sort();
        element(SET, &attributes.concat())
    }
}

/// Returns the octets of a text in this string type.
fn encoded(text: &str, tag: u8) -> Vec<u8> {
    let characters = text.chars().map(u32::from);
    match tag {
        UNIVERSAL_STRING => characters.flat_map(u32::to_be_bytes).collect(),
        BMP_STRING => characters
            .flat_map(|character| u16::try_from(character).unwrap().to_be_bytes())
            .collect(),
        _ => text.as_bytes().to_vec(),
    }
}

fn authority_parameters(common_name: &str) -> CertificateParams {
    let mut parameters = parameters(common_name);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters
}

fn parameters(common_name: &str) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = name(common_name);
    parameters
}

fn name(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

fn pem(certificate: &CertificateDer<'_>) -> String {
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, certificate);
    for line in encoded.as_bytes().chunks(64) {
        writeln!(text, "{}", std::str::from_utf8(line).unwrap()).unwrap();
    }
    text + "-----END CERTIFICATE-----\n"
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let head = match content.len() {
        ..0x80 => vec![tag, length[7]],
        0x80..0x100 => vec![tag, 0x81, length[7]],
        _ => vec![tag, 0x82, length[6], length[7]],
    };
    [&head, content].concat()
}

fn content(element: &[u8]) -> &[u8] {
    let length_bytes = match element[1] {
        ..0x80 => 0,
        long => usize::from(long & 0x7f),
    };
    &element[2 + length_bytes..]
}

const BIT_STRING: u8 = 0x03;
const UNIVERSAL_STRING: u8 = 0x1c;
const BMP_STRING: u8 = 0x1e;
const UTF8_STRING: u8 = 0x0c;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// The object identifier 2.5.4.11, in DER.
const ORGANIZATIONAL_UNIT: &[u8] = &[0x06, 0x03, 0x55, 0x04, 0x0b];

/// The algorithm identifier of signatures by the keys that are generated here, in DER.
const ECDSA_WITH_SHA256: &[u8] = &[
    0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02,
];
