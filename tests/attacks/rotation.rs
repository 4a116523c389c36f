//! Certificates in the values of other types: an X.509-SVID that a CA signs for a plugin, during rotations of the CA.

use std::fs;

use keywright_harness::{Options, Program, Server, Shell, component, is_available};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A server with `/ca/root`, `/ca/nested` below it, and an SVID of each.
async fn server_with_svids() -> Server {
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\", \"signing\"]",
        component("svid").display()
    );
    let server = Server::start_with(&Options::default().generator(SVID, &section)).await;
    for (name, ca) in [("/ca/root", Value::Null), ("/ca/nested", json!("/ca/root"))] {
        let parameters = json!({
            "common_name": name, "is_ca": true, "ca": ca, "key_type": "ecdsa-p256",
            "key_usage": ["key_cert_sign"],
        });
        let made = server.generate(name, "certificate", parameters).await;
        made.expect(200);
    }
    for (name, ca) in SVIDS {
        let made = server.generate(name, SVID, json!({"ca": ca})).await;
        made.expect(200);
    }
    server
}

/// Returns a field of the active version's value.
async fn field(server: &Server, name: &str, field: &str) -> String {
    let read = server
        .get(&format!("/api/v1/data?current=true&name={name}"))
        .await
        .expect(200)
        .json();
    read["data"][0]["value"][field].as_str().unwrap().to_owned()
}

/// The SVIDs and their intermediate CAs, as users read them at one time.
struct Presented {
    svids: Vec<String>,
    nested: String,
}

impl Presented {
    async fn now(server: &Server) -> Self {
        let mut svids = Vec::new();
        for (name, _) in SVIDS {
            svids.push(field(server, name, "x509_svid").await);
        }
        Self {
            svids,
            nested: field(server, "/ca/nested", "certificate").await,
        }
    }

    /// Returns whether OpenSSL verifies each SVID with these trusted certificates.
    fn verified_by(&self, trusted: &str) -> Vec<bool> {
        let files = TempDir::new().unwrap();
        let file = |name: &str, text: &str| {
            let path = files.path().join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let trusted = file("trusted.pem", trusted);
        let nested = file("nested.pem", &self.nested);
        let verified = self.svids.iter().map(|svid| {
            let svid = file("svid.pem", svid);
            let arguments = [
                "verify",
                "-x509_strict",
                "-no-CApath",
                "-CAfile",
                &trusted,
                "-untrusted",
                &nested,
                &svid,
            ];
            Program::run("openssl", &arguments, "").is_success
        });
        verified.collect()
    }
}

#[track_caller]
fn json_of(shell: &Shell, arguments: &[&str]) -> Value {
    serde_json::from_str(&shell.run(arguments).expect(0).output).unwrap()
}

#[tokio::test]
async fn svids_verify_after_each_step_of_a_ca_rotation() {
    if !is_available("openssl") {
        return;
    }
    let server = server_with_svids().await;
    let shell = Shell::of(&server);
    let mut before = Presented::now(&server).await;
    for (step, outstanding, regenerated) in [
        ("introduce", json!([]), json!([])),
        ("switch", json!(["/ca/nested", "/svid/root"]), json!([])),
        (
            "renew",
            json!([]),
            json!(["/ca/nested", "/svid/nested", "/svid/root"]),
        ),
        ("retire", json!([]), json!([])),
    ] {
        let rotate = [
            "certificates",
            "rotate",
            "/ca/root",
            "--next",
            "--bundle",
            "trusted.pem",
        ];
        let report = json_of(&shell, &rotate);
        assert_eq!(report["steps_taken"], json!([step]));
        assert_eq!(report["outstanding"], outstanding, "{step}");
        assert_eq!(report["regenerated_credentials"], regenerated, "{step}");
        let trusted = fs::read_to_string(shell.file("trusted.pem")).unwrap();
        let now = Presented::now(&server).await;
        assert_eq!(now.verified_by(&trusted), [true, true], "{step}");
        // Only the last step breaks clients without the new SVIDs, and its output warns about this.
        if step != "retire" {
            assert_eq!(before.verified_by(&trusted), [true, true], "{step}");
        }
        before = now;
    }
    let root = field(&server, "/ca/root", "certificate").await;
    assert_eq!(before.verified_by(&root), [true, true]);
    for (name, _) in SVIDS {
        assert_eq!(server.versions(name).await.len(), 2, "{name}");
    }
    server.run_command(&["check"]).expect(0);
}

#[tokio::test]
async fn the_record_of_an_svid_matches_openssl() {
    if !is_available("openssl") {
        return;
    }
    let server = server_with_svids().await;
    let listed = server.get("/api/v1/certificates?name=/ca/root").await;
    let listed = listed.expect(200).json()["certificates"][0].take();
    assert_eq!(listed["signs"], json!(["/ca/nested"]));
    let [issued] = listed["issued"].as_array().unwrap().as_slice() else {
        panic!("{listed}")
    };
    let svid = field(&server, "/svid/root", "x509_svid").await;
    let read = |option: &[&str]| {
        let arguments = [&["x509", "-noout"], option].concat();
        Program::run("openssl", &arguments, &svid).expect_success()
    };
    let serial_number = issued["serial_number"].as_str().unwrap();
    assert_eq!(
        read(&["-serial"]).trim().to_lowercase(),
        format!("serial={serial_number}")
    );
    let expiry = read(&["-enddate", "-dateopt", "iso_8601"]);
    let expiry = expiry
        .trim()
        .trim_start_matches("notAfter=")
        .replace(' ', "T");
    assert_eq!(issued["expiry_date"], expiry);
    assert!(read(&["-ext", "subjectAltName"]).contains("URI:spiffe://example.org/workload"));
    assert_eq!(issued["name"], "/svid/root");
    assert_eq!(issued["type"], SVID);
    assert_eq!(issued["issuer_version_id"], listed["versions"][0]["id"]);

    for query in [
        "expires-within-days=2",
        "expires-within-days=2&effective=true",
    ] {
        let found = server.get(&format!("/api/v1/data?path=/&{query}")).await;
        let found = found.expect(200).json();
        let found = found["credentials"].as_array().unwrap();
        let mut names: Vec<_> = found.iter().map(|found| found["name"].as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, [Some("/svid/nested"), Some("/svid/root")], "{query}");
        let dates = found.iter().filter(|found| found["expiry_date"] == expiry);
        assert!(dates.count() >= 1, "{query}");
    }
    let all = server.get("/api/v1/certificates").await.expect(200).json();
    let all = all["certificates"].as_array().unwrap();
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|listed| listed.get("issued").is_none()));
}

