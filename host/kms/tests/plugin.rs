//! Tests the client with working and misbehaving plugins.
#![expect(
    clippy::unwrap_used,
    reason = "these are tests; helper functions outside of #[test] count as production code for the lints"
)]

use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use keywright_core::ports::KeyManagement;
use keywright_kms::{KeyManagementPlugin, MESSAGE_BYTES_MAX, PluginSettings};
use kms_server::{KeyKeeper, KeyManagementService, messages::VersionResponse};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::{net::UnixListener, task::JoinHandle};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{
    Code, Status,
    transport::{Identity, Server, ServerTlsConfig},
};

#[tokio::test]
async fn other_protocol_versions_are_rejected() {
    for (version, expected) in [
        ("v2", "has protocol version \"v2\", expected v1beta1"),
        ("", "has protocol version \"\""),
    ] {
        let folder = PluginFolder::new();
        let fake = Fake {
            version,
            ..Fake::default()
        };
        folder.serve(fake, None);
        let refused = refused(folder.settings()).await;
        assert!(refused.contains(expected), "{refused}");
    }
}

#[tokio::test]
async fn unresponsive_plugin_exceeds_the_deadline() {
    let folder = PluginFolder::new();
    let _silent = UnixListener::bind(folder.path("kms.sock")).unwrap();
    let settings = PluginSettings {
        deadline: Duration::from_millis(50),
        ..folder.settings()
    };
    let refused = refused(settings).await;
    assert!(
        refused.contains("could not report its version"),
        "{refused}"
    );
}

#[tokio::test]
async fn only_temporary_failures_are_retried() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    fn unavailable_twice(_: &[u8]) -> Result<Vec<u8>, Status> {
        match CALLS.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => Err(Status::unavailable("starting")),
            _ => Ok(vec![1]),
        }
    }
    fn refuses(_: &[u8]) -> Result<Vec<u8>, Status> {
        CALLS.fetch_add(1, Ordering::SeqCst);
        Err(Status::permission_denied("not\nyou"))
    }
    let fake = Fake {
        encrypt: unavailable_twice,
        decrypt: refuses,
        ..Fake::default()
    };
    let (_folder, plugin) = connected(fake).await;
    assert_eq!(plugin.wrap_key(b"key").await.unwrap(), [1]);
    assert_eq!(CALLS.load(Ordering::SeqCst), 3);
    let refused = plugin.unwrap_key(b"key").await.unwrap_err().to_string();
    assert_eq!(CALLS.load(Ordering::SeqCst), 4);
    assert!(refused.contains("could not decrypt a key"), "{refused}");
    assert!(refused.ends_with("not you"), "{refused}");
}

#[tokio::test]
async fn call_fails_after_five_attempts_with_a_truncated_message() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    fn unavailable(_: &[u8]) -> Result<Vec<u8>, Status> {
        CALLS.fetch_add(1, Ordering::SeqCst);
        Err(Status::unavailable("a".repeat(200) + "b"))
    }
    let fake = Fake {
        encrypt: unavailable,
        ..Fake::default()
    };
    let (_folder, plugin) = connected(fake).await;
    let refused = plugin.wrap_key(b"key").await.unwrap_err().to_string();
    assert_eq!(CALLS.load(Ordering::SeqCst), 5);
    assert!(refused.ends_with(&"a".repeat(200)), "{refused}");
}

#[tokio::test]
async fn only_invalid_argument_means_another_key() {
    fn by_code(cipher: &[u8]) -> Result<Vec<u8>, Status> {
        Err(Status::new(Code::from_i32(cipher[0].into()), "no"))
    }
    let fake = Fake {
        decrypt: by_code,
        ..Fake::default()
    };
    let (_folder, plugin) = connected(fake).await;
    for code in [
        Code::FailedPrecondition,
        Code::Internal,
        Code::NotFound,
        Code::OutOfRange,
        Code::Unauthenticated,
        Code::Unimplemented,
    ] {
        assert!(plugin.unwrap_key(&[code as u8]).await.is_err(), "{code:?}");
    }
    let unwrapped = plugin.unwrap_key(&[Code::InvalidArgument as u8]).await;
    assert!(unwrapped.unwrap().is_none());
}

