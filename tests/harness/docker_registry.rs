//! Debian's `docker-registry`, a registry of the OCI distribution specification, in its own process.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::{Client, StatusCode, header};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{ReservedPort, is_available, key_file};

/// A registry on a loopback port with plain HTTP, which runs until it is dropped.
pub struct DockerRegistry {
    child: Option<Child>,
    port: ReservedPort,
    folder: TempDir,
}

impl DockerRegistry {
    /// The user name for a registry with a login.
    pub const USER: &str = "ada";
    /// The user's password.
    pub const PASSWORD: &str = "plugin-password";

    /// Starts a registry; returns `None` if the program is not installed.
    pub fn start() -> Option<Self> {
        Self::start_with("")
    }

    /// Starts a registry with the certificate of the test servers, and a login.
    pub fn start_with_login() -> Option<Self> {
        let (certificate, key) = (key_file("server.pem"), key_file("server-key.pem"));
        Self::start_with(&format!(
            "  tls:\n    certificate: {}\n    key: {}\nauth:\n  htpasswd:\n    realm: tests\n    path: FOLDER/users\n",
            certificate.display(),
            key.display(),
        ))
    }

    fn start_with(more: &str) -> Option<Self> {
        if !is_available("docker-registry") {
            return None;
        }
        let (port, folder) = (ReservedPort::any(), TempDir::new().unwrap());
        let shown = folder.path().display().to_string();
        let settings = format!(
            "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: FOLDER/data\n\
             http:\n  addr: 127.0.0.1:{}\n{more}",
            port.number(),
        );
        let settings = settings.replace("FOLDER", &shown);
        fs::write(folder.path().join("settings.yml"), settings).unwrap();
        fs::write(folder.path().join("users"), USERS).unwrap();
        let mut registry = Self {
            child: None,
            port,
            folder,
        };
        registry.start_again();
        Some(registry)
    }

    /// Starts a stopped registry again, with its contents.
    pub fn start_again(&mut self) {
        let log = fs::File::create(self.folder.path().join("log")).unwrap();
        let child = Command::new("docker-registry")
            .arg("serve")
            .arg(self.folder.path().join("settings.yml"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
        let address = ("127.0.0.1", self.port.number());
        for _ in 0..READY_POLLS_MAX {
            if std::net::TcpStream::connect(address).is_ok() {
                return;
            }
            thread::sleep(READY_POLL);
        }
        let log = fs::read_to_string(self.folder.path().join("log"));
        panic!("the registry did not start:\n{}", log.unwrap_or_default());
    }

    /// Stops the registry.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Returns the registry's host and port, as references contain them.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port.number())
    }

    /// Returns a folder for files of the test.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns all requests and responses so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Uploads a blob to a repository, independently of the program under test. Returns the blob's descriptor.
    pub async fn put(&self, repository: &str, media_type: &str, bytes: &[u8]) -> Value {
        let digest = digest(bytes);
        let url = format!("http://{}/v2/{repository}/blobs/uploads/", self.host());
        let opened = client().post(url).send().await.unwrap();
        let location = opened.headers()[header::LOCATION].to_str().unwrap();
        let put = client().put(format!("{location}&digest={digest}"));
        let response = put.body(bytes.to_vec()).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
        json!({"mediaType": media_type, "digest": digest, "size": bytes.len()})
    }

    /// Puts a manifest under a tag, and returns its digest.
    pub async fn put_manifest(&self, repository: &str, tag: &str, manifest: &Value) -> String {
        let manifest = manifest.to_string();
        let digest = digest(manifest.as_bytes());
        let url = format!("http://{}/v2/{repository}/manifests/{tag}", self.host());
        let put = client().put(url).header(header::CONTENT_TYPE, MANIFEST);
        let response = put.body(manifest).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED, "{response:?}");
        digest
    }

    /// Returns the manifest under a tag or a digest.
    pub async fn manifest(&self, repository: &str, name: &str) -> Value {
        let url = format!("http://{}/v2/{repository}/manifests/{name}", self.host());
        let get = client().get(url).header(header::ACCEPT, MANIFEST);
        let response = get.send().await.unwrap().error_for_status().unwrap();
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
    }

    /// Returns a blob named in a manifest.
    pub async fn blob(&self, repository: &str, digest: &str) -> Vec<u8> {
        let url = format!("http://{}/v2/{repository}/blobs/{digest}", self.host());
        let response = client().get(url).send().await.unwrap();
        response
            .error_for_status()
            .unwrap()
            .bytes()
            .await
            .unwrap()
            .to_vec()
    }

    /// Returns the contents of Docker's configuration file after a login.
    pub fn docker_config(&self) -> String {
        let auth = BASE64_STANDARD.encode(format!("{}:{}", Self::USER, Self::PASSWORD));
        json!({"auths": {self.host(): {"auth": auth}}}).to_string()
    }
}

impl Drop for DockerRegistry {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the SHA-256 digest of bytes, in the format of registries.
pub fn digest(bytes: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    format!("sha256:{}", hex::encode(digest))
}

fn client() -> Client {
    // Another test of the same process may have installed it already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Client::builder().no_proxy().build().unwrap()
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The user with the bcrypt hash of the password, in the format of `htpasswd`.
const USERS: &str = "ada:$2b$05$abcdefghijklmnopqrstuuR4uVaaOkM3yLlc6f.sDWaceqMOAptPK\n";

const READY_POLL: Duration = Duration::from_millis(10);
/// Five minutes, as the machine may be slow and busy.
const READY_POLLS_MAX: usize = 30_000;
