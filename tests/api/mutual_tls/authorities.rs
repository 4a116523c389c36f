//! The validity of trusted CA certificates.

use std::fs;

use keywright_harness::{Options, Server};
use rcgen::{CertificateParams, IsCa, date_time_ymd};
use rustls::AlertDescription;
use tempfile::TempDir;

use super::{
    expect::{ACTOR, Meets, UNIT, assert_meets, server_knowing, trust},
    issued::{Authority, Contents},
};

const UNKNOWN_AUTHORITY: Meets = Meets::Alert(AlertDescription::UnknownCA);

#[tokio::test]
async fn clients_of_an_expired_or_future_ca_are_refused() {
    let contents = Contents::of_client(&[&[UNIT]]);
    let valid = Authority::root("valid");
    for (what, authority) in [
        ("expired", Authority::root_with("expired", expired)),
        ("not valid yet", Authority::root_with("early", early)),
    ] {
        let server = server_knowing(&[&authority, &valid]).await;
        let warned = |words: &str| {
            let log = server.log();
            let lines = log.lines();
            lines
                .filter(|line| line.contains("\"WARN\"") && line.contains(words))
                .count()
        };
        assert_eq!(warned("certificate 1 of "), 1, "{what}");
        assert_eq!(warned("certificate 2 of "), 0, "{what}");
        assert_meets(
            &server,
            what,
            &authority.issue(&contents),
            UNKNOWN_AUTHORITY,
        );
        let middle = authority.below("middle", &[]);
        let below = middle.issue(&contents).sending(&middle);
        assert_meets(&server, what, &below, UNKNOWN_AUTHORITY);
        assert_eq!(warned("is not valid now"), 4, "{what}: {}", server.log());
        let good = valid.issue(&contents);
        assert_meets(&server, "valid", &good, Meets::Actor(ACTOR));
    }
}

#[tokio::test]
async fn a_ca_renewed_with_its_key_is_trusted_by_the_valid_copy() {
    let old = Authority::root_with("clients", expired);
    let new = old.renewed_with(|parameters| parameters.not_after = date_time_ymd(2200, 1, 1));
    let holder = old.issue(&Contents::of_client(&[&[UNIT]]));
    for authorities in [[&old, &new], [&new, &old]] {
        let server = server_knowing(&authorities).await;
        assert_meets(&server, "renewed", &holder, Meets::Actor(ACTOR));
    }
}

#[tokio::test]
async fn a_non_ca_certificate_is_refused_at_start_and_on_reload() {
    let authority = Authority::root("clients");
    for no_authority in [IsCa::NoCa, IsCa::ExplicitNoCa] {
        let no_authority = Authority::root_with("a client", |parameters| {
            parameters.is_ca = no_authority;
        });
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("authorities.pem");
        fs::write(&file, authority.pem() + &no_authority.pem()).unwrap();
        let options = Options::default().environment(
            "KEYWRIGHT_SERVER__TLS__CLIENT_AUTHORITIES",
            file.to_str().unwrap(),
        );
        let refusal = Server::refusal(&options);
        assert!(refusal.contains("authorities.pem"), "{refusal}");
        assert!(refusal.contains("certificate 2 is not"), "{refusal}");

        let server = server_knowing(&[&authority]).await;
        trust(server.directory(), &[&no_authority]);
        let line = server.reload_tls_files().await;
        assert!(line.contains("\"ERROR\""), "{line}");
        assert!(line.contains("certificate 1 is not"), "{line}");
        let holder = authority.issue(&Contents::of_client(&[&[UNIT]]));
        assert_meets(&server, "as before", &holder, Meets::Actor(ACTOR));
    }
}

fn expired(parameters: &mut CertificateParams) {
    parameters.not_after = date_time_ymd(2021, 1, 1);
}

fn early(parameters: &mut CertificateParams) {
    parameters.not_before = date_time_ymd(2200, 1, 1);
}