#[tokio::test]
async fn messages_are_accepted_up_to_the_size_limit() {
    /// The field's tag, and its length in three bytes.
    const OVERHEAD: usize = 4;
    let fake = Fake {
        encrypt: |_| Ok(vec![1; MESSAGE_BYTES_MAX - OVERHEAD]),
        decrypt: |_| Ok(vec![1; MESSAGE_BYTES_MAX - OVERHEAD + 1]),
        ..Fake::default()
    };
    let (_folder, plugin) = connected(fake).await;
    let wrapped = plugin.wrap_key(b"key").await.unwrap();
    assert_eq!(wrapped.len(), MESSAGE_BYTES_MAX - OVERHEAD);
    assert!(plugin.unwrap_key(b"key").await.is_err());
}

#[tokio::test]
async fn trusted_authorities_require_tls_for_the_host() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let folder = PluginFolder::new();
    folder.serve(Fake::default(), Some(authority.issue("kms.internal")));
    let settings = |host: &str, trusted: Option<String>| PluginSettings {
        host: host.to_owned(),
        trusted_authorities_pem: trusted.map(String::into_bytes),
        ..folder.settings()
    };
    let both = stranger.pem() + &authority.pem();
    for trusted in [authority.pem(), both] {
        let plugin = KeyManagementPlugin::connect(settings("kms.internal", Some(trusted)));
        assert_eq!(
            plugin.await.unwrap().wrap_key(b"key").await.unwrap(),
            b"key"
        );
    }
    let plain = PluginFolder::new();
    plain.serve(Fake::default(), None);
    for settings in [
        settings("kms.elsewhere", Some(authority.pem())),
        settings("kms.internal", Some(stranger.pem())),
        settings("kms.internal", None),
        PluginSettings {
            socket: plain.path("kms.sock"),
            ..settings("localhost", Some(authority.pem()))
        },
    ] {
        let refused = refused(settings).await;
        assert!(
            refused.contains("could not report its version"),
            "{refused}"
        );
    }
    for nothing in ["", "-----BEGIN CERTIFICATE-----\n"] {
        let refused = refused(settings("kms.internal", Some(nothing.to_owned()))).await;
        assert!(refused.contains("authorities"), "{refused}");
    }
    let refused = refused(settings("not a host", Some(authority.pem()))).await;
    assert!(
        refused.contains("host: \"not a host\" is not a host name"),
        "{refused}"
    );
}

/// Starts a plugin and connects to it.
async fn connected(keeper: impl KeyKeeper) -> (PluginFolder, KeyManagementPlugin) {
    let folder = PluginFolder::new();
    folder.serve(keeper, None);
    let connected = KeyManagementPlugin::connect(folder.settings());
    let plugin = connected.await.unwrap();
    (folder, plugin)
}

async fn refused(settings: PluginSettings) -> String {
    let connected = KeyManagementPlugin::connect(settings).await;
    connected.err().unwrap().to_string()
}

/// A folder for a plugin's socket.
struct PluginFolder(TempDir);

impl PluginFolder {
    fn new() -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        Self(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns settings for the plugin in this folder, without TLS.
    fn settings(&self) -> PluginSettings {
        PluginSettings {
            socket: self.path("kms.sock"),
            host: "localhost".to_owned(),
            trusted_authorities_pem: None,
            deadline: Duration::from_secs(10),
        }
    }

    /// Starts a plugin in this folder, with TLS if an identity is given.
    fn serve(&self, keeper: impl KeyKeeper, identity: Option<Identity>) -> JoinHandle<()> {
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
struct Fake {
    version: &'static str,
    encrypt: fn(&[u8]) -> Result<Vec<u8>, Status>,
    decrypt: fn(&[u8]) -> Result<Vec<u8>, Status>,
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
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = parameters.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(parameters, key);
        Self { pem, issuer }
    }

    fn pem(&self) -> String {
        self.pem.clone()
    }

    /// Issues a certificate for a plugin on this host.
    fn issue(&self, host: &str) -> Identity {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new([host.to_owned()]).unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        Identity::from_pem(certificate.pem(), key.serialize_pem())
    }
}
