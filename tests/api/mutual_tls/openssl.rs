//! The handshake with `openssl s_client`.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs can't be read or written"
)]

use std::fs;

use keywright_harness::{Program, Server, is_available};
use rcgen::date_time_ymd;

use super::{
    expect::{OTHER_UNIT, UNIT, server_knowing},
    issued::{Authority, Contents, Holder},
};

#[tokio::test]
async fn the_trusted_cas_are_named_to_clients() {
    if !is_available("openssl") {
        return;
    }
    let authorities = [Authority::root("clients"), Authority::root("other clients")];
    let server = server_knowing(&authorities.each_ref()).await;
    for version in VERSIONS {
        let reported = connect(&server, version, None);
        let (_, names) = reported
            .split_once("Acceptable client certificate CA names")
            .unwrap();
        let names: Vec<_> = names.lines().skip(1).take(2).collect();
        assert_eq!(names, ["CN = clients", "CN = other clients"], "{reported}");
    }
    let server = Server::start().await;
    for version in VERSIONS {
        let reported = connect(&server, version, None);
        assert!(
            reported.contains("No client certificate CA names sent"),
            "{reported}"
        );
    }
}

#[tokio::test]
async fn an_expired_certificate_ends_the_handshake_with_alert_46() {
    if !is_available("openssl") {
        return;
    }
    let authority = Authority::root("clients");
    let server = server_knowing(&[&authority]).await;
    let contents = Contents::of_client(&[&[UNIT], &["space:s", OTHER_UNIT]]);
    let expired = contents
        .clone()
        .with(|parameters| parameters.not_after = date_time_ymd(2021, 1, 1));
    for version in VERSIONS {
        let reported = connect(&server, version, Some(&authority.issue(&contents)));
        assert!(reported.contains("HTTP/1.1 200 OK"), "{reported}");
        assert!(!reported.contains("alert"), "{reported}");
        let reported = connect(&server, version, Some(&authority.issue(&expired)));
        assert!(reported.contains("SSL alert number 46"), "{reported}");
        assert!(!reported.contains("HTTP/1.1"), "{reported}");
    }
}

const VERSIONS: [&str; 2] = ["-tls1_2", "-tls1_3"];

/// Requests the server's health, and returns the program's whole output.
fn connect(server: &Server, version: &str, holder: Option<&Holder>) -> String {
    let address = server.base_url().trim_start_matches("https://");
    let mut arguments = vec!["s_client", "-connect", address, version, "-ign_eof"];
    let file = |name| server.directory().join(name).display().to_string();
    let (chain, key) = (file("client.pem"), file("client-key.pem"));
    if let Some(holder) = holder {
        fs::write(&chain, holder.chain_pem()).unwrap();
        fs::write(&key, holder.key_pem()).unwrap();
        arguments.extend(["-cert", &chain, "-key", &key]);
    }
    let request = "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    let reported = Program::run("openssl", &arguments, request);
    reported.output + &reported.errors
}
