//! The encoding and the size of certificates.

use std::time::Duration;

use keywright_harness::{Options, Server, Shell, Text};
use serde_json::{Value, json};

use super::{Identity, Openssl, P256};

// OpenSSL reads stored certificates and keys, and stored CAs can sign. Malformed DER is among the attacks
// (`tests/attacks/certificates/`).

/// Returns layouts of one PEM block that OpenSSL reads.
fn strict(pem: &str) -> Vec<String> {
    let (lines, digits) = (lines(pem), digits(pem));
    let (first, last) = (lines[0], lines[lines.len() - 1]);
    vec![
        pem.to_owned(),
        pem.trim_end().to_owned(),
        pem.replace('\n', "\r\n"),
        format!("text\n{pem}text"),
        format!("{first}\n{digits}\n{last}\n"),
        format!("{first}\n{}\n{}\n{last}\n", &digits[..7], &digits[7..]),
    ]
}

/// Returns layouts of one PEM block that OpenSSL or other parsers may reject.
fn sloppy(pem: &str) -> Vec<String> {
    let (lines, digits) = (lines(pem), digits(pem));
    let (first, last) = (lines[0], lines[lines.len() - 1]);
    vec![
        format!("\u{feff}{pem}"),
        lines.join(" "),
        lines.concat(),
        lines.join("\n\n"),
        lines.join("\r"),
        lines.join("\n  "),
        format!("  {}", lines.join("\n  ")),
        format!("{} \n", lines.join(" \n")),
        format!("{first}\n{digits}{last}\n"),
        format!("text {pem}"),
        format!("{} text\n", pem.trim_end()),
        format!("{first}\n{}\n{digits}\n{last}\n", " ".repeat(1_000)),
    ]
}

fn lines(pem: &str) -> Vec<&str> {
    pem.lines().collect()
}

fn digits(pem: &str) -> String {
    pem.lines().filter(|line| !line.starts_with('-')).collect()
}

