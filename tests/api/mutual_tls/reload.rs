//! SIGHUP reloads the TLS files; open connections continue.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs can't be read or written"
)]

use std::{fs, path::Path};

use keywright_harness::{Options, Server, key_file};
use rustls::AlertDescription;
use tempfile::TempDir;

use super::{
    caller::{Caller, VERSIONS},
    expect::{
        ACTOR, AUTHORITIES_FILE, Meets, UNIT, assert_meets, logged_actor, server_knowing, trust,
    },
    issued::{Authority, Contents, Holder},
};

const UNKNOWN_AUTHORITY: Meets = Meets::Alert(AlertDescription::UnknownCA);

#[tokio::test]
async fn reloaded_cas_apply_to_new_connections_only() {
    let (old, new) = (Authority::root("old"), Authority::root("new"));
    let server = server_knowing(&[&old]).await;
    let contents = Contents::of_client(&[&[UNIT]]);
    let (of_old, of_new) = (old.issue(&contents), new.issue(&contents));
    assert_meets(&server, "old, before", &of_old, Meets::Actor(ACTOR));
    assert_meets(&server, "new, before", &of_new, UNKNOWN_AUTHORITY);
    for version in VERSIONS {
        trust(server.directory(), &[&old]);
        server.reload_tls_files().await;
        let mut open = Caller::new(Some(&of_old), version).connect(&server);
        open.get("/version", None).unwrap().expect(200);

        trust(server.directory(), &[&new]);
        let line = server.reload_tls_files().await;
        assert!(
            line.contains("\"INFO\"") && line.contains("reloaded"),
            "{line}"
        );

        let answer = open.get("/version", None).unwrap().expect(200);
        assert_eq!(logged_actor(&server, &answer), ACTOR);
        assert_meets(&server, "old, after", &of_old, UNKNOWN_AUTHORITY);
        assert_meets(&server, "new, after", &of_new, Meets::Actor(ACTOR));
    }
}

#[tokio::test]
async fn a_reloaded_certificate_applies_to_new_connections_only() {
    let authority = Authority::root("servers");
    let (first, second) = (
        authority.issue(&Contents::of_server()),
        authority.issue(&Contents::of_server()),
    );
    let server = server_with_own_files().await;
    for version in VERSIONS {
        let trusted = fs::read_to_string(key_file("ca.pem")).unwrap() + &authority.pem();
        let caller = Caller::trusting(&trusted, None, version);
        present(server.directory(), &first);
        server.reload_tls_files().await;
        let mut open = caller.connect(&server);
        open.get("/health", None).unwrap().expect(200);
        assert_eq!(open.server_certificate(), first.chain[0]);

        present(server.directory(), &second);
        server.reload_tls_files().await;
        open.get("/health", None).unwrap().expect(200);
        let mut opened_since = caller.connect(&server);
        opened_since.get("/health", None).unwrap().expect(200);
        assert_eq!(opened_since.server_certificate(), second.chain[0]);
        assert!(!opened_since.is_resumed());
    }
}

#[tokio::test]
async fn unusable_files_leave_the_previous_ones_active() {
    let authority = Authority::root("clients");
    let server = server_knowing(&[&authority]).await;
    let holder = authority.issue(&Contents::of_client(&[&[UNIT]]));
    let file = server.directory().join(AUTHORITIES_FILE);
    for (content, words) in [
        (Some(""), "contains no certificate"),
        (
            Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            "using the client authorities",
        ),
        (None, "reading the client authorities"),
    ] {
        match content {
            Some(content) => fs::write(&file, content).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        let line = server.reload_tls_files().await;
        assert!(line.contains("\"ERROR\"") && line.contains(words), "{line}");
        assert!(line.contains(AUTHORITIES_FILE), "{line}");
        assert_meets(&server, words, &holder, Meets::Actor(ACTOR));
    }
    trust(server.directory(), &[&authority]);
    let line = server.reload_tls_files().await;
    assert!(line.contains("\"INFO\""), "{line}");
    assert_meets(&server, "mended", &holder, Meets::Actor(ACTOR));
}

#[tokio::test]
async fn a_mismatched_key_leaves_key_and_certificate_unchanged() {
    let server = server_with_own_files().await;
    let authority = Authority::root("servers");
    let [one, other] = [(); 2].map(|()| authority.issue(&Contents::of_server()));
    let directory = server.directory();
    for (certificate, key) in [
        (one.chain_pem(), other.key_pem()),
        (one.chain_pem(), String::new()),
        (one.chain_pem(), "a key".to_owned()),
        (String::new(), one.key_pem()),
        (one.key_pem(), one.key_pem()),
    ] {
        fs::write(directory.join("server.pem"), certificate).unwrap();
        fs::write(directory.join("server-key.pem"), &key).unwrap();
        let line = server.reload_tls_files().await;
        assert!(
            line.contains("\"ERROR\"") && line.contains("server"),
            "{line}"
        );
        // The client of the harness trusts only the initial certificate.
        let mut connection = Caller::new(None, VERSIONS[1]).connect(&server);
        connection.get("/health", None).unwrap().expect(200);
    }
    for key in [one.key_pem(), other.key_pem()] {
        let secret = key.lines().nth(1).unwrap();
        assert!(!server.log().contains(secret));
    }
}

/// A server whose certificate and key are files in its own folder.
async fn server_with_own_files() -> Server {
    let directory = TempDir::new().unwrap();
    for name in ["server.pem", "server-key.pem"] {
        fs::copy(key_file(name), directory.path().join(name)).unwrap();
    }
    let options = Options::default()
        .environment("KEYWRIGHT_SERVER__TLS__CERTIFICATE", "server.pem")
        .environment("KEYWRIGHT_SERVER__TLS__PRIVATE_KEY", "server-key.pem");
    Server::start_in(directory, &options).await
}

fn present(directory: &Path, holder: &Holder) {
    fs::write(directory.join("server.pem"), holder.chain_pem()).unwrap();
    fs::write(directory.join("server-key.pem"), holder.key_pem()).unwrap();
}
