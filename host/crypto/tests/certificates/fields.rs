//! Values that callers set and guests generate, and stored values.

use chrono::Utc;
use keywright_core::{
    certificate::{CertificateFacts, IssuanceRules, SigningUsages},
    ports::{CertificateError, CertificateFields, Certificates},
};
use keywright_crypto::X509Certificates;

use crate::{Identity, KEY_KINDS, Openssl, P256};

#[test]
fn leaf_with_its_ca_is_accepted_for_every_key_kind() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    for (kind, _) in KEY_KINDS {
        let authority = openssl.authority(kind);
        let leaf = openssl.leaf_of(&authority);
        let facts = set(Some(&authority.certificate), Some(&leaf.certificate))
            .unwrap()
            .unwrap();
        assert!(!facts.is_self_signed && !facts.is_certificate_authority);
        let days = (facts.expires_at - Utc::now()).num_hours();
        assert!((29 * 24..=30 * 24).contains(&days), "{days}");
    }
}

#[test]
fn signatures_with_unusual_hashes_are_verified() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    for (kind, hash) in [
        (P256, "-sha512"),
        (KEY_KINDS[2].0, "-sha512"),
        (KEY_KINDS[3].0, "-sha256"),
        (KEY_KINDS[3].0, "-sha384"),
        (KEY_KINDS[0].0, "-sha384"),
    ] {
        openssl.private_key(kind);
        let certificate = openssl.run(&["req", "-x509", "-key", "key.pem", "-subj", "/CN=a", hash]);
        assert!(
            X509Certificates.facts(&certificate).unwrap().is_self_signed,
            "{kind:?} {hash}"
        );
    }
}

#[test]
fn rsa_pss_signatures_are_verified() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    for hash in ["-sha256", "-sha384", "-sha512"] {
        openssl.private_key(KEY_KINDS[0].0);
        let certificate = openssl.run(&[
            "req",
            "-x509",
            "-key",
            "key.pem",
            "-subj",
            "/CN=a",
            hash,
            "-sigopt",
            "rsa_padding_mode:pss",
            "-sigopt",
            "rsa_pss_saltlen:digest",
        ]);
        assert!(
            X509Certificates.facts(&certificate).unwrap().is_self_signed,
            "{hash}"
        );
    }
}

#[test]
fn one_field_is_enough_and_given_fields_are_checked() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let authority = openssl.authority(P256);
    assert_eq!(set(Some(&authority.certificate), None), Ok(None));
    assert!(set(None, Some(&authority.certificate)).unwrap().is_some());
    let private_key = Some(&authority.private_key);
    let fields = CertificateFields {
        private_key,
        ..CertificateFields::default()
    };
    let checked = X509Certificates.check_fields(fields).unwrap();
    assert_eq!((checked.facts, checked.rsa_bits), (None, None));
    for (ca, certificate, sentence) in [
        (
            Some("garbage"),
            None,
            "ca must be a PEM-encoded X.509 certificate",
        ),
        (
            None,
            Some("garbage"),
            "certificate must be a PEM-encoded X.509 certificate",
        ),
        (
            None,
            Some(authority.private_key.expose()),
            "certificate must be a PEM-encoded X.509 certificate",
        ),
    ] {
        assert_eq!(set(ca, certificate).unwrap_err().to_string(), sentence);
    }
}

#[test]
fn structural_errors_name_the_field() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let authority = openssl.authority(P256);
    let other = openssl.authority(P256);
    let leaf = openssl.leaf_of(&authority);
    let lone = openssl.leaf();
    for (ca, certificate, ca_is_stored, sentence) in [
        (&other, &leaf, false, "certificate was not signed by ca"),
        (
            &other,
            &leaf,
            true,
            "certificate was not signed by the active version of the CA in ca_name",
        ),
        (
            &lone,
            &leaf,
            false,
            "ca is not a CA certificate: its basic constraints do not set the CA flag",
        ),
        (
            &lone,
            &lone,
            true,
            "ca_name is not a CA certificate: its basic constraints do not set the CA flag",
        ),
    ] {
        let fields = CertificateFields {
            ca_is_stored,
            ..fields(ca, certificate)
        };
        assert_eq!(
            X509Certificates
                .check_fields(fields)
                .unwrap_err()
                .to_string(),
            sentence
        );
    }
    let itself = X509Certificates
        .check_fields(fields(&lone, &lone))
        .unwrap()
        .facts
        .unwrap();
    assert!(
        !itself.is_self_signed,
        "only an authority that is set counts as signed by itself"
    );
}

#[test]
fn self_signed_ca_is_recognized_unless_set_with_ca_name() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let authority = openssl.authority(P256);
    for ca_is_stored in [false, true] {
        let fields = CertificateFields {
            ca_is_stored,
            ..fields(&authority, &authority)
        };
        let checked = X509Certificates.check_fields(fields).unwrap();
        let facts = checked.facts.unwrap();
        assert_eq!(facts.is_self_signed, !ca_is_stored);
        assert!(facts.is_certificate_authority);
    }
    assert!(
        set(None, Some(&authority.certificate))
            .unwrap()
            .unwrap()
            .is_self_signed
    );
}

#[test]
fn certificate_with_own_name_as_issuer_is_not_self_signed() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let authority = openssl.self_named_twice();
    assert!(!X509Certificates.facts(&authority).unwrap().is_self_signed);
}

#[test]
fn certificates_of_version_1_are_accepted() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let leaf = openssl.leaf_of(&openssl.authority(P256));
    openssl.write("v1.pem", &leaf.certificate);
    assert!(
        openssl
            .run(&["x509", "-in", "v1.pem", "-noout", "-text"])
            .contains("Version: 1 ")
    );
    assert!(set(None, Some(&leaf.certificate)).unwrap().is_some());
}

