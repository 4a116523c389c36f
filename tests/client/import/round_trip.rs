//! Round trips from one server to another.

use keywright_harness::{Server, Shell};
use serde_json::{Value, json};
use x509_parser::{certificate::X509Certificate, pem::Pem};

use crate::given;

#[tokio::test]
async fn all_types_of_credentials_survive_a_round_trip() {
    let source = Server::start().await;
    fill(&source).await;
    let expected = given::stored(&source, "").await;
    assert_eq!(expected.as_object().unwrap().len(), STORED);
    for file in ["export.yml", "export.json"] {
        let shell = Shell::of(&source);
        shell.run(&["export", "--file", file]).expect(0);
        let target = Server::start().await;
        let path = shell.file(file);
        let run = Shell::of(&target).run(&["import", path.to_str().unwrap()]);
        let summary: Value = serde_json::from_str(&run.expect(0).output).unwrap();
        assert_eq!(summary["set"], json!(STORED));
        assert_eq!(summary["failed"], json!(0));
        assert_eq!(given::stored(&target, "").await, expected, "{file}");
        regenerates_below_the_imported_authority(&target).await;
    }
}

#[tokio::test]
async fn an_export_can_be_piped_into_an_import() {
    let source = Server::start().await;
    fill(&source).await;
    let target = Server::start().await;
    let exported = Shell::of(&source).run(&["export"]).expect(0).output;
    let run = Shell::of(&target).run_with(&["import", "-", "--output", "json"], &exported);
    run.expect(0);
    assert_eq!(
        given::stored(&target, "").await,
        given::stored(&source, "").await
    );
}

/// Regenerates the leaf of the chain and checks its signer.
async fn regenerates_below_the_imported_authority(server: &Server) {
    let issuer = &given::stored(server, "/chain").await["/chain/inner/2"][1];
    let before = &given::stored(server, "/chain").await["/chain/leaf"][1];
    let leaf = server.regenerate("/chain/leaf").await.expect(200).json();
    let leaf = &leaf["value"];
    assert_ne!(leaf["certificate"], before["certificate"]);
    assert_eq!(leaf["ca"], issuer["certificate"]);
    let (leaf, issuer) = (pem(&leaf["certificate"]), pem(&issuer["certificate"]));
    let (leaf, issuer) = (parsed(&leaf), parsed(&issuer));
    leaf.verify_signature(Some(issuer.public_key())).unwrap();
    assert_eq!(leaf.issuer(), issuer.subject());
}

fn pem(text: &Value) -> Pem {
    let text = text.as_str().unwrap().as_bytes();
    Pem::read(std::io::Cursor::new(text)).unwrap().0
}

fn parsed(pem: &Pem) -> X509Certificate<'_> {
    pem.parse_x509().unwrap()
}

/// The number of credentials that [`fill`] stores.
const STORED: usize = 24;

/// Stores every type, set and generated, a chain of certificates, metadata, and unusual names and values.
async fn fill(server: &Server) {
    let long_name = format!("/{}", "n".repeat(254));
    let key = json!({"private_key": "-----BEGIN-----\nkey\n-----END-----\n"});
    let text = "ssh-rsa AAAAB3NzaC1yc2E= me";
    for (name, credential_type, value) in [
        ("/text/a:b(c)[d]/e.f-g_h", "value", json!("yes")),
        ("/Text/Mixed/CASE", "value", json!("12345678901234567890")),
        ("/true", "password", json!("*not an alias")),
        (&long_name, "password", json!("  a\r\n\tb\n\n")),
        (
            "/007",
            "value",
            json!("\u{0}\u{7f}\u{85}\u{2028}\u{feff}😀é"),
        ),
        ("/json/empty", "json", json!({})),
        (
            "/json/deep",
            "json",
            json!({"": {"<<": [[], {}, [{"a: b": "- c"}]]}, "null": null, "y": "no"}),
        ),
        ("/user/alone", "user", json!({"password": "~"})),
        (
            "/user/both",
            "user",
            json!({"username": "null", "password": "p: q"}),
        ),
        ("/rsa/private", "rsa", key.clone()),
        ("/rsa/public", "rsa", json!({"public_key": "any text"})),
        (
            "/ssh/set",
            "ssh",
            json!({"public_key": text, "private_key": "p"}),
        ),
    ] {
        server.set(name, credential_type, value).await.expect(200);
    }
    for (name, credential_type) in [
        ("/made/password", "password"),
        ("/made/user", "user"),
        ("/made/rsa", "rsa"),
        ("/made/ssh", "ssh"),
    ] {
        let made = server.generate(name, credential_type, json!({}));
        made.await.expect(200);
    }
    for (name, parameters) in [
        ("/chain/root", json!({"is_ca": true})),
        (
            "/chain/inner/1",
            json!({"is_ca": true, "ca": "/chain/root"}),
        ),
        (
            "/chain/inner/2",
            json!({"is_ca": true, "ca": "/chain/inner/1"}),
        ),
        ("/chain/leaf", json!({"ca": "/chain/inner/2"})),
        ("/alone/self-signed", json!({"self_sign": true})),
        ("/another/ca", json!({"is_ca": true})),
    ] {
        given::certificate(server, name, parameters).await;
    }
    let certificate = given::stored(server, "/chain").await["/chain/leaf"][1].clone();
    let value = json!({"ca": certificate["ca"], "certificate": certificate["certificate"]});
    let set = server.set("/alone/without-key", "certificate", value);
    set.await.expect(200);
    let body = r#"{"name":"/json/numbers","type":"json","metadata":{"big":123456789012345678901234567890,"text":"a: b","list":[null]},
        "value":{"big":123456789012345678901234567890,"small":1e-400,"exact":1.10,"zero":-0.0}}"#;
    let request = server.authorized(reqwest::Method::PUT, "/api/v1/data");
    server.send(request.body(body)).await.expect(200);
}
