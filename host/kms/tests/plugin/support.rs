//! Plugins for tests.

use std::{path::PathBuf, time::Duration};

use keywright_kms::PluginSettings;
use kms_server::{KeyKeeper, KeyManagementService, messages::VersionResponse};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::{net::UnixListener, task::JoinHandle};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{
    Status,
    transport::{Identity, Server, ServerTlsConfig},
};

/// A folder for a plugin's socket.
pub(crate) struct PluginFolder(TempDir);

impl PluginFolder {
    pub(crate) fn new() -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns settings for the plugin in this folder, without TLS.
    pub(crate) fn settings(&self) -> PluginSettings {
        PluginSettings {
            socket: self.path("kms.sock"),
            host: "localhost".to_owned(),
            trusted_authorities_pem: None,
            deadline: Duration::from_secs(10),
        }
    }

    /// Starts a plugin in this folder, with TLS if an identity is given.
    pub(crate) fn serve(
        &self,
        keeper: impl KeyKeeper,
        identity: Option<Identity>,
    ) -> JoinHandle<()> {
        let listener = UnixListener::bind(self.path("kms.sock")).unwrap();
        let mut server = Server::builder();
        if let Some(identity) = identity {
            let tls = ServerTlsConfig::new().identity(identity);
            server = server.tls_config(tls).unwrap();
        }
        let serving = server
            .add_service(KeyManagementService::new(keeper))
            .serve_with_incoming(UnixListenerStream::new(listener));
        tokio::spawn(async move { serving.await.unwrap() })
    }
}

/// A plugin with configurable behavior.
pub(crate) struct Fake {
    pub(crate) version: &'static str,
    pub(crate) encrypt: fn(&[u8]) -> Result<Vec<u8>, Status>,
    pub(crate) decrypt: fn(&[u8]) -> Result<Vec<u8>, Status>,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            version: "v1beta1",
            encrypt: |bytes| Ok(bytes.to_vec()),
            decrypt: |bytes| Ok(bytes.to_vec()),
        }
    }
}

impl KeyKeeper for Fake {
    fn version(&self) -> VersionResponse {
        VersionResponse {
            version: self.version.to_owned(),
            runtime_name: "fake".to_owned(),
            runtime_version: "1".to_owned(),
        }
    }

    fn encrypt(&self, plain: &[u8]) -> Result<Vec<u8>, Status> {
        (self.encrypt)(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Result<Vec<u8>, Status> {
        (self.decrypt)(cipher)
    }
}

/// A CA for the certificates of plugins.
pub(crate) struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = parameters.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(parameters, key);
        Self { pem, issuer }
    }

    pub(crate) fn pem(&self) -> String {
        self.pem.clone()
    }

    /// Issues a certificate for a plugin on this host.
    pub(crate) fn issue(&self, host: &str) -> Identity {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new([host.to_owned()]).unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        Identity::from_pem(certificate.pem(), key.serialize_pem())
    }
}
