//! An application with a client certificate, and servers that trust the certificate's CA.

use std::{fs, path::PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use tempfile::TempDir;

use crate::{Options, Shell};

/// An application with a client certificate, in files that are deleted on drop.
pub struct Application {
    folder: TempDir,
}

impl Application {
    /// Issues a certificate from a new CA.
    pub fn issued() -> Self {
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
        for (file, pem) in [
            (AUTHORITIES, authority_pem),
            (CERTIFICATE, certificate.pem()),
            (KEY, key.serialize_pem()),
        ] {
            fs::write(folder.path().join(file), pem).unwrap();
        }
        Self { folder }
    }

    /// A server that trusts the CA and grants the application all operations on all credentials.
    pub fn options(&self) -> Options {
        let authorities = self.folder.path().join(AUTHORITIES);
        let line = format!("client_authorities = \"{}\"", authorities.display());
        Options::default().tls_settings(&line).extra(&format!(
            "[[authorization.permissions]]\npath = \"/*\"\nactors = [\"mtls-app:{ID}\"]\n\
             operations = [\"read\", \"write\", \"delete\", \"read_acl\", \"write_acl\"]\n"
        ))
    }

    /// The certificate, PEM.
    pub fn certificate_file(&self) -> PathBuf {
        self.folder.path().join(CERTIFICATE)
    }

    /// The private key, PKCS#8 in PEM.
    pub fn key_file(&self) -> PathBuf {
        self.folder.path().join(KEY)
    }

    /// Copies the certificate and its key to a shell's folder, as `app.pem` and `app-key.pem`.
    pub fn equip(&self, shell: &Shell) {
        for file in [CERTIFICATE, KEY] {
            fs::copy(self.folder.path().join(file), shell.file(file)).unwrap();
        }
    }
}

const AUTHORITIES: &str = "clients.pem";
const CERTIFICATE: &str = "app.pem";
const KEY: &str = "app-key.pem";

/// The application's id.
const ID: &str = "7c9b8a52-3d1e-4f60-9a7b-2c4d6e8f0a1b";
