//! Values that guests generate, stored values, and unusual or malformed private keys.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use keywright_core::{
    Secret,
    ports::{CertificateError, CertificateFields, Certificates},
};
use keywright_crypto::X509Certificates;
use keywright_der::{element, elements, split_element};

use crate::{
    Identity, KEY_KINDS, Openssl, P256,
    issuer::{self, signer},
};

#[test]
fn generated_value_must_be_complete_and_signed_by_the_issuer() {
    let openssl = Openssl::new();
    let authority = openssl.authority(P256);
    let other = openssl.authority(P256);
    let earlier = openssl.leaf_of(&authority);
    let (issuer, other_issuer) = (signer(&authority), signer(&other));
    let body = issuer::leaf(&openssl, issuer.as_ref()).to_der();
    let leaf = Identity {
        certificate: issuer::pem(&issuer.sign_certificate(&body).unwrap()),
        private_key: Secret::new(openssl.read("key.pem")),
    };
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
    let both = format!("{}{}", authority.certificate, other.certificate);
    let indented = format!("  {}", authority.certificate);
    let with_ca = |ca| CertificateFields { ca, ..whole };
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
        (with_ca(None), Some(&issuer), "ca is missing"),
        (
            CertificateFields {
                private_key: other_key,
                ..whole
            },
            Some(&issuer),
            "private_key does not belong to certificate",
        ),
        (
            with_ca(other_ca),
            Some(&issuer),
            "ca is not the certificate of the issuer",
        ),
        (
            with_ca(Some(&both)),
            Some(&issuer),
            "ca is not the certificate of the issuer",
        ),
        (
            with_ca(Some(&indented)),
            Some(&issuer),
            "ca is PEM that programs read differently",
        ),
        (
            whole,
            Some(&other_issuer),
            "certificate is not signed by its issuer",
        ),
        (
            CertificateFields {
                private_key: Some(&earlier.private_key),
                ..fields(&authority, &earlier)
            },
            Some(&issuer),
            "certificate was not signed in this call",
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
    let openssl = Openssl::new();
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

#[test]
fn key_after_its_curve_parameters_is_parsed() {
    let openssl = Openssl::new();
    let identity = openssl.authority(P256);
    openssl.write("key.pem", identity.private_key.expose());
    let parameters = openssl.run(&["ecparam", "-name", "prime256v1"]);
    let key = openssl.run(&["pkey", "-in", "key.pem", "-traditional"]);
    assert!(parameters.contains("BEGIN EC PARAMETERS") && key.contains("BEGIN EC PRIVATE KEY"));
    check(&identity.certificate, &Secret::new(parameters + &key)).unwrap();
}

#[test]
fn a_sec1_key_without_its_curve_is_rejected() {
    let openssl = Openssl::new();
    for (curve, _) in &KEY_KINDS[1..4] {
        let identity = openssl.authority(curve);
        openssl.write("key.pem", identity.private_key.expose());
        let key = openssl.run(&["pkey", "-in", "key.pem", "-traditional"]);
        check(&identity.certificate, &Secret::new(key.clone())).unwrap();
        let without_curve = with_der(&key, |der| {
            let (tag, content, _) = split_element(der).unwrap();
            let kept = elements(content).filter(|field| field[0] != 0xa0);
            element(tag, &kept.collect::<Vec<_>>().concat())
        });
        let refused = check(&identity.certificate, &Secret::new(without_curve)).unwrap_err();
        assert_eq!(refused.field, "private_key");
    }
}

#[test]
fn rsa_keys_with_a_wrong_coefficient_are_rejected() {
    let openssl = Openssl::new();
    for bits in [1024, 2048] {
        let identity = openssl.authority(&["RSA", "-pkeyopt", &format!("rsa_keygen_bits:{bits}")]);
        openssl.write("key.pem", identity.private_key.expose());
        for form in [&[][..], &["-traditional"]] {
            let key = openssl.run(&[&["pkey", "-in", "key.pem"], form].concat());
            check(&identity.certificate, &Secret::new(key.clone())).unwrap();
            // The last byte belongs to the coefficient.
            let wrong = with_der(&key, |der| {
                let mut der = der.to_vec();
                *der.last_mut().unwrap() ^= 2;
                der
            });
            let wrong = Secret::new(wrong);
            let refused = check(&identity.certificate, &wrong).unwrap_err();
            assert_eq!(refused.field, "private_key");
            assert!(refused.rule.contains("is malformed"), "{refused}");
        }
    }
}

#[test]
fn an_rsa_key_of_1023_bits_is_rejected() {
    let openssl = Openssl::new();
    let short = openssl.private_key(&["RSA", "-pkeyopt", "rsa_keygen_bits:1023"]);
    let refused = check(&openssl.authority(P256).certificate, &short).unwrap_err();
    assert_eq!(refused.field, "private_key");
    let rule = "RSA key of 1024 to 8192 bits";
    assert!(refused.rule.contains(rule), "{refused}");
}

/// Returns a PEM text with changed DER.
fn with_der(pem: &str, change: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let mut digits: Vec<_> = pem.lines().collect();
    let (first, last) = (digits.remove(0), digits.pop().unwrap());
    let der = change(&STANDARD.decode(digits.concat()).unwrap());
    format!("{first}\n{}\n{last}\n", STANDARD.encode(der))
}

fn check(certificate: &str, private_key: &Secret) -> Result<(), CertificateError> {
    let fields = CertificateFields {
        certificate: Some(certificate),
        private_key: Some(private_key),
        ..CertificateFields::default()
    };
    X509Certificates.check_fields(fields).map(drop)
}
