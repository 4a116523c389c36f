//! Certificates, as the `openssl` program creates and verifies them.
#![expect(
    clippy::unwrap_used,
    reason = "these are tests; helper functions outside of #[test] count as production code for the lints"
)]

mod attacks;
mod fields;
mod issuer;

use std::{fs, process::Command};

use chrono::{DateTime, Utc};
use keywright_core::{Secret, ports::CertificateIssuer};
use keywright_der::element;
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
    /// Panics in CI if the program is not installed. Elsewhere, prints a message and skips all tests.
    pub(crate) fn new() -> Self {
        if Command::new("openssl").arg("version").output().is_err() {
            assert!(
                std::env::var_os("CI").is_none(),
                "openssl is required in CI"
            );
            println!("skipped: openssl is not installed");
            std::process::exit(0);
        }
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
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

/// A `TBSCertificate` (RFC 5280), field by field. [`Body::to_der`] encodes the fields that are not DER already.
#[derive(Clone)]
pub(crate) struct Body {
    pub(crate) version: u8,
    pub(crate) serial: Vec<u8>,
    pub(crate) signature_algorithm: Vec<u8>,
    pub(crate) issuer: Vec<u8>,
    pub(crate) not_before: DateTime<Utc>,
    pub(crate) not_after: DateTime<Utc>,
    pub(crate) subject: Vec<u8>,
    pub(crate) subject_public_key: Vec<u8>,
    pub(crate) unique_identifier: Vec<u8>,
    pub(crate) extensions: Vec<Extension>,
}

#[derive(Clone)]
pub(crate) struct Extension {
    pub(crate) oid: Vec<u8>,
    pub(crate) is_critical: bool,
    pub(crate) value: Vec<u8>,
}

pub(crate) const BASIC_CONSTRAINTS: u8 = 19;
pub(crate) const KEY_USAGE: u8 = 15;
pub(crate) const SUBJECT_KEY_IDENTIFIER: u8 = 14;
pub(crate) const AUTHORITY_KEY_IDENTIFIER: u8 = 35;
pub(crate) const SUBJECT_ALT_NAME: u8 = 17;
pub(crate) const NAME_CONSTRAINTS: u8 = 30;
pub(crate) const EXTENDED_KEY_USAGE: u8 = 37;

impl Body {
    /// Returns a body of a leaf that the issuer signs.
    pub(crate) fn leaf(
        issuer: &dyn CertificateIssuer,
        subject_public_key: Vec<u8>,
        now: DateTime<Utc>,
        days: i64,
    ) -> Self {
        let mut extensions = vec![
            Extension::new(BASIC_CONSTRAINTS, true, &[0x30, 0x00]),
            Extension::new(SUBJECT_KEY_IDENTIFIER, false, &element(0x04, &[7; 20])),
            Extension::new(SUBJECT_ALT_NAME, false, b"\x30\x0a\x82\x08leaf.com"),
        ];
        if let Some(identifier) = issuer.subject_key_identifier() {
            let value = element(0x30, &element(0x80, identifier));
            extensions.push(Extension::new(AUTHORITY_KEY_IDENTIFIER, false, &value));
        }
        Self {
            version: 2,
            serial: vec![0x12, 0x34],
            signature_algorithm: issuer.signature_algorithm().to_vec(),
            issuer: issuer.subject().to_vec(),
            not_before: now,
            not_after: now + chrono::TimeDelta::days(days),
            subject: b"\x30\x0f\x31\x0d\x30\x0b\x06\x03\x55\x04\x03\x0c\x04leaf".to_vec(),
            subject_public_key,
            unique_identifier: Vec::new(),
            extensions,
        }
    }

    pub(crate) fn to_der(&self) -> Vec<u8> {
        let extensions: Vec<u8> = self.extensions.iter().flat_map(Extension::to_der).collect();
        let validity = [time(self.not_before), time(self.not_after)].concat();
        let fields = [
            element(0xa0, &element(0x02, &[self.version])),
            element(0x02, &self.serial),
            self.signature_algorithm.clone(),
            self.issuer.clone(),
            element(0x30, &validity),
            self.subject.clone(),
            self.subject_public_key.clone(),
            self.unique_identifier.clone(),
            element(0xa3, &element(0x30, &extensions)),
        ];
        element(0x30, &fields.concat())
    }

    /// Replaces the extension of this kind, or appends it.
    pub(crate) fn with(mut self, extension: Extension) -> Self {
        self.extensions.retain(|other| other.oid != extension.oid);
        self.extensions.push(extension);
        self
    }
}

impl Extension {
    /// Returns an extension of X.509 itself, by the last number of its object identifier.
    pub(crate) fn new(number: u8, is_critical: bool, value: &[u8]) -> Self {
        Self {
            oid: certificate_extension(number),
            is_critical,
            value: value.to_vec(),
        }
    }

    fn to_der(&self) -> Vec<u8> {
        let critical = if self.is_critical {
            element(0x01, &[0xff])
        } else {
            Vec::new()
        };
        let fields = [
            element(0x06, &self.oid),
            critical,
            element(0x04, &self.value),
        ];
        element(0x30, &fields.concat())
    }
}

/// Returns the object identifier of an extension of X.509 itself.
pub(crate) fn certificate_extension(number: u8) -> Vec<u8> {
    vec![0x55, 0x1d, number]
}

fn time(time: DateTime<Utc>) -> Vec<u8> {
    element(0x17, time.format("%y%m%d%H%M%SZ").to_string().as_bytes())
}
