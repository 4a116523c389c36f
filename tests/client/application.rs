//! An application that has a client certificate, and servers that trust whom it was issued by.

use std::fs;

use keywright_harness::{Options, Shell};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use tempfile::TempDir;

/// An application, and its authority.
pub(crate) struct Application {
    folder: TempDir,
    certificate_pem: String,
    key_pem: String,
}

impl Application {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters
            .distinguished_name
            .push(DnType::CommonName, "applications");
        let authority_pem = parameters.self_signed(&key).unwrap().pem();
        let authority = Issuer::new(parameters, key);

        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::default();
        parameters
            .distinguished_name
            .push(DnType::OrganizationalUnitName, format!("app:{ID}"));
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = parameters.signed_by(&key, &authority).unwrap();

        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("clients.pem"), authority_pem).unwrap();
        Self {
            folder,
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        }
    }

    /// A server that trusts the authority, and lets the application do everything.
    pub(crate) fn options(&self) -> Options {
        let authorities = self.folder.path().join("clients.pem");
        let line = format!("client_authorities = \"{}\"", authorities.display());
        Options::default().tls_settings(&line).extra(&format!(
            "[[authorization.permissions]]\npath = \"/*\"\nactors = [\"mtls-app:{ID}\"]\n\
             operations = [\"read\", \"write\", \"delete\", \"read_acl\", \"write_acl\"]\n"
        ))
    }

    /// Puts the certificate and its key into a shell's folder, as `app.pem` and `app-key.pem`.
    pub(crate) fn equip(&self, shell: &Shell) {
        fs::write(shell.file("app.pem"), &self.certificate_pem).unwrap();
        fs::write(shell.file("app-key.pem"), &self.key_pem).unwrap();
    }
}

/// The application's id.
const ID: &str = "7c9b8a52-3d1e-4f60-9a7b-2c4d6e8f0a1b";
