//! Malformed and overreaching certificates: the issuer must not sign them, and the server must not store them.
//!
//! This module sets certificates with one change each, either systematic or random with a fixed seed. OpenSSL must be able to
//! parse the certificates that the server stores, and to verify the certificates that it signs.

mod bodies;
mod issued;
mod keys;

use std::fs;

use keywright_harness::{
    Commanded, Server, TestCertificate,
    der::{self, Node, certificate_pem},
};
use rand::{RngExt, SeedableRng, rngs::ChaCha12Rng};
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, DnValue, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose, SanType,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use issued::assert_alive;

/// The minimum number of mutants, and of accepted mutants: with fewer, the test would verify too little.
const MUTANTS_MIN: usize = 567;
const ACCEPTED_MIN: usize = 100;

#[tokio::test]
async fn openssl_reads_stored_certificates_and_verifies_signed_ones() {
    let server = Server::start().await;
    let key = KeyPair::generate().unwrap();
    let (authority, leaf) = (authority(&key), leaf(&key));
    let mut mutants = malformed_mutants(&authority, &key);
    let key = key.serialize_pem();
    mutants.extend(with_one_byte_changed(&authority, 400));
    mutants.extend(with_one_byte_changed(&leaf, 200));
    assert!(mutants.len() >= MUTANTS_MIN, "{}", mutants.len());
    let mut accepted = Vec::new();
    for (number, mutant) in mutants.iter().enumerate() {
        accepted.extend(set(&server, number, mutant, &key).await);
    }
    assert!(accepted.len() >= ACCEPTED_MIN, "{}", accepted.len());
    assert_readable(&accepted);
    assert_verified(&accepted);
    assert_alive(&server).await;
}

/// An accepted mutant, and the certificate signed by it if it is a CA.
struct Accepted<'a> {
    mutant: &'a Mutant,
    generated: Option<String>,
}

/// Sets a mutant, generates a certificate with it as the CA, and regenerates it. Asserts that each status is 200 or 400.
async fn set<'a>(
    server: &Server,
    number: usize,
    mutant: &'a Mutant,
    key: &str,
) -> Option<Accepted<'a>> {
    let name = format!("/set/{number}");
    let value = json!({"certificate": mutant.certificate, "private_key": key});
    let response = server.set(&name, "certificate", value).await;
    if response.status == 400 {
        let words = response.error();
        assert!(
            words.starts_with("certificate ") || words.starts_with("private_key "),
            "{words}"
        );
        return None;
    }
    response.expect(200);
    let parameters = json!({
        "ca": name, "common_name": "generated", "key_type": "ed25519",
    });
    let generated = server
        .generate(&format!("/generated/{number}"), "certificate", parameters)
        .await;
    assert!(
        matches!(generated.status, 200 | 400),
        "{}: {generated:?}",
        mutant.name
    );
    let regenerated = server.regenerate(&name).await;
    assert!(
        matches!(regenerated.status, 200 | 400),
        "{}: {regenerated:?}",
        mutant.name
    );
    let certificate = |version: Value| version["value"]["certificate"].as_str().map(str::to_owned);
    let generated = (generated.status == 200).then(|| certificate(generated.json()).unwrap());
    Some(Accepted { mutant, generated })
}

