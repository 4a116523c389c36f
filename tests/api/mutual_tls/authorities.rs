//! The trusted CAs: their validity, servers without them, and the reload of TLS files.

use std::{
    fs, iter,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use keywright_harness::{Options, Server, TestCertificate, Text, der::certificate, key_file};
use rcgen::{CertificateParams, IsCa, date_time_ymd};
use tempfile::TempDir;

use super::{
    ACCEPTED, ACTOR, AUTHORITIES_FILE, Caller, UNIT, UNKNOWN_AUTHORITY, VERSIONS, another_client,
    assert_result, authority_and_server,
    issued::{Contents, Holder, Issuing},
    logged_actor, server_trusting, trust,
};

// The validity of trusted CA certificates.

#[tokio::test]
async fn clients_of_an_expired_or_future_ca_are_refused() {
    let contents = Contents::of_client(&[&[UNIT]]);
    let valid = TestCertificate::root("valid");
    for (what, authority) in [
        ("expired", TestCertificate::root_with("expired", expired)),
        ("not valid yet", TestCertificate::root_with("early", early)),
    ] {
        let server = server_trusting(&[&authority, &valid]).await;
        let warned = |words: &str| {
            let log = server.log();
            let lines = log.lines();
            lines
                .filter(|line| line.contains("\"WARN\"") && line.contains(words))
                .count()
        };
        assert_eq!(warned("\"number\":1,"), 1, "{what}");
        assert_eq!(warned("\"number\":2,"), 0, "{what}");
        assert_result(
            &server,
            what,
            &authority.issue(&contents),
            UNKNOWN_AUTHORITY,
        );
        let middle = authority.below("middle", &[]);
        let below = middle.issue(&contents).sending(&middle);
        assert_result(&server, what, &below, UNKNOWN_AUTHORITY);
        assert_eq!(warned("is not valid now"), 4, "{what}: {}", server.log());
        let good = valid.issue(&contents);
        assert_result(&server, "valid", &good, ACCEPTED);
    }
}

#[tokio::test]
async fn a_ca_with_an_expired_and_a_renewed_certificate_is_trusted() {
    let old = TestCertificate::root_with("clients", expired);
    let new = old.renewed_with(|parameters| parameters.not_after = date_time_ymd(2200, 1, 1));
    let holder = old.issue(&Contents::of_client(&[&[UNIT]]));
    for authorities in [[&old, &new], [&new, &old]] {
        let server = server_trusting(&authorities).await;
        assert_result(&server, "renewed", &holder, ACCEPTED);
    }
}

#[tokio::test]
async fn a_non_ca_certificate_is_refused_at_start_and_on_reload() {
    let authority = TestCertificate::root("clients");
    for not_a_ca in [IsCa::NoCa, IsCa::ExplicitNoCa] {
        let not_a_ca = TestCertificate::root_with("a client", |parameters| {
            parameters.is_ca = not_a_ca;
        });
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("authorities.pem");
        fs::write(&file, authority.certificate.clone() + &not_a_ca.certificate).unwrap();
        let options = Options::default().environment(
            "KEYWRIGHT_SERVER__TLS__CLIENT_AUTHORITIES",
            file.to_str().unwrap(),
        );
        let refusal = Server::refusal(&options);
        refusal.assert_contains("authorities.pem");
        refusal.assert_contains("certificate 2 is not");

        let server = server_trusting(&[&authority]).await;
        trust(server.directory(), &[&not_a_ca]);
        let line = server.reload_tls_files().await;
        line.assert_contains("\"ERROR\"");
        line.assert_contains("certificate 1 is not");
        let holder = authority.issue(&Contents::of_client(&[&[UNIT]]));
        assert_result(&server, "as before", &holder, ACCEPTED);
    }
}

#[tokio::test]
async fn clients_connect_even_if_the_names_of_the_cas_are_long() {
    let authority = TestCertificate::root("clients");
    let others = ["a", "b", "c", "d", "e"].map(|name| TestCertificate::root(&name.repeat(15_000)));
    let authorities: Vec<_> = iter::once(&authority).chain(&others).collect();
    let server = server_trusting(&authorities).await;
    let holder = authority.issue(&Contents::of_client(&[&[UNIT]]));
    assert_result(&server, "long names", &holder, ACCEPTED);
}

fn expired(parameters: &mut CertificateParams) {
    parameters.not_after = date_time_ymd(2021, 1, 1);
}

fn early(parameters: &mut CertificateParams) {
    parameters.not_before = date_time_ymd(2200, 1, 1);
}

// A server without client CAs.

#[tokio::test]
async fn without_client_cas_no_client_certificate_is_requested() {
    let server = Server::reused().await;
    let holder = TestCertificate::root("clients").issue(&Contents::of_client(&[&[UNIT]]));
    for version in VERSIONS {
        // The client would present its certificate if the server requested it.
        let mut connection = Caller::new(Some(&holder), version).connect(&server);
        let response = connection.get("/version", None).unwrap().expect(401);
        assert_eq!(response.error(), "access_denied");
        connection
            .get("/version", Some(server.token()))
            .unwrap()
            .expect(200);
    }
}

#[tokio::test]
async fn without_client_cas_sessions_are_resumed() {
    let server = Server::reused().await;
    for version in VERSIONS {
        let caller = Caller::new(None, version);
        for is_resumed in [false, true] {
            let mut connection = caller.connect(&server);
            connection.get("/health", None).unwrap().expect(200);
            assert_eq!(connection.is_resumed(), is_resumed, "{:?}", version.version);
        }
    }
}

// SIGHUP reloads the TLS files.

#[tokio::test]
async fn reloaded_cas_apply_to_open_connections() {
    let (old, new) = (TestCertificate::root("old"), TestCertificate::root("new"));
    let server = server_trusting(&[&old]).await;
    let contents = Contents::of_client(&[&[UNIT]]);
    let (of_old, of_new) = (old.issue(&contents), new.issue(&contents));
    assert_result(&server, "old, before", &of_old, ACCEPTED);
    assert_result(&server, "new, before", &of_new, UNKNOWN_AUTHORITY);
    for version in VERSIONS {
        trust(server.directory(), &[&old]);
        server.reload_tls_files().await;
        let mut open = Caller::new(Some(&of_old), version).connect(&server);
        open.get("/version", None).unwrap().expect(200);
        let http_2 = another_client(&of_old);
        let over_http_2 = || http_2.get(format!("{}/version", server.base_url())).send();
        assert_eq!(over_http_2().await.unwrap().status(), 200);
        let mut without = Caller::new(None, version).connect(&server);
        without.get("/health", None).unwrap().expect(200);

        trust(server.directory(), &[&new, &old]);
        server.reload_tls_files().await;
        let response = open.get("/version", None).unwrap().expect(200);
        assert_eq!(logged_actor(&server, &response), ACTOR);

        trust(server.directory(), &[&new]);
        let line = server.reload_tls_files().await;
        line.assert_contains("\"INFO\"");
        line.assert_contains("reloaded");

        assert!(open.send("/version", None).is_err());
        assert!(over_http_2().await.is_err());
        without.get("/health", None).unwrap().expect(200);
        assert_result(&server, "old, after", &of_old, UNKNOWN_AUTHORITY);
        assert_result(&server, "new, after", &of_new, ACCEPTED);
    }
}

#[tokio::test]
async fn verification_after_a_reload_does_not_delay_others() {
    let (root, server) = authority_and_server().await;
    let middle = root.below("middle", &[]);
    let holder = middle.issue(&Contents::of_client(&[&[UNIT]]));
    // CAs of the same name can be ordered in many ways, so verifying the chain takes long.
    let others = (0..3).map(|_| TestCertificate::root("middle"));
    let holder = others.fold(holder, |holder, other| holder.sending(&other));
    let slow = Caller::new(Some(&holder.sending(&middle)), VERSIONS[1]);
    let verified = (0..150).map(|_| {
        let mut connection = slow.connect(&server);
        connection.get("/version", None).unwrap().expect(200);
        connection
    });
    let mut verified: Vec<_> = verified.collect();
    let mut other = Caller::new(None, VERSIONS[1]).connect(&server);
    other.get("/health", None).unwrap().expect(200);
    trust(server.directory(), &[&root, &TestCertificate::root("new")]);
    let begun = Instant::now();
    server.reload_tls_files().await;
    let verifying = thread::spawn(move || {
        for connection in &mut verified {
            connection.get("/version", None).unwrap().expect(200);
        }
    });
    let mut longest = Duration::ZERO;
    let mut last = begun;
    while !verifying.is_finished() {
        other.get("/health", None).unwrap().expect(200);
        longest = longest.max(last.elapsed());
        last = Instant::now();
    }
    let took = begun.elapsed();
    assert!(longest < took / 2, "{longest:?} of {took:?}");
}

#[tokio::test]
async fn a_reloaded_certificate_applies_to_new_connections_only() {
    let authority = TestCertificate::root("servers");
    let (first, second) = (
        authority.issue(&Contents::of_server()),
        authority.issue(&Contents::of_server()),
    );
    let server = server_with_own_files().await;
    for version in VERSIONS {
        let trusted = fs::read_to_string(key_file("ca.pem")).unwrap() + &authority.certificate;
        let caller = Caller::trusting(&trusted, None, version);
        write_server_files(server.directory(), &first);
        server.reload_tls_files().await;
        let mut open = caller.connect(&server);
        open.get("/health", None).unwrap().expect(200);
        assert_eq!(*open.server_certificate(), certificate(&first.chain));

        write_server_files(server.directory(), &second);
        server.reload_tls_files().await;
        open.get("/health", None).unwrap().expect(200);
        let mut opened_since = caller.connect(&server);
        opened_since.get("/health", None).unwrap().expect(200);
        assert_eq!(
            *opened_since.server_certificate(),
            certificate(&second.chain)
        );
        assert!(!opened_since.is_resumed());
    }
}

#[tokio::test]
async fn unusable_files_leave_the_previous_cas_in_effect() {
    let (authority, server) = authority_and_server().await;
    let holder = authority.issue(&Contents::of_client(&[&[UNIT]]));
    let file = server.directory().join(AUTHORITIES_FILE);
    for (content, words) in [
        (Some(""), "contains no certificate"),
        (
            Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            "using the client CAs",
        ),
        (None, "reading the client CAs"),
    ] {
        match content {
            Some(content) => fs::write(&file, content).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        let line = server.reload_tls_files().await;
        line.assert_contains("\"ERROR\"");
        line.assert_contains(words);
        line.assert_contains(AUTHORITIES_FILE);
        assert_result(&server, words, &holder, ACCEPTED);
    }
    // Reading a named pipe would wait for a writer.
    let made = Command::new("mkfifo").arg(&file).status().unwrap();
    assert!(made.success());
    let line = server.reload_tls_files().await;
    line.assert_contains("it is not a regular file");
    fs::remove_file(&file).unwrap();
    trust(server.directory(), &[&authority]);
    let line = server.reload_tls_files().await;
    line.assert_contains("\"INFO\"");
    assert_result(&server, "repaired", &holder, ACCEPTED);
}

#[tokio::test]
async fn a_mismatched_key_leaves_key_and_certificate_unchanged() {
    let server = server_with_own_files().await;
    let authority = TestCertificate::root("servers");
    let [one, other] = [(); 2].map(|()| authority.issue(&Contents::of_server()));
    let directory = server.directory();
    for (certificate, key) in [
        (&*one.chain, &*other.key),
        (&one.chain, ""),
        (&one.chain, "a key"),
        ("", &one.key),
        (&one.key, &one.key),
    ] {
        fs::write(directory.join("server.pem"), certificate).unwrap();
        fs::write(directory.join("server-key.pem"), key).unwrap();
        let line = server.reload_tls_files().await;
        line.assert_contains("\"ERROR\"");
        line.assert_contains("server");
        // The client of the harness trusts only the initial certificate.
        let mut connection = Caller::new(None, VERSIONS[1]).connect(&server);
        connection.get("/health", None).unwrap().expect(200);
    }
    let scrape = server.scrape().await;
    let succeeded = scrape.sum("keywright_reload_succeeded", &[("part", "tls")]);
    assert_eq!(succeeded, Some(0.0));
    for key in [one.key, other.key] {
        let secret = key.lines().nth(1).unwrap();
        assert!(!server.log().contains(secret));
    }
}

#[tokio::test]
async fn a_changed_path_is_reported_on_reload() {
    let server = Server::start().await;
    let changed = Options::default().tls_settings("client_authorities = \"other.pem\"");
    server.reload_plugins(&changed).await;
    server
        .until_logged("ignored changed paths in server.tls")
        .await;
}

/// Starts a server whose certificate and key are files in its own folder.
async fn server_with_own_files() -> Server {
    let directory = TempDir::new().unwrap();
    for name in ["server.pem", "server-key.pem"] {
        fs::copy(key_file(name), directory.path().join(name)).unwrap();
    }
    let options = Options::default()
        .watched()
        .environment("KEYWRIGHT_SERVER__TLS__CERTIFICATE", "server.pem")
        .environment("KEYWRIGHT_SERVER__TLS__PRIVATE_KEY", "server-key.pem");
    Server::start_in(directory, &options).await
}

fn write_server_files(directory: &Path, holder: &Holder) {
    fs::write(directory.join("server.pem"), &holder.chain).unwrap();
    fs::write(directory.join("server-key.pem"), &holder.key).unwrap();
}
