//! The identity of an accepted certificate, and its precedence relative to tokens.

use std::time::{Duration, SystemTime};

use keywright_harness::{Options, Server, TestCertificate, Text, until_some};
use rcgen::ExtendedKeyUsagePurpose::{Any, ClientAuth, CodeSigning, ServerAuth};
use reqwest::Method;

use super::{
    ACCEPTED, ACTOR, Caller, Connection, Expected, OTHER_UNIT, UNIT, VERSIONS, another_client,
    assert_result, authority_and_server,
    issued::{Contents, Holder, Issuing},
    logged_actor, server_trusting_with,
};
use crate::{audit::events_of, given};

const NO_IDENTITY: Expected = Expected::Unauthenticated("no valid identity");
const NOT_FOR_CLIENTS: Expected = Expected::Unauthenticated("not meant for client use");

#[tokio::test]
async fn the_actor_is_the_organizational_unit_of_the_form_app_uuid() {
    let (authority, server) = authority_and_server().await;
    for (what, units) in [
        ("alone", &[&[UNIT][..]][..]),
        (
            "first of several names",
            &[&[UNIT], &["space:s"], &["organization:o"]],
        ),
        (
            "last of several names",
            &[&["organization:o"], &["space:s"], &[UNIT]],
        ),
        (
            "in one name of several values",
            &[&["organization:o", "space:s", UNIT]],
        ),
        ("the same unit twice", &[&[UNIT], &[UNIT]]),
        ("next to a similar unit", &[&["app:x"], &[UNIT]]),
    ] {
        let holder = authority.issue(&Contents::of_client(units));
        assert_result(&server, what, &holder, ACCEPTED);
    }
}

#[tokio::test]
async fn a_malformed_organizational_unit_is_not_an_identity() {
    let (authority, server) = authority_and_server().await;
    let holder = |units: &[&[&str]]| authority.issue(&Contents::of_client(units));
    for unit in [
        "",
        "app:",
        "app: 0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55",
        "app:0d8c5e9e0a0f4f9d8b1f2c1f0f1d3a55",
        "app:0d8c5e9e00a0f-4f9d-8b1f-2c1f0f1d3a55",
        "app:0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a5\u{666}",
        "space:0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55",
        "0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55",
        "app:0D8C5E9E-0A0F-4F9D-8B1F-2C1F0F1D3A55",
        "APP:0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55",
        // UUIDs of versions 1 and 5.
        "app:0d8c5e9e-0a0f-1f9d-8b1f-2c1f0f1d3a55",
        "app:0d8c5e9e-0a0f-5f9d-8b1f-2c1f0f1d3a55",
        "app:0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55x",
        "app:0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55\nx",
        "app:0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55\0",
        "x app:0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55",
        "o, OU=app:0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55",
    ] {
        assert_result(&server, unit, &holder(&[&[unit]]), NO_IDENTITY);
    }
    let several = Expected::Unauthenticated("more than one identity");
    for (what, units, expected) in [
        ("none", &[][..], NO_IDENTITY),
        (
            "another kind",
            &[&["organization:o", "space:s"][..]],
            NO_IDENTITY,
        ),
        ("in two names", &[&[UNIT], &[OTHER_UNIT]], several),
        ("in one name", &[&[OTHER_UNIT, "space:s", UNIT]], several),
    ] {
        assert_result(&server, what, &holder(units), expected);
    }
    let named = Contents::of_client(&[]).with(|parameters| {
        let name = &mut parameters.distinguished_name;
        name.push(rcgen::DnType::CommonName, UNIT);
    });
    let holder = authority.issue(&named);
    assert_result(&server, "a common name", &holder, NO_IDENTITY);
}

#[tokio::test]
async fn an_organizational_unit_may_be_any_type_of_string() {
    let (authority, server) = authority_and_server().await;
    for (what, tag, expected) in [
        ("UTF8String", 0x0c, ACCEPTED),
        ("PrintableString", 0x13, ACCEPTED),
        ("IA5String", 0x16, ACCEPTED),
        ("TeletexString", 0x14, ACCEPTED),
        ("UniversalString", 0x1c, ACCEPTED),
        ("BMPString", 0x1e, ACCEPTED),
        ("OCTET STRING", 0x04, NO_IDENTITY),
        // The class differs from UTF8String, but not the number.
        ("context-specific [12]", 0x8c, NO_IDENTITY),
    ] {
        let contents = Contents::of_client(&[&[UNIT]]).unit_tag(tag);
        assert_result(&server, what, &authority.issue(&contents), expected);
    }
}

