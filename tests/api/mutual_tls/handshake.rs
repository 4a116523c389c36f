//! Certificates that fail the handshake, their alerts, and their metrics.

use std::fs;

use keywright_harness::{Commanded, Options, Server, TestCertificate, Text, key_file};
use rcgen::{
    BasicConstraints, CustomExtension,
    ExtendedKeyUsagePurpose::{Any, ClientAuth, ServerAuth},
    GeneralSubtree, IsCa,
    KeyUsagePurpose::{CrlSign, DigitalSignature, KeyCertSign},
    NameConstraints, date_time_ymd,
};
use rustls::{AlertDescription, Error, version::TLS13};

use super::{
    ACCEPTED, Caller, Expected, OTHER_UNIT, UNIT, UNKNOWN_AUTHORITY, VERSIONS, assert_result,
    authority_and_server,
    issued::{Contents, Holder, Issuing},
    server_trusting, server_trusting_with,
};

// Certificates that fail the handshake, and their alerts.

const CERTIFICATE_UNKNOWN: Expected = Expected::Alert(AlertDescription::CertificateUnknown);

#[tokio::test]
async fn a_certificate_of_an_untrusted_ca_fails_the_handshake() {
    let (authority, server) = authority_and_server().await;
    let contents = Contents::of_client(&[&[UNIT]]);
    let other = TestCertificate::root("others");
    let namesake = TestCertificate::root("clients");
    let key = |name| fs::read_to_string(key_file(name)).unwrap();
    for (what, holder, expected) in [
        ("of the trusted CA", authority.issue(&contents), ACCEPTED),
        ("of another CA", other.issue(&contents), UNKNOWN_AUTHORITY),
        (
            "of another CA, which is sent along",
            other.issue(&contents).sending(&other),
            UNKNOWN_AUTHORITY,
        ),
        ("self-signed", contents.self_signed(), UNKNOWN_AUTHORITY),
        (
            "of the CA that signed the server's certificate",
            Holder {
                chain: key("server.pem"),
                key: key("server-key.pem"),
            },
            UNKNOWN_AUTHORITY,
        ),
        (
            "of another CA of the same name",
            namesake.issue(&contents),
            Expected::Alert(AlertDescription::DecryptError),
        ),
    ] {
        assert_result(&server, what, &holder, expected);
    }
}

#[tokio::test]
async fn an_expired_or_future_certificate_is_certificate_unknown() {
    let (authority, server) = authority_and_server().await;
    let other = TestCertificate::root("others");
    let refused = CERTIFICATE_UNKNOWN;
    for (what, authority, from, until, expected) in [
        ("valid", &authority, 2020, 2200, ACCEPTED),
        ("expired", &authority, 2020, 2021, refused),
        ("expired, of another CA", &other, 2020, 2021, refused),
        ("not valid yet", &authority, 2200, 2201, refused),
        ("expired before it began", &authority, 2200, 2020, refused),
    ] {
        let contents = Contents::of_client(&[&[UNIT]]).with(|parameters| {
            parameters.not_before = date_time_ymd(from, 1, 1);
            parameters.not_after = date_time_ymd(until, 1, 1);
        });
        assert_result(&server, what, &authority.issue(&contents), expected);
    }
}

#[tokio::test]
async fn a_chain_must_be_sent_up_to_a_trusted_ca() {
    let root = TestCertificate::root("clients");
    let middle = root.below("middle", &[]);
    let lower = middle.below("lower", &[]);
    let server = server_trusting(&[&root]).await;
    let contents = Contents::of_client(&[&[UNIT]]);
    for (what, holder, expected) in [
        (
            "one intermediate CA, sent",
            middle.issue(&contents).sending(&middle),
            ACCEPTED,
        ),
        (
            "one intermediate CA, not sent",
            middle.issue(&contents),
            UNKNOWN_AUTHORITY,
        ),
        (
            "two intermediate CAs, both sent",
            lower.issue(&contents).sending(&lower).sending(&middle),
            ACCEPTED,
        ),
        (
            "two intermediate CAs, sent in the wrong order",
            lower.issue(&contents).sending(&middle).sending(&lower),
            ACCEPTED,
        ),
        (
            "two intermediate CAs and the root, all sent",
            lower
                .issue(&contents)
                .sending(&lower)
                .sending(&middle)
                .sending(&root),
            ACCEPTED,
        ),
        (
            "two intermediate CAs, only the lower one sent",
            lower.issue(&contents).sending(&lower),
            UNKNOWN_AUTHORITY,
        ),
        (
            "two intermediate CAs, only the upper one sent",
            lower.issue(&contents).sending(&middle),
            UNKNOWN_AUTHORITY,
        ),
    ] {
        assert_result(&server, what, &holder, expected);
    }
}

#[tokio::test]
async fn an_intermediate_ca_may_be_trusted_alone() {
    let root = TestCertificate::root("root");
    let middle = root.below("middle", &[]);
    let server = server_trusting(&[&middle]).await;
    let contents = Contents::of_client(&[&[UNIT]]);
    let below = middle.issue(&contents);
    assert_result(&server, "below it", &below, ACCEPTED);
    let above = root.issue(&contents);
    assert_result(&server, "above it", &above, UNKNOWN_AUTHORITY);
}