#[test]
fn first_certificate_of_a_bundle_is_used() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let authority = openssl.authority(P256);
    let leaf = openssl.leaf_of(&authority);
    let bundle = format!(
        "a leaf\n{}{}the end",
        leaf.certificate, authority.certificate
    );
    let with_carriage_returns = bundle.replace('\n', "\r\n");
    for text in [&bundle, &with_carriage_returns] {
        assert!(set(Some(&authority.certificate), Some(text)).is_ok());
        assert!(X509Certificates.is_same_certificate(text, &leaf.certificate));
        assert!(!X509Certificates.is_same_certificate(text, &authority.certificate));
    }
    assert!(!X509Certificates.is_same_certificate("", ""));
}

#[test]
fn generated_value_must_be_complete_and_signed_by_the_issuer() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let authority = openssl.authority(P256);
    let other = openssl.authority(P256);
    let leaf = openssl.leaf_of(&authority);
    let rules = IssuanceRules {
        common_name: None,
        may_be_authority: false,
        signing_usages: SigningUsages::default(),
        duration_days_max: 365,
        now: Utc::now(),
    };
    let signer = |identity: &Identity| {
        X509Certificates
            .issuer(&identity.certificate, &identity.private_key, rules.clone())
            .unwrap()
    };
    let (issuer, other_issuer) = (signer(&authority), signer(&other));
    let whole = CertificateFields {
        private_key: Some(&leaf.private_key),
        ..fields(&authority, &leaf)
    };
    assert!(
        X509Certificates
            .check_generated(whole, Some(issuer.as_ref()))
            .is_ok()
    );
    let other_key = Some(&other.private_key);
    let other_ca = Some(other.certificate.as_str());
    for (made, issuer, sentence) in [
        (
            CertificateFields {
                certificate: None,
                ..whole
            },
            Some(&issuer),
            "certificate is missing",
        ),
        (
            CertificateFields {
                private_key: None,
                ..whole
            },
            Some(&issuer),
            "private_key is missing",
        ),
        (
            CertificateFields { ca: None, ..whole },
            Some(&issuer),
            "ca is missing",
        ),
        (
            CertificateFields {
                private_key: other_key,
                ..whole
            },
            Some(&issuer),
            "private_key does not belong to certificate",
        ),
        (
            CertificateFields {
                ca: other_ca,
                ..whole
            },
            Some(&issuer),
            "ca is not the certificate of the issuer",
        ),
        (
            whole,
            Some(&other_issuer),
            "certificate is not signed by its issuer",
        ),
        (whole, None, "certificate is not signed by its issuer"),
    ] {
        let issuer = issuer.map(AsRef::as_ref);
        let refused = X509Certificates.check_generated(made, issuer).unwrap_err();
        assert_eq!(refused.to_string(), sentence);
    }
    let root = CertificateFields {
        private_key: Some(&authority.private_key),
        ..fields(&authority, &authority)
    };
    assert!(
        X509Certificates
            .check_generated(root, None)
            .unwrap()
            .is_self_signed
    );
}

fn set(
    ca: Option<&str>,
    certificate: Option<&str>,
) -> Result<Option<CertificateFacts>, CertificateError> {
    let fields = CertificateFields {
        ca,
        certificate,
        ..CertificateFields::default()
    };
    X509Certificates
        .check_fields(fields)
        .map(|checked| checked.facts)
}

fn fields<'a>(ca: &'a Identity, certificate: &'a Identity) -> CertificateFields<'a> {
    CertificateFields {
        ca: Some(&ca.certificate),
        certificate: Some(&certificate.certificate),
        ..CertificateFields::default()
    }
}

impl Openssl {
    /// Returns a certificate with the same name as issuer and subject, signed by another key of that name.
    fn self_named_twice(&self) -> String {
        let authority = self.authority(P256);
        self.write("ca.pem", &authority.certificate);
        self.write("ca.key", authority.private_key.expose());
        self.private_key(P256);
        let subject = "/C=AQ/O=Keywright, Ltd./CN=Root";
        self.run(&[
            "req", "-new", "-key", "key.pem", "-subj", subject, "-out", "twin.csr",
        ]);
        self.run(&[
            "x509",
            "-req",
            "-in",
            "twin.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
        ])
    }
}

#[test]
fn stored_certificate_may_have_a_short_key() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let short = openssl.authority(&["RSA", "-pkeyopt", "rsa_keygen_bits:512"]);
    let fields = CertificateFields {
        certificate: Some(&short.certificate),
        ..CertificateFields::default()
    };
    assert!(X509Certificates.check_stored(fields).is_ok());
    assert!(X509Certificates.check_fields(fields).is_err());
    let authority = openssl.authority(P256);
    let other = openssl.authority(P256);
    let leaf = openssl.leaf_of(&authority);
    for (ca, private_key, refused) in [
        (&authority.certificate, &leaf.private_key, None),
        (
            &other.certificate,
            &leaf.private_key,
            Some("certificate was not signed by ca"),
        ),
        (
            &authority.certificate,
            &authority.private_key,
            Some("private_key does not belong to certificate"),
        ),
    ] {
        let fields = CertificateFields {
            ca: Some(ca),
            certificate: Some(&leaf.certificate),
            private_key: Some(private_key),
            ca_is_stored: false,
        };
        let stored = X509Certificates.check_stored(fields);
        let message = stored.as_ref().err().map(ToString::to_string);
        assert_eq!(message.as_deref(), refused);
        if let Ok(facts) = stored {
            let found = X509Certificates.facts(&leaf.certificate).unwrap();
            assert_eq!(facts, Some(found));
        }
    }
}
