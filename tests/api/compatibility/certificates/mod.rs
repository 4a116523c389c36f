//! Certificates that existing clients set and generate.

mod authorities;
mod encoding;
mod signatures;

use std::{fs, path::Path, process::Command};

use keywright_harness::{Arguments, Commanded};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder in which `openssl` works.
struct Openssl(TempDir);

/// A certificate with its private key, both PEM.
struct Identity {
    certificate: String,
    private_key: String,
}

impl Identity {
    fn value(&self) -> Value {
        json!({"certificate": self.certificate, "private_key": self.private_key})
    }

    fn public(&self) -> Value {
        json!({"certificate": self.certificate})
    }
}

impl Openssl {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// Runs the program in the folder.
    fn try_run(&self, arguments: &(impl Arguments + ?Sized)) -> Commanded {
        let mut command = Command::new("openssl");
        command.args(arguments.list()).current_dir(self.0.path());
        Commanded::finish(&mut command, "")
    }

    /// Runs the program in the folder, and returns its output.
    #[track_caller]
    fn run(&self, arguments: &(impl Arguments + ?Sized)) -> String {
        self.try_run(arguments).expect(0).output
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.0.path().join(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap()
    }

    /// Generates a private key, PKCS#8.
    #[track_caller]
    fn private_key(&self, kind: &[&str]) -> String {
        self.run(&[&["genpkey", "-out", "key.pem", "-algorithm"], kind].concat());
        self.read("key.pem")
    }

    /// Generates a self-signed CA with this private key.
    #[track_caller]
    fn authority(&self, private_key: String, options: &[&str]) -> Identity {
        self.write("key.pem", &private_key);
        let request = ["req", "-x509", "-key", "key.pem", "-subj", "/CN=root"];
        Identity {
            certificate: self.run(&[&request, options].concat()),
            private_key,
        }
    }

    /// Generates a leaf signed by the CA.
    #[track_caller]
    fn leaf_of(&self, authority: &Identity, options: &[&str]) -> Identity {
        let private_key = self.private_key(P256);
        self.write("ca.pem", &authority.certificate);
        self.write("ca.key", &authority.private_key);
        self.run("req -new -key key.pem -subj /CN=leaf -out leaf.csr");
        let sign = "x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial".list();
        Identity {
            certificate: self.run(&[&sign, options].concat()),
            private_key,
        }
    }

    /// Asserts that a certificate is valid under the CA's certificate, regardless of the strength of keys and hashes.
    #[track_caller]
    fn assert_verified(&self, ca: &str, certificate: &str) {
        self.write("verified-ca.pem", ca);
        self.write("verified.pem", certificate);
        self.run("verify -auth_level 0 -partial_chain -CAfile verified-ca.pem verified.pem");
    }

    /// Returns the subject of the first certificate that the program finds in a text.
    fn subject(&self, pem: &str) -> String {
        self.write("certificate.pem", pem);
        self.run("x509 -in certificate.pem -noout -subject")
    }

    /// Returns the public half of the private key that the program finds in a text.
    fn public_key(&self, pem: &str) -> String {
        self.write("private.pem", pem);
        self.run("pkey -in private.pem -pubout")
    }
}

/// Returns an RSA key of 8192 bits.
fn rsa_8192() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("keys/rsa-8192.pem");
    fs::read_to_string(file).unwrap()
}

/// The key type that is generated fastest.
const P256: &[&str] = &["EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
