//! The pages of CAs and certificates, and downloads.

use keywright_harness::{Commanded, TestCertificate, Text, field};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    attacks::without_own_script,
    browser::{Browser, GUEST, GUEST_ACTOR, between},
    events,
    external::alternative_names,
    server, session,
};

pub(crate) const CERTIFICATES: &str = "/console/certificates";

#[tokio::test]
async fn the_forest_shows_the_cas_and_what_they_signed() {
    let (server, mut browser) = session().await;
    server.generate_authority("/root", None).await;
    let inner = server.generate_authority("/team/inner", Some("/root"));
    inner.await;
    server.generate_leaf("/team/web", "/team/inner").await;
    server.generate_authority("/other", None).await;
    server.regenerate_as_transitional("/other").await;
    let page = browser.page(CERTIFICATES).await.body;
    let (tree, graph) = page.split_once("<svg").unwrap();
    let positions = [
        "/other<",
        "in rotation",
        "/root<",
        "/team/inner<",
        "/team/web<",
    ]
    .map(|text| {
        tree.find(&format!(">{text}"))
            .unwrap_or_else(|| panic!("{text}: {tree}"))
    });
    assert!(positions.is_sorted(), "{positions:?}: {tree}");
    let below = between(tree, ">/root</a>", "</details>").unwrap();
    below.assert_contains("<bdi>CN=/team/inner</bdi>");
    for expected in [
        "/root",
        "/team/inner",
        "in rotation",
        "signed 1 credential",
        "<path",
        "<desc",
    ] {
        graph.assert_contains(expected);
    }
    let certificate = browser.page("/console/certificate?name=/root").await.body;
    certificate.assert_contains("href=\"/console/credential?name=%2Fteam%2Finner\"");
    let credential = browser.get("/console/credential?name=/root").await.body;
    credential.assert_contains("href=\"/console/certificate?name=%2Froot\"");
}

#[tokio::test]
async fn only_readable_cas_are_in_the_forest() {
    let server = server().await;
    let mut browser = Browser::logged_in(&server, GUEST).await;
    server.generate_authority("/hidden/root", None).await;
    let inner = server.generate_authority("/team/inner", Some("/hidden/root"));
    inner.await;
    server.generate_leaf("/hidden/web", "/team/inner").await;
    let nothing = browser.page(CERTIFICATES).await.body;
    nothing.assert_contains("There is no CA here that you may read.");
    for path in [
        "certificate",
        "certificate/rotation",
        "certificate/download",
    ] {
        let path = |name| format!("/console/{path}?name={name}&part=certificate");
        let hidden = browser.refused(404, &path("/hidden/root")).await;
        let absent = browser.refused(404, &path("/absent")).await;
        assert_eq!(hidden.body, absent.body, "{hidden:?}");
    }
    server.grant("/team/*", GUEST_ACTOR, &["read"]).await;
    // Without the permission to read its signer, a CA is the first of a tree.
    let page = browser.page(CERTIFICATES).await.body;
    page.assert_contains("/team/inner</a>");
    page.assert_lacks("/hidden/root");
    // A user who may read a CA sees the names of the credentials that it signed, but no details.
    page.assert_contains("/hidden/web <span class=\"detail\">(you may not read it)");
    let page = browser
        .page("/console/certificate?name=/team/inner")
        .await
        .body;
    page.assert_contains("/hidden/web</th><td colspan=\"2\">You may not read this credential");
    let chain = "/console/certificate/download?name=/team/inner&part=chain";
    let chain = browser.page(chain).await;
    assert_eq!(chain.body.matches("BEGIN CERTIFICATE").count(), 2);
}