/// Checks that OpenSSL parses all accepted and generated certificates completely.
fn assert_readable(accepted: &[Accepted<'_>]) {
    let certificates = accepted.iter().flat_map(|one| {
        let generated = one.generated.iter().map(move |generated| (one, generated));
        std::iter::once((one, &one.mutant.certificate)).chain(generated)
    });
    let (texts, names): (Vec<_>, Vec<_>) = certificates
        .map(|(one, certificate)| (certificate.as_str(), one.mutant.name.as_str()))
        .unzip();
    if is_readable(&texts) {
        return;
    }
    let unreadable: Vec<_> = texts
        .iter()
        .zip(names)
        .filter(|(text, _)| !is_readable(&[text]))
        .map(|(_, name)| name)
        .collect();
    panic!(
        "OpenSSL can't read {} certificates: {unreadable:#?}",
        unreadable.len()
    );
}

fn is_readable(certificates: &[&str]) -> bool {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("all.pem");
    fs::write(&file, certificates.concat()).unwrap();
    let arguments = ["crl2pkcs7", "-nocrl", "-certfile", file.to_str().unwrap()];
    let bundle = Commanded::run("openssl", &arguments, "");
    let text = Commanded::run(
        "openssl",
        &["pkcs7", "-print_certs", "-text", "-noout"],
        &bundle.output,
    );
    let times = |words: &str| text.output.matches(words).count();
    bundle.is_success()
        && text.is_success()
        && times("    Signature Value:") == certificates.len()
        && [
            "Unable to load Public Key",
            "Bad time value",
            "<Parse Error>",
            "<INVALID>",
        ]
        .iter()
        .all(|words| times(words) == 0)
}

/// Checks that OpenSSL verifies the generated certificates, unless the CA itself forbids it.
fn assert_verified(accepted: &[Accepted<'_>]) {
    let folder = TempDir::new().unwrap();
    let (authority, leaf) = (folder.path().join("ca.pem"), folder.path().join("leaf.pem"));
    let file = |path: &std::path::Path| path.display().to_string();
    let mut verified = 0;
    for one in accepted {
        let Some(generated) = &one.generated else {
            continue;
        };
        fs::write(&authority, &one.mutant.certificate).unwrap();
        fs::write(&leaf, generated).unwrap();
        let arguments = [
            "verify",
            "-partial_chain",
            "-no_check_time",
            "-ignore_critical",
            "-CAfile",
            &file(&authority),
            &file(&leaf),
        ];
        let outcome = Commanded::run("openssl", &arguments, "");
        let is_distrusted = DISTRUSTED
            .iter()
            .any(|words| outcome.errors.contains(words));
        assert!(
            outcome.is_success() || is_distrusted,
            "{}: {outcome:?}",
            one.mutant.name
        );
        verified += usize::from(outcome.is_success());
    }
    assert!(verified >= ACCEPTED_MIN, "{verified}");
}

/// OpenSSL's errors for a CA certificate that does not allow signing.
const DISTRUSTED: [&str; 2] = [
    "invalid CA certificate",
    "key usage does not include certificate signing",
];

/// Returns a CA with many fields.
fn authority(key: &KeyPair) -> Vec<u8> {
    let mut parameters = parameters("authority");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(3));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    parameters.self_signed(key).unwrap().der().to_vec()
}

/// Returns a self-signed leaf.
fn leaf(key: &KeyPair) -> Vec<u8> {
    let mut parameters = parameters("leaf");
    parameters.is_ca = IsCa::ExplicitNoCa;
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    parameters.self_signed(key).unwrap().der().to_vec()
}

fn parameters(common_name: &str) -> CertificateParams {
    let mut parameters = CertificateParams::default();
    let name = &mut parameters.distinguished_name;
    name.push(DnType::CommonName, common_name);
    name.push(
        DnType::CountryName,
        DnValue::PrintableString("AQ".try_into().unwrap()),
    );
    name.push(
        DnType::OrganizationName,
        DnValue::BmpString("Größe".try_into().unwrap()),
    );
    parameters.subject_alt_names = vec![
        SanType::DnsName("a.example.org".try_into().unwrap()),
        SanType::IpAddress([10, 0, 0, 1].into()),
        SanType::Rfc822Name("a@example.org".try_into().unwrap()),
        SanType::URI("https://example.org".try_into().unwrap()),
    ];
    parameters.custom_extensions = EXTENSIONS
        .map(|(identifier, value)| CustomExtension::from_oid_content(identifier, value.to_vec()))
        .to_vec();
    parameters
}

/// Authority information, policies, distribution points, and an unknown extension.
const EXTENSIONS: [(&[u64], &[u8]); 4] = [
    (
        &[1, 3, 6, 1, 5, 5, 7, 1, 1],
        b"\x30\x11\x30\x0f\x06\x08\x2b\x06\x01\x05\x05\x07\x30\x01\x86\x03a:b",
    ),
    (
        &[2, 5, 29, 32],
        b"\x30\x17\x30\x15\x06\x02\x2a\x03\x30\x0f\x30\x0d\x06\x08\x2b\x06\x01\x05\x05\x07\x02\x01\x16\x01a",
    ),
    (&[2, 5, 29, 31], b"\x30\x0b\x30\x09\xa0\x07\xa0\x05\x86\x03a:b"),
    (&[1, 2, 3], b"\x30\x06\x02\x01\x07\x0c\x01a"),
];

#[tokio::test]
async fn a_malformed_stored_ca_is_reported_and_does_not_sign() {
    let server = Server::start().await;
    let authority = TestCertificate::root("authority");
    let der = der::certificate(&authority.certificate);
    let key = &authority.private_key;
    for (number, (malformed, part)) in [
        ("byte that is not UTF-8: subject [0, 0, 1]", "subject"),
        ("extra element: subject [0]", "subject"),
        ("extra element: extensions [0, 0]", "list of extensions"),
    ]
    .into_iter()
    .enumerate()
    {
        let mutants = malformed_mutants(&der, &authority.key);
        let mutant = mutants
            .into_iter()
            .find(|mutant| mutant.name == malformed)
            .unwrap();
        let value = json!({"certificate": mutant.certificate, "private_key": key});
        let name = format!("/{number}");
        let refused = server.set(&name, "certificate", value.clone()).await;
        refused.expect_error(400, &format!("malformed {part}"));
        // `check` verifies the value, although the credential's type in the database is not the type in the ciphertext.
        server.stored(&name, "json", value).await;
        server
            .run_sql("update credential set credential_type = 'certificate' where credential_type = 'json'")
            .await;
        let parameters = json!({"ca": name, "common_name": "leaf"});
        server
            .generate("/leaf", "certificate", parameters)
            .await
            .expect(500);
    }
    let checked = server.run_command("check");
    for (number, part) in ["subject", "subject", "list of extensions"]
        .iter()
        .enumerate()
    {
        let words = format!("certificate has a malformed {part}: the PEM block must contain DER");
        let is_found = checked
            .output
            .lines()
            .any(|line| line.contains(&format!("/{number}")) && line.contains(&words));
        assert!(is_found, "{checked:?}");
    }
    assert_alive(&server).await;
}

/// A changed certificate with its private key.
struct Mutant {
    pub(crate) name: String,
    pub(crate) certificate: String,
}

/// Returns copies of the certificate, each with one byte changed and the old signature.
fn with_one_byte_changed(certificate: &[u8], count: usize) -> Vec<Mutant> {
    let mut random = ChaCha12Rng::seed_from_u64(SEED);
    let mutants = (0..count).map(|_| {
        let at = random.random_range(0..certificate.len());
        let mut changed = certificate.to_vec();
        changed[at] ^= random.random_range(1..=0xff_u8);
        mutant(format!("byte {at} is {:#04x}", changed[at]), &changed)
    });
    mutants.collect()
}

/// Returns copies of the certificate, each with one malformed element and signed again with its own key.
fn malformed_mutants(certificate: &[u8], key: &KeyPair) -> Vec<Mutant> {
    let certificate = Node::parse(certificate);
    let body = certificate.clone().at(&[0]).clone();
    let mut attacks = bodies::malformed(&body);
    attacks.extend(bodies::structures());
    let mutants = attacks.into_iter().map(|(name, change)| {
        let mut certificate = certificate.clone();
        change(certificate.at(&[0]));
        mutant(name, &certificate.signed_again(key))
    });
    mutants.collect()
}

fn mutant(name: String, der: &[u8]) -> Mutant {
    Mutant {
        name,
        certificate: certificate_pem(der),
    }
}

const SEED: u64 = 17;