async fn stored(server: &Server, field: &str, text: &str) -> String {
    let response = server.set("/a", "certificate", json!({field: text})).await;
    assert_eq!(response.status, 200, "{text:?}: {}", response.body);
    response.json()["value"][field].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn openssl_reads_stored_certificates_of_any_layout() {
    let openssl = Openssl::new();
    let server = Server::reused().await;
    let certificate = openssl
        .authority(openssl.private_key(P256), &[])
        .certificate;
    for field in ["certificate", "ca"] {
        for text in strict(&certificate) {
            assert_eq!(stored(&server, field, &text).await, text);
            assert_eq!(openssl.subject(&text), "subject=CN = root\n", "{text:?}");
        }
        for text in sloppy(&certificate) {
            assert_eq!(stored(&server, field, &text).await, certificate, "{text:?}");
        }
    }
}

#[tokio::test]
async fn openssl_reads_stored_private_keys_of_any_layout() {
    let openssl = Openssl::new();
    let server = Server::reused().await;
    let key = openssl.private_key(P256);
    let public_key = openssl.public_key(&key);
    let sec1 = openssl.run("ec -in key.pem");
    let parameters = openssl.run("ecparam -name prime256v1");
    let sec1_with_parameters = format!("{parameters}{sec1}");
    for text in strict(&key).into_iter().chain([sec1_with_parameters]) {
        assert_eq!(stored(&server, "private_key", &text).await, text);
        assert_eq!(openssl.public_key(&text), public_key, "{text:?}");
    }
    for text in sloppy(&key) {
        assert_eq!(stored(&server, "private_key", &text).await, key, "{text:?}");
    }
    for sloppy in [format!(" {parameters}"), parameters.replace('=', "")] {
        let text = format!("{sloppy}{sec1}");
        assert_eq!(stored(&server, "private_key", &text).await, sec1);
    }
}

#[tokio::test]
async fn openssl_finds_the_certificate_that_the_server_finds() {
    let openssl = Openssl::new();
    let server = Server::reused().await;
    let Identity {
        certificate: first,
        private_key,
    } = openssl.authority(openssl.private_key(P256), &[]);
    let key = openssl.private_key(P256);
    openssl.write("key.pem", &key);
    let second = openssl.run("req -x509 -key key.pem -subj /CN=second");
    openssl.write("second.pem", &second);
    let trusted = openssl.run("x509 -in second.pem -trustout");
    trusted.assert_contains("BEGIN TRUSTED CERTIFICATE");
    let older = first.replace("CERTIFICATE", "X509 CERTIFICATE");
    let unknown = "-----BEGIN X-----\nAQI=\n-----END X-----\n";
    let mismatched = "-----BEGIN X-----\nAQI=\n-----END Y-----\n";
    let unfinished = "-----BEGIN CERTIFICATE-----\nAQI=\n";
    let unpadded = "-----BEGIN PRIVATE KEY-----\nAQI\n-----END PRIVATE KEY-----\n";
    for (text, expected) in [
        (format!("{first}{second}"), None),
        (format!("{private_key}{first}"), None),
        (
            format!(" {first}{second}"),
            Some(format!("{first}{second}")),
        ),
        // Go and rustls ignore the older label.
        (format!("{older}{second}"), Some(format!("{first}{second}"))),
        (format!("{trusted}{first}"), Some(first.clone())),
        (format!("{first}{trusted}"), Some(first.clone())),
        (format!("{unknown}{first}"), Some(first.clone())),
        (format!("{unpadded}{first}"), Some(first.clone())),
        // The server can't check the certificates after a malformed block.
        (format!("{first}{mismatched}{second}"), Some(first.clone())),
        (format!("{first}{unfinished}"), Some(first.clone())),
    ] {
        let value = json!({"ca": text, "certificate": text, "private_key": private_key});
        let response = server.stored("/a", "certificate", value).await;
        for field in ["ca", "certificate"] {
            let stored = response["value"][field].as_str().unwrap();
            assert_eq!(stored, expected.as_ref().unwrap_or(&text));
            assert_eq!(openssl.subject(stored), "subject=CN = root\n", "{text:?}");
        }
    }
}

#[tokio::test]
async fn a_ca_set_in_any_layout_signs() {
    let openssl = Openssl::new();
    let server = Server::reused().await;
    let root = openssl.authority(openssl.private_key(P256), &[]);
    let layouts = sloppy(&root.certificate)
        .into_iter()
        .zip(sloppy(&root.private_key));
    for (certificate, private_key) in layouts {
        let value = json!({"certificate": certificate, "private_key": private_key});
        server.stored("/root", "certificate", value).await;
        let leaf = json!({"ca": "/root", "common_name": "leaf", "key_type": "ed25519"});
        let leaf = server
            .generate_in_mode("overwrite", "/leaf", "certificate", leaf)
            .await;
        let leaf = leaf.expect(200).json();
        let leaf = leaf["value"]["certificate"].as_str().unwrap();
        openssl.assert_verified(&root.certificate, leaf);
    }
}

/// The number of threads for brief plugin calls is limited. Certificates are checked on these threads, and metrics count
/// each check as a call.
#[tokio::test]
async fn certificates_are_checked_in_the_brief_plugin_lane() {
    let openssl = Openssl::new();
    let server = Server::start_with(&Options::default().watched()).await;
    let root = openssl.authority(openssl.private_key(P256), &[]);
    let leaf = openssl.leaf_of(&root, &[]);
    let value = root.value();
    server.stored("/root", "certificate", value).await;
    let mut runs = runs_in_brief_lane(&server).await;
    for (value, more) in [
        (
            json!({"ca": root.certificate, "certificate": leaf.certificate}),
            1.0,
        ),
        (json!({"ca": "malformed"}), 1.0),
        // One check of the certificate alone, and one with the stored CA.
        (
            json!({"ca_name": "/root", "certificate": leaf.certificate}),
            2.0,
        ),
    ] {
        server.set("/leaf", "certificate", value).await;
        let runs_after = runs_in_brief_lane(&server).await;
        assert!(
            (runs_after - runs - more).abs() < 0.5,
            "{runs} {runs_after}"
        );
        runs = runs_after;
    }
}

async fn runs_in_brief_lane(server: &Server) -> f64 {
    let scrape = server.scrape().await;
    let count = scrape.sum(
        "keywright_plugin_queue_wait_seconds_count",
        &[("lane", "brief")],
    );
    count.unwrap_or_default()
}

// Generated certificates can be set and imported again.

/// The limit of a value, in bytes of JSON.
const VALUE_BYTES_MAX: usize = 65_536;

/// The maximum processor time of a request, exceeded only if the time is not linear in the size.
const TIME_MAX: Duration = Duration::from_secs(20);

fn parameters(signer: &Value, names: usize) -> Value {
    let names: Vec<_> = (0..names)
        .map(|number| format!("host-{number:05}.example"))
        .collect();
    let mut parameters = json!({
        "common_name": "large", "key_type": "ed25519", "alternative_names": names,
    });
    let fields = signer.as_object().unwrap().clone();
    parameters.as_object_mut().unwrap().extend(fields);
    parameters
}

/// Generates the certificate with the most alternative names that the server accepts.
async fn generate_largest(server: &Server, name: &str, signer: &Value) -> Value {
    let (mut accepted, mut refused) = (1, 4_096);
    let mut largest = Value::Null;
    while accepted + 1 < refused {
        let names = usize::midpoint(accepted, refused);
        let response = server
            .generate_in_mode("overwrite", name, "certificate", parameters(signer, names))
            .await;
        if response.status == 200 {
            (accepted, largest) = (names, response.json());
        } else {
            response.expect(413).error();
            refused = names;
        }
    }
    let bytes = largest["value"].to_string().len();
    assert!(
        (VALUE_BYTES_MAX - 100..=VALUE_BYTES_MAX).contains(&bytes),
        "{bytes}"
    );
    largest
}

#[tokio::test]
async fn the_largest_generated_certificates_can_be_set() {
    let server = Server::reused().await;
    let root = json!({"common_name": "root", "is_ca": true, "key_type": "ed25519"});
    server.generated("/root", "certificate", root).await;
    let leaf = generate_largest(&server, "/leaf", &json!({"ca": "/root"})).await;
    let lone = generate_largest(&server, "/lone", &json!({"self_sign": true})).await;
    let authority = generate_largest(&server, "/authority", &json!({"is_ca": true})).await;
    for (name, made) in [
        ("/leaf", &leaf),
        ("/lone", &lone),
        ("/authority", &authority),
    ] {
        let before = server.processor_time();
        let stored = server.set(name, "certificate", made["value"].clone()).await;
        assert_eq!(stored.expect(200).json()["value"], made["value"], "{name}");
        let used = server.processor_time().saturating_sub(before);
        assert!(used < TIME_MAX, "{name}: {used:?}");
    }
    let by_name = json!({
        "ca_name": "/root",
        "certificate": leaf["value"]["certificate"],
        "private_key": leaf["value"]["private_key"],
    });
    let stored = server.stored("/leaf", "certificate", by_name).await;
    assert_eq!(stored["value"], leaf["value"]);

    let shell = Shell::of(&server);
    shell.run("export --file all.yml").expect(0);
    let target = Server::reused().await;
    let file = shell.file("all.yml");
    Shell::of(&target)
        .run(&["import", file.to_str().unwrap()])
        .expect(0);
    for (name, made) in [
        ("/leaf", &leaf),
        ("/lone", &lone),
        ("/authority", &authority),
    ] {
        let stored = target.get_json(&format!("/api/v1/data?name={name}")).await;
        assert_eq!(stored["data"][0]["value"], made["value"], "{name}");
        target.regenerated(name).await;
    }
}

#[tokio::test]
async fn a_certificate_beyond_the_limit_of_a_value_is_413() {
    let server = Server::reused().await;
    let root = json!({"common_name": "root", "is_ca": true, "key_type": "ed25519"});
    let root = server.generated("/root", "certificate", root).await;
    let certificate = root["value"]["certificate"].as_str().unwrap();
    for field in ["ca", "certificate"] {
        let value =
            |text: &str| json!({"ca": null, "certificate": null, "private_key": null, field: text});
        let frame = value(certificate).to_string().len();
        let longest = format!("{certificate}{}", "x".repeat(VALUE_BYTES_MAX - frame));
        server.stored("/a", "certificate", value(&longest)).await;
        let too_long = value(&format!("{longest}x"));
        let response = server.set("/a", "certificate", too_long).await;
        response.expect(413).error();
        // The size is checked before the field is parsed.
        let garbage = json!({field: "x".repeat(VALUE_BYTES_MAX + 1)});
        let response = server.set("/a", "certificate", garbage).await;
        response.expect(413).error();
        assert_eq!(server.versions("/a").await.len(), 1);
        server.delete("/api/v1/data?name=/a").await.expect(204);
    }
}