#[tokio::test]
async fn the_page_of_a_certificate_shows_all_of_its_contents() {
    let (server, mut browser) = session().await;
    let root = json!({"common_name": "root", "is_ca": true, "duration": 10, "key_usage": ["key_cert_sign", "crl_sign"]});
    server.generated("/root", "certificate", root).await;
    let leaf = json!({
        "common_name": "web", "organization": "a, b", "ca": "/root", "duration": 365,
        "alternative_names": ["web.example", "10.0.0.1"], "key_usage": ["digital_signature"],
        "extended_key_usage": ["server_auth"], "key_type": "ecdsa-p256",
    });
    let leaf = server.generated("/web", "certificate", leaf).await;
    let file = TempDir::new().unwrap();
    let path = file.path().join("web.pem");
    std::fs::write(&path, field(&leaf, "certificate")).unwrap();
    let printed = |options: &str| {
        let command = format!("x509 -in {} -noout {options}", path.display());
        let printed = Commanded::run("openssl", &command, "").expect(0).output;
        let (_, value) = printed.trim().split_once('=').unwrap();
        value.replace(':', "").to_lowercase()
    };
    let serial = printed("-serial");
    let fingerprint = printed("-fingerprint -sha256");
    let page = browser.page("/console/certificate?name=/web").await.body;
    for expected in [
        "CN=web",
        "O=a\\, b",
        "CN=root",
        &serial,
        &fingerprint,
        "Effective expiry",
        "in 9 days",
        "EC, curve prime256v1, 256 bits",
        "sha256WithRSAEncryption",
        "DNS: web.example",
        "IP: 10.0.0.1",
        "digital_signature, server_auth",
        "not a CA",
        "Authority key id",
        leaf["expiry_date"].as_str().unwrap(),
    ] {
        page.assert_contains(expected);
    }
    page.assert_lacks("PRIVATE KEY");
    let page = browser.page("/console/certificate?name=/root").await.body;
    for expected in [
        "RSA, 2048 bits",
        "a CA without a path length constraint",
        "key_cert_sign, crl_sign",
    ] {
        page.assert_contains(expected);
    }
    page.assert_lacks("Effective expiry");
    server.set_value("/text", "v").await;
    browser
        .refused(404, "/console/certificate?name=/text")
        .await;
}

#[tokio::test]
async fn each_version_of_a_certificate_has_a_page() {
    let (server, mut browser) = session().await;
    let first = server.generate_authority("/ca", None).await;
    for _ in 0..14 {
        server.regenerated("/ca").await;
    }
    let complete = browser.get("/console/certificate?name=/ca").await.body;
    complete.assert_lacks("Older versions are not shown.");
    let id = first["id"].as_str().unwrap();
    let path = format!("/console/certificate?name=/ca&version={id}");
    complete.assert_contains(&path.replace("/ca", "%2Fca").replace('&', "&amp;"));
    let older = browser.page(&path).await.body;
    older.assert_contains("Older version<");
    older.assert_lacks("Active version<");
    server.regenerate_as_transitional("/ca").await;
    let current = browser.get("/console/certificate?name=/ca").await.body;
    for expected in [
        "Active version<",
        "Transitional version<",
        "Older versions are not shown.",
    ] {
        current.assert_contains(expected);
    }
    // A version of another certificate, and a malformed id.
    server.generate_authority("/other", None).await;
    for version in [id, "none"] {
        let path = format!("/console/certificate?name=/other&version={version}");
        browser.get(&path).await.expect(404);
    }
}

#[tokio::test]
async fn openssl_verifies_downloaded_files() {
    let (server, mut browser) = session().await;
    server.generate_authority("/team/root", None).await;
    let inner = server.generate_authority("/inner", Some("/team/root"));
    inner.await;
    server.generate_leaf("/web", "/inner").await;
    server.regenerate_as_transitional("/team/root").await;
    let folder = TempDir::new().unwrap();
    let mut files = Vec::new();
    for (name, part, file_name, count) in [
        ("/team/root", "trusted", "keywright-root-trusted.pem", 2),
        ("/web", "chain", "keywright-web-chain.pem", 3),
        ("/web", "certificate", "keywright-web-certificate.pem", 1),
        ("/web", "ca", "keywright-web-ca.pem", 1),
        // The active version, not the transitional one.
        (
            "/team/root",
            "certificate",
            "keywright-root-certificate.pem",
            1,
        ),
        ("/team/root", "ca", "keywright-root-ca.pem", 1),
        ("/team/root", "chain", "keywright-root-chain.pem", 1),
    ] {
        let path = format!("/console/certificate/download?name={name}&part={part}");
        let response = browser.page(&path).await;
        let disposition = format!("attachment; filename=\"{file_name}\"");
        assert_eq!(response.header("content-disposition"), Some(&*disposition));
        let actual = response.header("content-type");
        assert_eq!(actual, Some("application/x-pem-file"));
        assert_eq!(response.header("cache-control"), Some("no-store"));
        let actual = response.body.matches("BEGIN ").count();
        assert_eq!(actual, count, "{response:?}");
        response.assert_lacks("PRIVATE KEY");
        let path = folder.path().join(file_name);
        std::fs::write(&path, &response.body).unwrap();
        files.push(path.to_str().unwrap().to_owned());
    }
    let [trusted, chain, certificate, ca, active @ ..] = &files[..] else {
        panic!("{files:?}")
    };
    let of_root = active.iter().map(|root| (root, ca));
    for (trusted, untrusted) in [(trusted, chain), (trusted, ca)].into_iter().chain(of_root) {
        let command = format!("verify -CAfile {trusted} -untrusted {untrusted} {certificate}");
        Commanded::run("openssl", &command, "").expect(0);
    }
    let downloads = events(&server, "DOWNLOAD");
    assert_eq!(downloads[0]["resource_name"], "/team/root");
    assert_eq!(downloads[0]["operation"], "read");
    assert_eq!(downloads[0]["request_details"], json!({"part": "trusted"}));
    server.set_value("/text", "v").await;
    let ca_only = json!({"ca": TestCertificate::root("root").certificate});
    server.stored("/ca-only", "certificate", ca_only).await;
    for (name, part) in [
        ("/web", "trusted"),
        ("/web", "private_key"),
        ("/web", ""),
        ("/absent", "ca"),
        ("/text", "certificate"),
        ("/ca-only", "chain"),
    ] {
        let path = format!("/console/certificate/download?name={name}&part={part}");
        browser.get(&path).await.expect(404);
    }
}

