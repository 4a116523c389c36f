//! What holds for a value that is stored: what holds when it is set, but for sizes.

use keywright_core::{
    certificate::CERTIFICATE_BYTES_MAX,
    ports::{CertificateMembers, Certificates},
};
use keywright_crypto::X509Certificates;

use crate::openssl::{Openssl, P256};

#[test]
fn a_stored_certificate_may_be_larger_than_one_that_is_set_and_keeps_every_other_rule() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let authority = openssl.authority(P256);
    let other = openssl.authority(P256);
    let leaf = openssl.leaf_of(&authority);
    let large = |pem: &str| format!("{pem}{}", "x".repeat(CERTIFICATE_BYTES_MAX));
    let certificate = large(&leaf.certificate);
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
        let ca = large(ca);
        let members = CertificateMembers {
            ca: Some(&ca),
            certificate: Some(&certificate),
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
        assert!(X509Certificates.check_members(members).is_err());
    }
}