#[tokio::test]
async fn the_extended_key_usage_must_name_client_authentication() {
    let (authority, server) = authority_and_server().await;
    for (what, purposes, expected) in [
        ("client", &[ClientAuth][..], ACCEPTED),
        ("both", &[ServerAuth, ClientAuth], ACCEPTED),
        ("absent", &[], NOT_FOR_CLIENTS),
        ("server", &[ServerAuth], NOT_FOR_CLIENTS),
        ("others", &[CodeSigning, ServerAuth], NOT_FOR_CLIENTS),
        ("any", &[Any], NOT_FOR_CLIENTS),
    ] {
        let contents = Contents::of_client(&[&[UNIT]]).purposes(purposes);
        assert_result(&server, what, &authority.issue(&contents), expected);
    }
    let stranger = Contents::of_client(&[]).purposes(&[ServerAuth]);
    assert_result(
        &server,
        "a server certificate without an identity",
        &authority.issue(&stranger),
        NOT_FOR_CLIENTS,
    );
}

#[tokio::test]
async fn without_a_certificate_and_without_a_token_access_is_denied() {
    let (_, server) = authority_and_server().await;
    for version in VERSIONS {
        let caller = Caller::new(None, version);
        let response = caller.get(&server, "/version", None).unwrap().expect(401);
        assert_eq!(response.error(), "access_denied");
        let response = caller.get(&server, "/version", Some(server.token()));
        let actual = logged_actor(&server, &response.unwrap().expect(200));
        assert_eq!(actual, TOKEN_ACTOR);
    }
}

#[tokio::test]
async fn a_valid_token_takes_precedence_over_a_valid_certificate() {
    let (authority, server) = authority_and_server().await;
    let holder = authority.issue(&Contents::of_client(&[&[UNIT]]));
    for version in VERSIONS {
        let mut connection = Caller::new(Some(&holder), version).connect(&server);
        for (token, actor) in [
            (Some(server.token()), TOKEN_ACTOR),
            (None, ACTOR),
            (Some(server.token()), TOKEN_ACTOR),
        ] {
            let response = connection.get("/version", token).unwrap().expect(200);
            assert_eq!(logged_actor(&server, &response), actor);
        }
    }
}

#[tokio::test]
async fn a_bad_token_is_refused_despite_a_valid_certificate() {
    let (authority, server) = authority_and_server().await;
    let holder = authority.issue(&Contents::of_client(&[&[UNIT]]));
    let caller = Caller::new(Some(&holder), VERSIONS[1]);
    for token in ["x", "", "a.b.c"] {
        let response = caller.get(&server, "/version", Some(token)).unwrap();
        assert_eq!(response.expect(401).error(), "invalid_token", "{token}");
    }
}

#[tokio::test]
async fn a_bad_certificate_is_refused_with_and_without_a_token() {
    let (authority, server) = authority_and_server().await;
    for (contents, words) in [
        (Contents::of_client(&[]), "no valid identity"),
        (Contents::of_client(&[&["app:x"]]), "no valid identity"),
        (
            Contents::of_client(&[&[UNIT, OTHER_UNIT]]),
            "more than one identity",
        ),
        (
            Contents::of_client(&[&[UNIT]]).purposes(&[ServerAuth]),
            "not meant for client use",
        ),
    ] {
        let holder = authority.issue(&contents);
        for version in VERSIONS {
            let caller = Caller::new(Some(&holder), version);
            for token in [Some(server.token()), Some("x"), None] {
                let response = caller.get(&server, "/version", token).unwrap();
                response.expect_error(401, words);
                assert_eq!(given::fields(&response.json()), ["error"]);
                assert_eq!(response.header("www-authenticate"), Some("Bearer"));
                assert_eq!(logged_actor(&server, &response), "");
            }
        }
    }
}

#[tokio::test]
async fn open_paths_stay_open_with_any_certificate() {
    let (authority, server) = authority_and_server().await;
    for contents in [
        Contents::of_client(&[&[UNIT]]),
        Contents::of_client(&[]),
        Contents::of_client(&[&[UNIT]]).purposes(&[ServerAuth]),
    ] {
        let mut connection =
            Caller::new(Some(&authority.issue(&contents)), VERSIONS[1]).connect(&server);
        for path in ["/info", "/health"] {
            connection.get(path, None).unwrap().expect(200);
        }
    }
}

#[tokio::test]
async fn a_certificate_is_checked_before_path_and_method() {
    let (authority, server) = authority_and_server().await;
    for (contents, status) in [
        (Contents::of_client(&[]), 401),
        (Contents::of_client(&[&[UNIT]]), 404),
    ] {
        let holder = authority.issue(&contents);
        let mut connection = Caller::new(Some(&holder), VERSIONS[1]).connect(&server);
        for path in ["/no/such/path", "/api/v1/regenerate"] {
            let response = connection.get(path, None).unwrap();
            response.expect(status);
        }
    }
}

