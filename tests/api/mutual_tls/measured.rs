//! Metrics of mutual TLS failures: in the handshake, and in responses.

use keywright_harness::Options;
use rcgen::{ExtendedKeyUsagePurpose::ServerAuth, date_time_ymd};

use super::{
    caller::{Caller, VERSIONS},
    expect::{OTHER_UNIT, UNIT, server_knowing_with},
    issued::{Authority, Contents},
};

#[tokio::test]
async fn each_client_certificate_failure_is_counted_separately() {
    let authority = Authority::root("clients");
    let server = server_knowing_with(&[&authority], Options::default().watched()).await;
    let contents = || Contents::of_client(&[&[UNIT]]);
    let expired = contents().with(|parameters| parameters.not_after = date_time_ymd(2021, 1, 1));
    let early = contents().with(|parameters| parameters.not_before = date_time_ymd(2200, 1, 1));
    let several = Contents::of_client(&[&[UNIT], &[OTHER_UNIT]]);
    let handshakes = "keywright_tls_handshake_failures_total";
    let requests = "keywright_authentication_failures_total";
    for (name, reason, holder) in [
        (
            handshakes,
            "client_certificate_issuer_unknown",
            Authority::root("others").issue(&contents()),
        ),
        (
            handshakes,
            "client_certificate_expired",
            authority.issue(&expired),
        ),
        (
            handshakes,
            "client_certificate_not_yet_valid",
            authority.issue(&early),
        ),
        (
            requests,
            "no_identity",
            authority.issue(&Contents::of_client(&[&["canary-unit"]])),
        ),
        (requests, "ambiguous", authority.issue(&several)),
        (
            requests,
            "purpose",
            authority.issue(&contents().purposes(&[ServerAuth])),
        ),
    ] {
        for version in VERSIONS {
            // Another test checks the client's result.
            let _ = Caller::new(Some(&holder), version).get(&server, "/version", None);
        }
        let scrape = server
            .scrape_until(|scrape| scrape.sum(name, &[("reason", reason)]) == Some(2.0))
            .await;
        assert!(!scrape.text().contains("canary-unit"));
    }
    let scrape = server.scrape().await;
    assert_eq!(scrape.sum(handshakes, &[]), Some(6.0));
    assert_eq!(
        scrape.sum(requests, &[("mechanism", "client_certificate")]),
        Some(6.0)
    );
}
