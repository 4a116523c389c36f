//! The rules for stored values: those for set values, except the length of keys.

use keywright_core::ports::{CertificateMembers, Certificates};
use keywright_crypto::X509Certificates;

use crate::openssl::{Openssl, P256};

#[test]
fn stored_certificate_may_have_a_short_key() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let short = openssl.authority(&["RSA", "-pkeyopt", "rsa_keygen_bits:512"]);
    let members = CertificateMembers {
        certificate: Some(&short.certificate),
        ..CertificateMembers::default()
    };
    assert!(X509Certificates.check_stored(members).is_ok());
    assert!(X509Certificates.check_members(members).is_err());
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
        let members = CertificateMembers {
            ca: Some(ca),
            certificate: Some(&leaf.certificate),
            private_key: Some(private_key),
            ca_is_stored: false,
        };
        let stored = X509Certificates.check_stored(members);
        let said = stored.as_ref().err().map(ToString::to_string);
        assert_eq!(said.as_deref(), refused);
        if let Ok(facts) = stored {
            let found = X509Certificates.facts(&leaf.certificate).unwrap();
            assert_eq!(facts, Some(found));
        }
    }
}