#[tokio::test]
async fn an_intermediate_ca_must_allow_client_authentication() {
    let (root, server) = authority_and_server().await;
    let contents = Contents::of_client(&[&[UNIT]]);
    for (what, purposes, expected) in [
        ("unrestricted", &[][..], ACCEPTED),
        ("for clients", &[ClientAuth], ACCEPTED),
        ("for both", &[ServerAuth, ClientAuth], ACCEPTED),
        ("for any purpose", &[Any], ACCEPTED),
        ("for servers", &[ServerAuth], UNKNOWN_AUTHORITY),
    ] {
        let middle = root.below("middle", purposes);
        let holder = middle.issue(&contents).sending(&middle);
        assert_result(&server, what, &holder, expected);
    }
}

#[tokio::test]
async fn an_intermediate_ca_with_key_usage_must_allow_signing() {
    let (root, server) = authority_and_server().await;
    let contents = Contents::of_client(&[&[UNIT]]);
    for (what, usages, expected) in [
        ("absent", &[][..], ACCEPTED),
        ("certificates", &[KeyCertSign], ACCEPTED),
        ("both", &[KeyCertSign, CrlSign], ACCEPTED),
        ("revocation lists", &[CrlSign], UNKNOWN_AUTHORITY),
        ("handshakes", &[DigitalSignature], UNKNOWN_AUTHORITY),
    ] {
        let middle = root.authority_with("middle", |parameters| {
            parameters.key_usages = usages.to_vec();
        });
        let holder = middle.issue(&contents).sending(&middle);
        assert_result(&server, what, &holder, expected);
    }
}

#[tokio::test]
async fn a_ca_certificate_is_not_a_client_identity() {
    let (root, server) = authority_and_server().await;
    let contents = Contents::of_client(&[&[UNIT]]);
    let as_authority = contents.clone().with(|parameters| {
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    });
    for (what, holder) in [
        ("a trusted CA", root.as_holder()),
        (
            "an intermediate CA",
            root.below("middle", &[ClientAuth]).as_holder(),
        ),
        ("a CA with an identity", root.issue(&as_authority)),
    ] {
        assert_result(&server, what, &holder, CERTIFICATE_UNKNOWN);
    }
}

#[tokio::test]
async fn a_certificate_presented_without_its_key_is_refused() {
    let (authority, server) = authority_and_server().await;
    let contents = Contents::of_client(&[&[UNIT]]);
    let stolen = Holder {
        key: authority.issue(&contents).key,
        ..authority.issue(&contents)
    };
    let refused = Expected::Alert(AlertDescription::DecryptError);
    assert_result(&server, "another key", &stolen, refused);
}

#[tokio::test]
async fn a_client_that_keeps_sending_still_reads_the_alert() {
    let server = server_trusting(&[&TestCertificate::root("clients")]).await;
    let stranger = TestCertificate::root("others").issue(&Contents::of_client(&[&[UNIT]]));
    // In TLS 1.2, a refused client has not completed the handshake and sends nothing.
    let mut connection = Caller::new(Some(&stranger), &TLS13).connect(&server);
    connection.send_regardless(20).unwrap();
    let refused = connection.get("/health", None).unwrap_err();
    assert_eq!(refused, Error::AlertReceived(AlertDescription::UnknownCA));
}

#[tokio::test]
async fn chain_constraints_are_enforced() {
    let (root, server) = authority_and_server().await;
    let contents = Contents::of_client(&[&[UNIT]]);
    let short = root.authority_with("short", |parameters| {
        parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    });
    let too_deep = short.below("too deep", &[]);
    let client = root.authority_with("a client", |parameters| {
        parameters.is_ca = IsCa::ExplicitNoCa;
    });
    let expired = root.authority_with("expired", |parameters| {
        parameters.not_after = date_time_ymd(2021, 1, 1);
    });
    let constrained = root.authority_with("constrained", |parameters| {
        parameters.name_constraints = Some(NameConstraints {
            permitted_subtrees: vec![GeneralSubtree::DnsName("example.org".to_owned())],
            excluded_subtrees: Vec::new(),
        });
    });
    let named = |name: &str| {
        let name = name.to_owned();
        contents.clone().with(|parameters| {
            parameters.subject_alt_names = vec![rcgen::SanType::DnsName(name.try_into().unwrap())];
        })
    };
    let unknown_extension = contents.clone().with(|parameters| {
        let mut extension =
            CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 99999, 1], vec![5, 0]);
        extension.set_criticality(true);
        parameters.custom_extensions = vec![extension];
    });
    for (what, holder, expected) in [
        (
            "the longest path",
            short.issue(&contents).sending(&short),
            ACCEPTED,
        ),
        (
            "a path one too long",
            too_deep.issue(&contents).sending(&too_deep).sending(&short),
            CERTIFICATE_UNKNOWN,
        ),
        (
            "signed by a client",
            client.issue(&contents).sending(&client),
            CERTIFICATE_UNKNOWN,
        ),
        (
            "an expired intermediate CA",
            expired.issue(&contents).sending(&expired),
            CERTIFICATE_UNKNOWN,
        ),
        (
            "a name within the constraints",
            constrained
                .issue(&named("a.example.org"))
                .sending(&constrained),
            ACCEPTED,
        ),
        (
            "a name outside the constraints",
            constrained
                .issue(&named("example.net"))
                .sending(&constrained),
            CERTIFICATE_UNKNOWN,
        ),
        (
            "an unknown critical extension",
            root.issue(&unknown_extension),
            CERTIFICATE_UNKNOWN,
        ),
    ] {
        assert_result(&server, what, &holder, expected);
    }
}

