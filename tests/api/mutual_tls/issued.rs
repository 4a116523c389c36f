//! Client and server certificates that test CAs issue.

use keywright_harness::{
    TestCertificate, contents,
    der::{Node, OBJECT_IDENTIFIER, SEQUENCE, SET, UTF8_STRING, certificate, certificate_pem},
};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, SanType};

/// The certificate and key that a client or server presents, in PEM.
pub(crate) struct Holder {
    /// Its own certificate, followed by the CA certificates that it sends.
    pub(crate) chain: String,
    pub(crate) key: String,
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

/// A test CA that issues certificates to clients. Whether it is trusted depends on the server's configuration.
pub(crate) trait Issuing {
    /// Generates an intermediate CA with these extended key usages; unrestricted if the list is empty.
    fn below(&self, common_name: &str, purposes: &[ExtendedKeyUsagePurpose]) -> Self;

    fn issue(&self, contents: &Contents) -> Holder;

    /// Presents the CA's own certificate as a client certificate.
    fn as_holder(&self) -> Holder;
}

impl Issuing for TestCertificate {
    fn below(&self, common_name: &str, purposes: &[ExtendedKeyUsagePurpose]) -> Self {
        self.authority_with(common_name, |parameters| {
            parameters.extended_key_usages = purposes.to_vec();
        })
    }

    fn issue(&self, contents: &Contents) -> Holder {
        let parameters = contents.parameters.clone();
        contents.complete(
            &self.sign(parameters, KeyPair::generate().unwrap()),
            &self.key,
        )
    }

    fn as_holder(&self) -> Holder {
        Holder {
            chain: self.certificate.clone(),
            key: self.private_key.clone(),
        }
    }
}

impl Holder {
    /// Also presents a CA's certificate.
    pub(crate) fn sending(mut self, authority: &TestCertificate) -> Self {
        self.chain.push_str(&authority.certificate);
        self
    }
}

impl Contents {
    /// Returns the contents of a client's certificate, with these relative distinguished names of organizational units.
    pub(crate) fn of_client(units: &[&[&str]]) -> Self {
        let mut parameters = contents("instance");
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
        let mut parameters = contents("server");
        parameters.subject_alt_names = vec![SanType::IpAddress([127, 0, 0, 1].into())];
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
        let certificate = TestCertificate::self_signed(self.parameters.clone(), key);
        self.complete(&certificate, &certificate.key)
    }

    /// Adds the units to the subject and signs again: rcgen can't write several units, or several attributes in one relative
    /// distinguished name.
    fn complete(&self, issued: &TestCertificate, signer: &KeyPair) -> Holder {
        let mut completed = Node::parse(&certificate(&issued.certificate));
        let units = self.units.iter().map(|units| self.relative_name(units));
        completed.at(SUBJECT).nodes().extend(units);
        Holder {
            chain: certificate_pem(&completed.signed_again(signer)),
            key: issued.private_key.clone(),
        }
    }

    fn relative_name(&self, units: &[String]) -> Node {
        let attribute = |unit: &String| {
            let value = Node::new(self.unit_tag, &encoded(unit, self.unit_tag));
            let kind = Node::new(OBJECT_IDENTIFIER, ORGANIZATIONAL_UNIT);
            Node::of(SEQUENCE, vec![kind, value])
        };
        let mut attributes: Vec<_> = units.iter().map(attribute).collect();
        attributes.sort_by_cached_key(Node::to_der);
        Node::of(SET, attributes)
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

const UNIVERSAL_STRING: u8 = 0x1c;
const BMP_STRING: u8 = 0x1e;

/// The path to the subject of a certificate.
const SUBJECT: &[usize] = &[0, 5];

/// The object identifier 2.5.4.11.
const ORGANIZATIONAL_UNIT: &[u8] = &[0x55, 0x04, 0x0b];
