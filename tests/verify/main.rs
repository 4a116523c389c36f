//! Independent programs verify generated credentials: OpenSSL, OpenSSH and webpki share no code with the plugins.

mod chain;
mod fields;
mod keys;

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use keywright_harness::{Commanded, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A temporary folder.
pub(crate) struct Files {
    folder: TempDir,
}

impl Files {
    /// Creates an empty folder.
    pub(crate) fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
        }
    }

    /// Writes a file that only its owner can read, which OpenSSH requires for private keys, and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Writes a text field of a version's value to a file, and returns its path.
    pub(crate) fn write_field(&self, name: &str, version: &Value, field: &str) -> String {
        self.write(name, version["value"][field].as_str().unwrap())
    }

    /// Returns the path of a file, which may not exist yet.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Runs OpenSSL, asserts success, and returns its output.
#[track_caller]
pub(crate) fn openssl(arguments: &[&str]) -> String {
    Commanded::run("openssl", arguments, "").expect(0).output
}

/// Generates a certificate and returns its version.
pub(crate) async fn certificate(server: &Server, name: &str, parameters: Value) -> Value {
    let response = server.generate_in_mode("overwrite", name, "certificate", parameters);
    response.await.expect(200).json()
}

/// Generates the certificates `/root`, `/intermediate` and `/leaf` with these key types, each with the usages that strict
/// verifiers require.
pub(crate) async fn chain_of(server: &Server, [root, intermediate, leaf]: [&str; 3]) -> [Value; 3] {
    let usages = ["key_cert_sign", "crl_sign"];
    let root = json!({
        "common_name": "root", "is_ca": true, "key_usage": usages, "key_type": root,
    });
    let intermediate = json!({
        "common_name": "intermediate",
        "is_ca": true,
        "ca": "/root",
        "key_usage": usages,
        "key_type": intermediate,
    });
    let leaf = json!({
        "common_name": "leaf",
        "ca": "/intermediate",
        "alternative_names": ["leaf.example.org", "10.0.0.1", "spiffe://example.org/leaf"],
        "key_usage": ["digital_signature"],
        "extended_key_usage": ["server_auth"],
        "key_type": leaf,
    });
    [
        certificate(server, "/root", root).await,
        certificate(server, "/intermediate", intermediate).await,
        certificate(server, "/leaf", leaf).await,
    ]
}