#[tokio::test]
async fn a_trusted_ca_limits_the_length_of_paths() {
    let contents = Contents::of_client(&[&[UNIT]]);
    for (length_max, middle_result) in [(0, CERTIFICATE_UNKNOWN), (1, ACCEPTED)] {
        let root = TestCertificate::root_with("constrained", |parameters| {
            parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(length_max));
        });
        let server = server_trusting(&[&root]).await;
        let middle = root.below("middle", &[]);
        let lower = middle.below("lower", &[]);
        let below_middle = middle.issue(&contents).sending(&middle);
        let below_lower = lower.issue(&contents).sending(&lower).sending(&middle);
        assert_result(&server, "no CA between", &root.issue(&contents), ACCEPTED);
        assert_result(&server, "one CA between", &below_middle, middle_result);
        assert_result(
            &server,
            "two CAs between",
            &below_lower,
            CERTIFICATE_UNKNOWN,
        );
    }
}

#[tokio::test]
async fn a_client_may_send_up_to_6_ca_certificates() {
    let (root, server) = authority_and_server().await;
    let middle = root.below("middle", &[]);
    let contents = Contents::of_client(&[&[UNIT]]);
    for (count, expected) in [(6, ACCEPTED), (7, CERTIFICATE_UNKNOWN)] {
        let holder = middle.issue(&contents).sending(&middle);
        // CAs of the same name could be ordered in many ways.
        let others = (1..count).map(|_| TestCertificate::root("other"));
        let holder = others.fold(holder, |holder, other| holder.sending(&other));
        assert_result(&server, &count.to_string(), &holder, expected);
    }
}

#[tokio::test]
async fn several_cas_are_trusted() {
    let authorities = [
        TestCertificate::root("one"),
        TestCertificate::root("two"),
        TestCertificate::root("one"),
    ];
    let server = server_trusting(&authorities.each_ref()).await;
    for authority in &authorities {
        let holder = authority.issue(&Contents::of_client(&[&[UNIT]]));
        assert_result(&server, "one of several", &holder, ACCEPTED);
    }
}

#[tokio::test]
async fn with_client_cas_no_session_is_resumed() {
    let (authority, server) = authority_and_server().await;
    let holder = authority.issue(&Contents::of_client(&[&[UNIT]]));
    for version in VERSIONS {
        for holder in [Some(&holder), None] {
            let caller = Caller::new(holder, version);
            for _ in 0..3 {
                let mut connection = caller.connect(&server);
                connection.get("/health", None).unwrap().expect(200);
                assert!(!connection.is_resumed());
            }
        }
    }
}

// The handshake with `openssl s_client`.

#[tokio::test]
async fn the_trusted_cas_are_named_to_clients() {
    let authorities = [
        TestCertificate::root("clients"),
        TestCertificate::root("other clients"),
    ];
    let server = server_trusting(&authorities.each_ref()).await;
    for version in OPENSSL_VERSIONS {
        let reported = connect(&server, version);
        let (_, names) = reported
            .split_once("Acceptable client certificate CA names")
            .unwrap();
        let names: Vec<_> = names.lines().skip(1).take(2).collect();
        assert_eq!(names, ["CN = clients", "CN = other clients"], "{reported}");
    }
    let server = Server::reused().await;
    for version in OPENSSL_VERSIONS {
        let reported = connect(&server, version);
        reported.assert_contains("No client certificate CA names sent");
    }
}

const OPENSSL_VERSIONS: [&str; 2] = ["-tls1_2", "-tls1_3"];

/// Connects without a certificate, and returns the program's whole output.
fn connect(server: &Server, version: &str) -> String {
    let address = server.base_url().trim_start_matches("https://");
    let arguments = ["s_client", "-connect", address, version];
    let reported = Commanded::run("openssl", &arguments, "");
    reported.output + &reported.errors
}

// Metrics of mutual TLS failures: in the handshake, and in responses.

#[tokio::test]
async fn each_client_certificate_failure_is_counted_separately() {
    let authority = TestCertificate::root("clients");
    let server = server_trusting_with(&[&authority], Options::default().watched()).await;
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
            TestCertificate::root("others").issue(&contents()),
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
    let actual = scrape.sum(requests, &[("mechanism", "client_certificate")]);
    assert_eq!(actual, Some(6.0));
}
