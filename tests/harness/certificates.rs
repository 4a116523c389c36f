//! Certificates and CAs that other tools than the server generate.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
};
use serde_json::{Value, json};

use crate::Server;

/// A certificate with its key. It can sign others.
pub struct TestCertificate {
    /// The contents.
    pub parameters: CertificateParams,
    /// The key.
    pub key: KeyPair,
    /// The certificate, in PEM.
    pub certificate: String,
    /// The private key, in PEM (PKCS#8).
    pub private_key: String,
}

impl TestCertificate {
    /// Generates a self-signed CA.
    pub fn root(common_name: &str) -> Self {
        Self::root_with(common_name, |_| {})
    }

    /// Generates a self-signed CA with changed contents.
    pub fn root_with(common_name: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut parameters = authority_contents(common_name);
        change(&mut parameters);
        Self::self_signed(parameters, KeyPair::generate().unwrap())
    }

    /// Generates a CA that this CA signs.
    pub fn authority(&self, common_name: &str) -> Self {
        self.authority_with(common_name, |_| {})
    }

    /// Generates a CA that this CA signs, with changed contents.
    pub fn authority_with(
        &self,
        common_name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Self {
        let mut parameters = authority_contents(common_name);
        change(&mut parameters);
        self.sign(parameters, KeyPair::generate().unwrap())
    }

    /// Generates a leaf that this CA signs, with changed contents.
    pub fn leaf_with(
        &self,
        common_name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Self {
        let mut parameters = contents(common_name);
        change(&mut parameters);
        self.sign(parameters, KeyPair::generate().unwrap())
    }

    /// Returns another self-signed certificate with the same key and changed contents.
    pub fn renewed_with(&self, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut parameters = self.parameters.clone();
        change(&mut parameters);
        Self::self_signed(parameters, KeyPair::from_pem(&self.private_key).unwrap())
    }

    /// Generates a self-signed certificate.
    pub fn self_signed(parameters: CertificateParams, key: KeyPair) -> Self {
        let certificate = parameters.self_signed(&key).unwrap();
        Self::new(parameters, key, certificate.pem())
    }

    /// Generates a certificate that this CA signs.
    pub fn sign(&self, parameters: CertificateParams, key: KeyPair) -> Self {
        let issuer = Issuer::from_params(&self.parameters, &self.key);
        let certificate = parameters.signed_by(&key, &issuer).unwrap();
        Self::new(parameters, key, certificate.pem())
    }

    fn new(parameters: CertificateParams, key: KeyPair, certificate: String) -> Self {
        Self {
            private_key: key.serialize_pem(),
            parameters,
            key,
            certificate,
        }
    }

    /// Returns the value of a credential with the certificate and its key.
    pub fn value(&self) -> Value {
        json!({"certificate": self.certificate, "private_key": self.private_key})
    }

    /// Returns the value of a credential with the certificate alone.
    pub fn public(&self) -> Value {
        json!({"certificate": self.certificate})
    }

    /// Sets a credential with the certificate and its key. Without the name of its CA, the certificate itself is the CA.
    pub async fn set(&self, server: &Server, name: &str, signed_by: Option<&str>) {
        let (field, authority) = match signed_by {
            Some(signed_by) => ("ca_name", signed_by),
            None => ("ca", &*self.certificate),
        };
        let mut value = self.value();
        value[field] = json!(authority);
        server.stored(name, "certificate", value).await;
    }
}

/// Returns the contents of a CA with this common name.
pub fn authority_contents(common_name: &str) -> CertificateParams {
    let mut parameters = contents(common_name);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters
}

/// Returns the contents of a leaf with this common name.
pub fn contents(common_name: &str) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    let name = &mut parameters.distinguished_name;
    name.push(DnType::CommonName, common_name);
    parameters
}
