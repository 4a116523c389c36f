//! Files for other programs to read.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use keywright_harness::{Program, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder of files that goes away with the test.
pub(crate) struct Files {
    folder: TempDir,
}

impl Files {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
        }
    }

    /// Writes a file that only its owner may read, as OpenSSH wants it of private keys, and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Writes a text member of a version's value.
    pub(crate) fn write_member(&self, name: &str, version: &Value, member: &str) -> String {
        self.write(name, version["value"][member].as_str().unwrap())
    }

    /// The path of a file that may not be there yet.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Runs OpenSSL, which must end well, and returns what it wrote.
#[track_caller]
pub(crate) fn openssl(arguments: &[&str]) -> String {
    Program::run("openssl", arguments, "").expect_success()
}

/// Generates a certificate and returns its version.
pub(crate) async fn certificate(server: &Server, name: &str, parameters: Value) -> Value {
    let answer = server.generate_in_mode("overwrite", name, "certificate", parameters);
    answer.await.expect(200).json()
}

/// A root, an intermediate authority and a leaf, named so, each with the usages that strict verifiers want.
pub(crate) async fn chain(server: &Server) -> [Value; 3] {
    chain_of(server, ["rsa"; 3]).await
}

/// The same, with keys of these types.
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
