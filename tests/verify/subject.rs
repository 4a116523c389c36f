//! Subjects come out as they went in, with no injected attribute.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Server, is_available};
use serde_json::{Value, json};

use crate::files::{Files, certificate, openssl};

/// The attributes of a name, one a line, unescaped, in their order in the certificate.
fn attributes(version: &Value, which: &str) -> Vec<String> {
    let files = Files::new();
    let file = files.write_member("certificate", version, "certificate");
    let text = openssl(&[
        "x509",
        "-in",
        &file,
        "-noout",
        which,
        "-nameopt",
        "sep_multiline,sname,utf8",
    ]);
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some(format!("{}=", which.trim_start_matches('-')).as_str())
    );
    lines
        .map(|line| line.strip_prefix("    ").unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn attributes_stand_in_the_specified_order() {
    if !is_available("openssl") {
        return;
    }
    let server = Server::start().await;
    let parameters = json!({
        "locality": "Graz",
        "organization": "Example",
        "state": "Styria",
        "country": "AT",
        "organization_unit": "Unit",
        "common_name": "name",
        "is_ca": true,
    });
    let root = certificate(&server, "/root", parameters).await;
    let expected = [
        "CN=name",
        "OU=Unit",
        "C=AT",
        "ST=Styria",
        "O=Example",
        "L=Graz",
    ];
    assert_eq!(attributes(&root, "-subject"), expected);
    assert_eq!(attributes(&root, "-issuer"), expected);
    let leaf = certificate(
        &server,
        "/leaf",
        json!({"common_name": "leaf", "ca": "/root"}),
    )
    .await;
    assert_eq!(attributes(&leaf, "-subject"), ["CN=leaf"]);
    assert_eq!(attributes(&leaf, "-issuer"), expected);
}

#[tokio::test]
async fn special_texts_come_out_as_they_went_in_and_inject_nothing() {
    if !is_available("openssl") {
        return;
    }
    let server = Server::start().await;
    let longest = "x".repeat(64);
    let longest_non_ascii = "ß".repeat(64);
    for text in [
        "comma, O=Injected",
        "plus + O=Injected",
        "semicolon; O=Injected",
        "#0403020101",
        "\"quoted\"",
        "back\\slash",
        "equals = sign",
        "<angle>",
        "CN=nested,OU=nested+C=AT",
        "/CN=slashes/O=Injected",
        "Ämter für Ünicode",
        "密钥 ключ 🔑",
        &longest,
        &longest_non_ascii,
    ] {
        let parameters =
            json!({"common_name": text, "organization": text, "is_ca": true, "country": "AT"});
        let root = certificate(&server, "/root", parameters).await;
        let expected = [format!("CN={text}"), "C=AT".to_owned(), format!("O={text}")];
        assert_eq!(attributes(&root, "-subject"), expected);
        let regenerated = server.regenerate("/root").await.expect(200).json();
        assert_eq!(attributes(&regenerated, "-subject"), expected);
        let leaf = json!({"common_name": "leaf", "ca": "/root"});
        let leaf = certificate(&server, "/leaf", leaf).await;
        assert_eq!(attributes(&leaf, "-issuer"), expected);
    }
}

#[tokio::test]
async fn a_subject_that_was_set_comes_out_as_it_went_in_with_every_attribute() {
    if !is_available("openssl") {
        return;
    }
    let server = Server::start().await;
    let files = Files::new();
    let longest = "ß".repeat(64);
    for subject in [
        "/CN=comma\\, O=Injected/O=plus \\+ O=Injected",
        "/CN=#0403020101/O=\"quoted\"",
        "/O=first/OU=one+OU=two+UID=ada/OU=three/DC=org/DC=example/CN=last",
        "/CN=密钥 ключ 🔑/emailAddress=ada@example.org",
        &format!("/O={longest}/CN={longest}"),
    ] {
        let (key, file) = (files.path("key"), files.path("certificate"));
        let (key, file) = (key.to_str().unwrap(), file.to_str().unwrap());
        openssl(&[
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-multivalue-rdn",
            "-utf8",
            "-subj",
            subject,
            "-keyout",
            key,
            "-out",
            file,
        ]);
        let value = json!({"certificate": std::fs::read_to_string(file).unwrap()});
        let set = server
            .set("/a", "certificate", value)
            .await
            .expect(200)
            .json();
        let regenerated = server.regenerate("/a").await.expect(200).json();
        for which in ["-subject", "-issuer"] {
            assert_eq!(
                attributes(&regenerated, which),
                attributes(&set, "-subject"),
                "{subject}"
            );
        }
    }
}
