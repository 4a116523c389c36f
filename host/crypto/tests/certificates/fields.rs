//! Values that guests generate, and stored values.

use chrono::Utc;
use keywright_core::{
    certificate::{IssuanceRules, SigningUsages},
    ports::{CertificateFields, Certificates},
};
use keywright_crypto::X509Certificates;

use crate::{Identity, Openssl, P256};

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

fn fields<'a>(ca: &'a Identity, certificate: &'a Identity) -> CertificateFields<'a> {
    CertificateFields {
        ca: Some(&ca.certificate),
        certificate: Some(&certificate.certificate),
        ..CertificateFields::default()
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
