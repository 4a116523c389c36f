//! A server with client certificates and without token verification.

use keywright_harness::{Options, Server};
use reqwest::Method;

use super::{
    expect::{ACTOR, Meets, UNIT, assert_meets, server_knowing_with},
    issued::{Authority, Contents},
};

#[tokio::test]
async fn without_a_provider_or_key_only_certificates_are_accepted() {
    let authority = Authority::root("clients");
    let server = server_knowing_with(&[&authority], Options::default().without_tokens()).await;
    let holder = authority.issue(&Contents::of_client(&[&[UNIT]]));
    assert_meets(&server, "a certificate", &holder, Meets::Actor(ACTOR));

    let other = Server::start().await;
    for token in [other.token(), "x"] {
        let request = server.request(Method::GET, "/version").bearer_auth(token);
        let answer = server.send(request).await.expect(401);
        assert_eq!(answer.error(), "invalid_token");
        let output = answer.json()["error_description"].to_string();
        assert!(output.contains("client certificate"), "{output}");
    }
    let information = server.send(server.request(Method::GET, "/info")).await;
    assert_eq!(information.expect(200).json()["auth-server"]["url"], "");
}

#[tokio::test]
async fn certificates_are_accepted_while_the_provider_is_away() {
    let authority = Authority::root("clients");
    let away = Options::default().identity_provider("https://127.0.0.1:1/identity");
    let server = server_knowing_with(&[&authority], away).await;
    let holder = authority.issue(&Contents::of_client(&[&[UNIT]]));
    assert_meets(&server, "a certificate", &holder, Meets::Actor(ACTOR));
    let another = Server::start().await;
    let request = server.request(Method::GET, "/version");
    server
        .send(request.bearer_auth(another.token()))
        .await
        .expect(503);
}

#[test]
fn start_fails_without_any_authentication() {
    let log = Server::refusal(&Options::default().without_tokens());
    assert!(log.contains("no authentication is configured"), "{log}");
    assert!(log.contains("server.tls.client_authorities"), "{log}");
}