#[tokio::test]
async fn an_svid_is_bulk_regenerated_and_converges_with_its_ca() {
    let server = server_with_svids().await;
    let dry = json!({"signed_by": "/ca/nested", "dry_run": true});
    let dry = server
        .post("/api/v1/bulk-regenerate", dry)
        .await
        .expect(200);
    assert_eq!(
        dry.json()["regenerated_credentials"],
        json!(["/svid/nested"])
    );
    let made = server.bulk_regenerate("/ca/nested").await.expect(200);
    assert_eq!(
        made.json()["regenerated_credentials"],
        json!(["/svid/nested"])
    );
    assert_eq!(server.versions("/svid/nested").await.len(), 2);

    server.regenerate("/ca/root").await.expect(200);
    for _ in 0..2 {
        let converged = server
            .generate("/svid/root", SVID, json!({"ca": "/ca/root"}))
            .await;
        converged.expect(200);
        assert_eq!(server.versions("/svid/root").await.len(), 2);
    }
    let bundle = field(&server, "/svid/root", "bundle").await;
    assert_eq!(bundle, field(&server, "/ca/root", "certificate").await);

    // Credentials signed by another CA meanwhile belong only there.
    let moved = server
        .generate("/svid/root", SVID, json!({"ca": "/ca/nested"}))
        .await;
    moved.expect(200);
    let made = server.bulk_regenerate("/ca/root").await.expect(200).json();
    let names = json!(["/ca/nested", "/svid/nested", "/svid/root"]);
    assert_eq!(made["regenerated_credentials"], names);
    let listed = server.get("/api/v1/certificates?name=/ca/root").await;
    assert_eq!(
        listed.expect(200).json()["certificates"][0].get("issued"),
        None
    );

    // Without the plugin, nothing can be generated: the response names the credential.
    let log = server.reload_plugins(&Options::default()).await;
    assert!(log.contains("reloaded the plugins"), "{log}");
    let refused = server.bulk_regenerate("/ca/root").await.expect(400);
    assert!(refused.error().contains("/svid/"), "{}", refused.error());
    assert_eq!(server.versions("/ca/nested").await.len(), 2);
}

#[tokio::test]
async fn an_unreadable_svid_is_named_and_blocks_the_rotation() {
    let server = server_with_svids().await;
    let caller = server.as_client("rotator").await;
    server
        .grant("/ca/*", caller.actor(), &["read", "write"])
        .await;
    let listed = caller.get("/api/v1/certificates?name=/ca/root").await;
    let listed = listed.expect(200).json();
    assert_eq!(
        listed["certificates"][0]["issued"],
        json!([{"name": "/svid/root"}])
    );
    let bulk = json!({"signed_by": "/ca/root"});
    caller
        .post("/api/v1/bulk-regenerate", bulk)
        .await
        .expect(403);

    let own = Shell::of(&server);
    for _ in 0..2 {
        json_of(&own, &["certificates", "rotate", "/ca/root", "--next"]);
    }
    let shell = Shell::at(&server).variable("KEYWRIGHT_CLIENT_TOKEN", caller.token());
    let stuck = shell.run(&["certificates", "rotate", "/ca/root", "--status"]);
    assert!(stuck.errors.contains("/svid/root"), "{stuck:?}");
    assert_eq!(server.versions("/svid/root").await.len(), 1);
}

/// The type of SVIDs. It sorts before `certificate`, so that the order of types is not the order of signing.
const SVID: &str = "app-svid";

/// The SVIDs and their CAs.
const SVIDS: [(&str, &str); 2] = [("/svid/root", "/ca/root"), ("/svid/nested", "/ca/nested")];
