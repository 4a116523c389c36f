//! Unusual and malformed private keys.

use keywright_core::{
    Secret,
    ports::{CertificateError, CertificateFields, Certificates},
};
use keywright_crypto::X509Certificates;

use crate::{KEY_KINDS, Openssl, P256};

#[test]
fn key_after_its_curve_parameters_is_parsed() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let identity = openssl.authority(P256);
    openssl.write("key.pem", identity.private_key.expose());
    let parameters = openssl.run(&["ecparam", "-name", "prime256v1"]);
    let key = openssl.run(&["pkey", "-in", "key.pem", "-traditional"]);
    assert!(parameters.contains("BEGIN EC PARAMETERS") && key.contains("BEGIN EC PRIVATE KEY"));
    check(&identity.certificate, &Secret::new(parameters + &key)).unwrap();
}

#[test]
fn encrypted_and_malformed_keys_are_rejected() {
    let Some(openssl) = Openssl::available() else {
        return;
    };
    let identity = openssl.authority(KEY_KINDS[0].0);
    openssl.write("key.pem", identity.private_key.expose());
    let encrypted = ["-aes256", "-passout", "pass:secret"];
    let pkcs8 = openssl.run(&[&["pkey", "-in", "key.pem"], encrypted.as_slice()].concat());
    let pkcs1 = openssl.run(
        &[
            &["rsa", "-in", "key.pem", "-traditional"],
            encrypted.as_slice(),
        ]
        .concat(),
    );
    let short = openssl.private_key(&["RSA", "-pkeyopt", "rsa_keygen_bits:1023"]);
    let mut cut = identity.private_key.expose().to_owned();
    cut.truncate(cut.len() / 2);
    for (private_key, rule) in [
        (pkcs8.as_str(), "must not be encrypted"),
        (&pkcs1, "must not be encrypted"),
        (short.expose(), "RSA key of 1024 to 8192 bits"),
        (&cut, "must be a PEM-encoded private key"),
        ("garbage", "must be a PEM-encoded private key"),
        (&identity.certificate, "must be a PEM-encoded private key"),
        (
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "ECDSA key on P-256",
        ),
        (
            "-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----\n",
            "PEM-encoded private key",
        ),
    ] {
        let refused =
            check(&identity.certificate, &Secret::new(private_key.to_owned())).unwrap_err();
        assert_eq!(refused.field, "private_key");
        assert!(refused.rule.contains(rule), "{refused}");
    }
}

fn check(certificate: &str, private_key: &Secret) -> Result<(), CertificateError> {
    let fields = CertificateFields {
        certificate: Some(certificate),
        private_key: Some(private_key),
        ..CertificateFields::default()
    };
    X509Certificates.check_fields(fields).map(drop)
}
