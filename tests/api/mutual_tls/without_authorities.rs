//! A server without client CAs, or without usable ones.

use std::fs;

use keywright_harness::{Options, Server, key_file};
use tempfile::TempDir;

use super::{
    caller::{Caller, VERSIONS},
    expect::UNIT,
    issued::{Authority, Contents},
};

#[tokio::test]
async fn no_client_certificate_is_requested() {
    let server = Server::start().await;
    let holder = Authority::root("clients").issue(&Contents::of_client(&[&[UNIT]]));
    for version in VERSIONS {
        // The client would present it if requested.
        let mut connection = Caller::new(Some(&holder), version).connect(&server);
        let answer = connection.get("/version", None).unwrap().expect(401);
        assert_eq!(answer.error(), "access_denied");
        connection
            .get("/version", Some(server.token()))
            .unwrap()
            .expect(200);
    }
}

#[tokio::test]
async fn sessions_are_resumed() {
    let server = Server::start().await;
    for version in VERSIONS {
        let caller = Caller::new(None, version);
        for is_resumed in [false, true] {
            let mut connection = caller.connect(&server);
            connection.get("/health", None).unwrap().expect(200);
            assert_eq!(connection.is_resumed(), is_resumed, "{:?}", version.version);
        }
    }
}

#[test]
fn a_file_without_usable_cas_is_refused_at_start() {
    let directory = TempDir::new().unwrap();
    for (content, words) in [
        (None, "reading the client authorities"),
        (Some(String::new()), "contains no certificate"),
        (Some("authorities".to_owned()), "contains no certificate"),
        (
            Some(fs::read_to_string(key_file("server-key.pem")).unwrap()),
            "contains no certificate",
        ),
        (
            Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned()),
            "using the client authorities",
        ),
        (
            Some("-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n".to_owned()),
            "reading the client authorities",
        ),
        (
            Some("-----BEGIN CERTIFICATE-----\nAAAA\n".to_owned()),
            "reading the client authorities",
        ),
    ] {
        let file = directory.path().join("authorities.pem");
        let _ = fs::remove_file(&file);
        if let Some(content) = &content {
            fs::write(&file, content).unwrap();
        }
        let setting = format!("client_authorities = \"{}\"", file.display());
        let log = Server::refusal(&Options::default().tls_settings(&setting));
        assert!(log.contains(words), "{content:?}: {log}");
        assert!(log.contains("authorities.pem"), "{log}");
    }
}