#[tokio::test]
async fn a_client_writes_and_reads_with_its_certificate_over_http_2() {
    let (authority, server) = authority_and_server().await;
    let holder = authority.issue(&Contents::of_client(&[&["organization:o", UNIT]]));
    server.grant("/a", ACTOR, &["read", "write"]).await;
    let client = another_client(&holder);
    let url = format!("{}/api/v1/data", server.base_url());
    let send = |method, url: &str, body: &'static str| {
        let request = client
            .request(method, url)
            .header("content-type", "application/json")
            .body(body);
        server.send(request)
    };
    let set = send(
        Method::PUT,
        &url,
        r#"{"name":"/a","type":"value","value":"v"}"#,
    );
    assert_eq!(logged_actor(&server, &set.await.expect(200)), ACTOR);
    let read = send(Method::GET, &format!("{url}?name=/a"), "").await;
    assert_eq!(read.expect(200).json()["data"][0]["value"], "v");
}

/// The actor of the test server's token.
const TOKEN_ACTOR: &str = "uaa-client:developer";

#[tokio::test]
async fn a_certificate_expiring_on_an_open_connection_is_refused() {
    let (authority, server) = authority_and_server().await;
    let expiring = |soon: SystemTime| {
        let contents = Contents::of_client(&[&[UNIT]]).with(|parameters| {
            parameters.not_after = soon.into();
        });
        authority.issue(&contents)
    };
    expect_refusal_from_expiry(&server, expiring).await;
    let below_expiring_authority = |soon: SystemTime| {
        let middle = authority.authority_with("middle", |parameters| {
            parameters.not_after = soon.into();
        });
        let holder = middle.issue(&Contents::of_client(&[&[UNIT]]));
        holder.sending(&middle)
    };
    expect_refusal_from_expiry(&server, below_expiring_authority).await;
}

async fn expect_refusal_from_expiry(server: &Server, expiring: impl Fn(SystemTime) -> Holder) {
    let (mut open, soon) = connected_for_a_while(server, expiring);
    let refused = until_some("refusal", async || {
        let response = open.get("/version", None).unwrap();
        (response.status != 200).then(|| response.expect(401))
    })
    .await;
    assert!(SystemTime::now() > soon);
    assert!(refused.error().contains("has expired"), "{refused:?}");
}

/// Returns a connection that was used before its certificate or a CA expired, and the time of expiry. If it expires too early
/// on a busy machine, another one with a longer validity is tried.
fn connected_for_a_while(
    server: &Server,
    expiring: impl Fn(SystemTime) -> Holder,
) -> (Connection, SystemTime) {
    for seconds in [3, 10, 40, 160] {
        let soon = SystemTime::now() + Duration::from_secs(seconds);
        let holder = expiring(soon);
        let mut open = Caller::new(Some(&holder), VERSIONS[1]).connect(server);
        match open.get("/version", None) {
            Ok(response) if response.status == 200 => return (open, soon),
            responded => assert!(SystemTime::now() > soon, "{responded:?}"),
        }
    }
    unreachable!("every certificate expired before the first response");
}

// Audit events of callers with certificates.

#[tokio::test]
async fn a_certificate_holder_is_audited_by_organizational_unit() {
    let (authority, server) = authority_and_server().await;
    let holder = authority.issue(&Contents::of_client(&[&[UNIT]]));
    for version in VERSIONS {
        let caller = Caller::new(Some(&holder), version);
        let response = caller
            .get(&server, "/api/v1/data?name=/a", None)
            .unwrap()
            .expect(404);
        let events = events_of(&server, &response);
        assert_eq!(events.len(), 1);
        assert_eq!(events[0]["actor"], ACTOR);
        assert_eq!(events[0]["subject"], UNIT);
        assert_eq!(events[0]["authentication"], "mutual_tls");
    }
}

// A server with client certificates and without token verification.

#[tokio::test]
async fn without_a_provider_or_key_only_certificates_are_accepted() {
    let authority = TestCertificate::root("clients");
    let server = server_trusting_with(&[&authority], Options::default().without_tokens()).await;
    let holder = authority.issue(&Contents::of_client(&[&[UNIT]]));
    assert_result(&server, "a certificate", &holder, ACCEPTED);

    let other = Server::reused().await;
    for token in [other.token(), "x"] {
        let request = server.request(Method::GET, "/version").bearer_auth(token);
        let response = server.send(request).await.expect(401);
        assert_eq!(response.error(), "invalid_token");
        let output = response.json()["error_description"].to_string();
        output.assert_contains("client certificate");
    }
    let information = server.send(server.request(Method::GET, "/info")).await;
    assert_eq!(information.expect(200).json()["auth-server"]["url"], "");
}

#[tokio::test]
async fn certificates_are_accepted_while_the_provider_is_unreachable() {
    let authority = TestCertificate::root("clients");
    let unreachable = Options::default().identity_provider("https://127.0.0.1:1/identity");
    let server = server_trusting_with(&[&authority], unreachable).await;
    let holder = authority.issue(&Contents::of_client(&[&[UNIT]]));
    assert_result(&server, "a certificate", &holder, ACCEPTED);
    let another = Server::reused().await;
    let request = server.request(Method::GET, "/version");
    let response = server.send(request.bearer_auth(another.token())).await;
    response.expect(503);
}