#[tokio::test]
async fn no_page_contains_a_key_that_is_in_the_text_of_a_certificate() {
    let (server, mut browser) = session().await;
    let root = TestCertificate::root("root");
    let text = format!("{}{}", root.private_key, root.certificate);
    let value = json!({"certificate": text, "ca": text});
    server.stored("/root", "certificate", value).await;
    for page in ["credential", "certificate"] {
        let page = browser.page(&format!("/console/{page}?name=/root")).await;
        page.assert_lacks("PRIVATE KEY");
    }
    for part in ["certificate", "ca", "chain", "trusted"] {
        let path = format!("/console/certificate/download?name=/root&part={part}");
        let response = browser.page(&path).await;
        let actual = response.body.replace("\r\n", "\n");
        assert_eq!(actual, root.certificate.replace("\r\n", "\n"), "{part}");
    }
}

#[tokio::test]
async fn stored_scripts_in_certificates_are_text() {
    let (server, mut browser) = session().await;
    let script = "\"'><script>alert(1)</script>";
    let root = TestCertificate::root(script);
    let leaf = root.leaf_with(script, |parameters| {
        parameters.subject_alt_names = alternative_names(script, 2);
    });
    let set = |name: &'static str, certificate: &TestCertificate| {
        let value = json!({"certificate": certificate.certificate, "ca": root.certificate});
        server.set(name, "certificate", value)
    };
    set("/root", &root).await.expect(200);
    set("/leaf", &leaf).await.expect(200);
    for path in [
        CERTIFICATES,
        "/console/certificate?name=/root",
        "/console/certificate?name=/leaf",
        "/console/certificate/rotation?name=/root",
        "/console/certificates?from=%22%27%3E%3Cscript%3E",
        "/console/certificate?name=%22%27%3E%3Cscript%3E",
        "/console/certificate?name=/root&page=%22%27%3E%3Cscript%3E&version=%3Cscript%3E",
        "/console/certificate/download?name=%3Cscript%3E&part=%3Cscript%3E",
        "/console/certificate/rotation?name=/root&taken=%3Cscript%3E",
        "/console/expiring?within-days=%3Cscript%3E&page=%3Cscript%3E",
    ] {
        let page = without_own_script(&browser.get(path).await.body);
        page.assert_lacks("<script");
        page.assert_lacks("\"'>");
    }
    let page = browser.get("/console/certificate?name=/leaf").await.body;
    page.assert_contains("DNS: &quot;'&gt;&lt;script&gt;");
}

#[tokio::test]
async fn reading_a_certificate_is_audited() {
    let (server, mut browser) = session().await;
    server.generate_authority("/ca", None).await;
    let id = server.newest("/ca").await["id"].clone();
    for (path, action) in [
        (CERTIFICATES, "GET_ALL_CERTIFICATES"),
        ("/console/certificate?name=/ca", "VIEW"),
        (
            "/console/certificate/download?name=/ca&part=certificate",
            "DOWNLOAD",
        ),
    ] {
        browser.page(path).await;
        let read = events(&server, action);
        let is_read = read.iter().any(|event| {
            event["resource_name"] == "/ca"
                && event["version_id"] == id
                && event["operation"] == "read"
        });
        assert!(is_read, "{action}: {read:?}");
    }
    let mut guest = Browser::logged_in(&server, GUEST).await;
    guest
        .refused(
            404,
            "/console/certificate/download?name=/ca&part=certificate",
        )
        .await;
    assert_eq!(events(&server, "DOWNLOAD").last().unwrap()["status"], 404);
}
