//! Certificates and keys from the `openssl` program.

use std::{fs, process::Command};

use keywright_core::Secret;
use tempfile::TempDir;

/// The working directory of `openssl`.
pub(crate) struct Openssl {
    folder: TempDir,
}

/// A certificate and its private key, both PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) private_key: Secret,
}

/// The kinds of keys that issuers may have, with the arguments of `openssl genpkey`, and their length in bits.
pub(crate) const KEY_KINDS: [(&[&str], u32); 5] = [
    (&["RSA", "-pkeyopt", "rsa_keygen_bits:2048"], 2_048),
    (&["EC", "-pkeyopt", "ec_paramgen_curve:P-256"], 256),
    (&["EC", "-pkeyopt", "ec_paramgen_curve:P-384"], 384),
    (&["EC", "-pkeyopt", "ec_paramgen_curve:P-521"], 521),
    (&["ED25519"], 256),
];

/// The kind of key that is generated fastest.
pub(crate) const P256: &[&str] = KEY_KINDS[1].0;

impl Openssl {
    /// Returns `None` and prints a message if the program is not installed. Panics in CI, where no test may be skipped.
    pub(crate) fn available() -> Option<Self> {
        let is_installed = Command::new("openssl").arg("version").output().is_ok();
        assert!(
            is_installed || std::env::var_os("CI").is_none(),
            "openssl is required in CI"
        );
        if !is_installed {
            println!("skipped: openssl is not installed");
            return None;
        }
        Some(Self {
            folder: tempfile::tempdir().unwrap(),
        })
    }

    /// Runs the program and returns its output. Panics with its error output.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new("openssl")
            .args(arguments)
            .current_dir(self.folder.path())
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "openssl {arguments:?}: {complaint}"
        );
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        fs::write(self.folder.path().join(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    /// Generates a private key in PKCS#8.
    pub(crate) fn private_key(&self, kind: &[&str]) -> Secret {
        let arguments = [&["genpkey", "-out", "key.pem", "-algorithm"], kind].concat();
        self.run(&arguments);
        Secret::new(self.read("key.pem"))
    }

    /// Generates a self-signed CA.
    pub(crate) fn authority(&self, kind: &[&str]) -> Identity {
        let usage = "keyUsage=critical,keyCertSign,cRLSign";
        self.self_signed(
            kind,
            &["-subj", "/C=AQ/O=Keywright, Ltd./CN=Root", "-addext", usage],
        )
    }

    /// Generates a self-signed CA without key identifiers.
    pub(crate) fn authority_without_key_identifiers(&self) -> Identity {
        let extensions = [
            "-addext",
            "subjectKeyIdentifier=none",
            "-addext",
            "authorityKeyIdentifier=none",
        ];
        self.self_signed(
            P256,
            &[&["-subj", "/CN=Bare"], extensions.as_slice()].concat(),
        )
    }

    /// Generates a self-signed certificate that is not a CA.
    pub(crate) fn leaf(&self) -> Identity {
        self.self_signed(
            P256,
            &[
                "-subj",
                "/CN=leaf",
                "-addext",
                "basicConstraints=critical,CA:FALSE",
            ],
        )
    }

    /// Generates a leaf that the CA signed.
    pub(crate) fn leaf_of(&self, authority: &Identity) -> Identity {
        let private_key = self.private_key(P256);
        self.write("ca.pem", &authority.certificate);
        self.write("ca.key", authority.private_key.expose());
        self.run(&[
            "req", "-new", "-key", "key.pem", "-subj", "/CN=leaf", "-out", "leaf.csr",
        ]);
        let signing = [
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "30",
        ];
        let certificate =
            self.run(&[&["x509", "-req", "-in", "leaf.csr"], signing.as_slice()].concat());
        Identity {
            certificate,
            private_key,
        }
    }

    fn self_signed(&self, kind: &[&str], options: &[&str]) -> Identity {
        let private_key = self.private_key(kind);
        let request = ["req", "-x509", "-key", "key.pem", "-days", "400"];
        let certificate = self.run(&[request.as_slice(), options].concat());
        Identity {
            certificate,
            private_key,
        }
    }
}
