//! Certificates of another tool, as users set them.

use keywright_harness::Server;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use serde_json::json;

/// A certificate with its key.
pub(crate) struct Ca {
    parameters: CertificateParams,
    key: KeyPair,
    /// The certificate, PEM.
    pub(crate) certificate: String,
}

impl Ca {
    /// Generates a self-signed CA.
    pub(crate) fn root(common_name: &str) -> Self {
        Self::new(parameters(common_name, true), None)
    }

    /// Generates a self-signed CA that has expired.
    pub(crate) fn expired() -> Self {
        let mut parameters = parameters("expired", true);
        parameters.not_before = rcgen::date_time_ymd(2001, 1, 1);
        parameters.not_after = rcgen::date_time_ymd(2002, 1, 1);
        Self::new(parameters, None)
    }

    /// Generates a CA that this one signed.
    pub(crate) fn authority(&self, common_name: &str) -> Self {
        Self::new(parameters(common_name, true), Some(self))
    }

    /// Generates a leaf that this CA signed, with changed contents.
    pub(crate) fn leaf_with(
        &self,
        common_name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Self {
        let mut parameters = parameters(common_name, false);
        change(&mut parameters);
        Self::new(parameters, Some(self))
    }

    /// Sets a credential with the certificate and its key.
    pub(crate) async fn set(&self, server: &Server, name: &str, signed_by: Option<&str>) {
        let (field, authority) = match signed_by {
            Some(signed_by) => ("ca_name", signed_by),
            None => ("ca", self.certificate.as_str()),
        };
        let private_key = self.private_key();
        let value =
            json!({"certificate": self.certificate, "private_key": private_key, field: authority});
        server.set(name, "certificate", value).await.expect(200);
    }

    /// Returns the private key, PEM.
    pub(crate) fn private_key(&self) -> String {
        self.key.serialize_pem()
    }

    fn new(parameters: CertificateParams, issuer: Option<&Self>) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = match issuer {
            Some(issuer) => {
                let issuer = Issuer::from_params(&issuer.parameters, &issuer.key);
                parameters.signed_by(&key, &issuer)
            }
            None => parameters.self_signed(&key),
        };
        Self {
            certificate: certificate.unwrap().pem(),
            parameters,
            key,
        }
    }
}

/// Returns alternative names that are the same text.
pub(crate) fn alternative_names(text: &str, count: usize) -> Vec<SanType> {
    vec![SanType::DnsName(text.to_owned().try_into().unwrap()); count]
}

fn parameters(common_name: &str, is_authority: bool) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    let name = &mut parameters.distinguished_name;
    name.push(DnType::CommonName, common_name);
    if is_authority {
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    parameters
}
