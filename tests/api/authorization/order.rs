//! The order of checks: syntax, then permissions, then everything else.

use keywright_harness::{Options, Server};
use reqwest::Method;
use serde_json::json;

use super::matrix::permission;
use crate::{
    certificates::Certificate,
    given::{generate_certificate, set_value},
};

#[expect(clippy::too_many_lines, reason = "a table of cases")]
#[tokio::test]
async fn a_bad_body_is_reported_before_a_missing_permission() {
    let server = Server::start().await;
    set_value(&server, "/it", "v").await;
    let stranger = server.as_client("stranger").await;
    let certificate = "/api/v1/certificates/7c3b2d1e-0000-4000-8000-000000000000";
    let of = |what: &str| format!("{certificate}/{what}");
    let data = || "/api/v1/data".to_owned();
    for (method, target, body, status) in [
        (Method::PUT, data(), json!({"name": "/it"}), 422),
        (
            Method::PUT,
            data(),
            json!({"name": "/it", "type": "value"}),
            400,
        ),
        (
            Method::PUT,
            data(),
            json!({"name": "/it", "type": "value", "value": ""}),
            400,
        ),
        (
            Method::PUT,
            data(),
            json!({"name": "/it", "type": "value", "value": "v", "x": 1}),
            422,
        ),
        (
            Method::PUT,
            data(),
            json!({"name": "/i t", "type": "value", "value": "v"}),
            400,
        ),
        (
            Method::PUT,
            data(),
            json!({"name": "/it", "type": "user", "value": {}}),
            400,
        ),
        (
            Method::PUT,
            data(),
            json!({"name": "/it", "type": "certificate", "value": {"certificate": "x"}}),
            400,
        ),
        (
            Method::PUT,
            data(),
            json!({"name": "/it", "type": "certificate", "value": {"ca": "x", "ca_name": "/ca"}}),
            400,
        ),
        (Method::POST, data(), json!({"name": "/it"}), 400),
        (
            Method::POST,
            data(),
            json!({"name": "/it", "type": "value"}),
            400,
        ),
        (
            Method::POST,
            data(),
            json!({"name": "/it", "type": "password", "mode": "x"}),
            400,
        ),
        (
            Method::POST,
            data(),
            json!({"name": "/it", "type": "password", "parameters": {"length": 3}}),
            400,
        ),
        (
            Method::POST,
            data(),
            json!({"name": "/it", "type": "certificate", "parameters": {"ca": "/ca"}}),
            400,
        ),
        (
            Method::POST,
            data(),
            json!({"name": "/it", "regenerate": true, "x": 1}),
            400,
        ),
        (
            Method::POST,
            data(),
            json!({"name": "", "regenerate": true}),
            400,
        ),
        (
            Method::POST,
            "/api/v1/regenerate".to_owned(),
            json!({}),
            400,
        ),
        (
            Method::POST,
            "/api/v1/regenerate".to_owned(),
            json!({"name": "/it", "x": 1}),
            422,
        ),
        (
            Method::POST,
            "/api/v1/bulk-regenerate".to_owned(),
            json!({}),
            400,
        ),
        (
            Method::POST,
            "/api/v1/bulk-regenerate".to_owned(),
            json!({"signed_by": "/it", "x": 1}),
            422,
        ),
        (
            Method::POST,
            "/api/v1/interpolate".to_owned(),
            json!([]),
            400,
        ),
        (Method::POST, of("regenerate"), json!({"x": 1}), 422),
        (
            Method::POST,
            of("regenerate"),
            json!({"set_as_transitional": "x"}),
            400,
        ),
        (Method::POST, of("regenerate"), json!({"duration": 0}), 400),
        (
            Method::POST,
            of("regenerate"),
            json!({"duration": 3651}),
            400,
        ),
        (
            Method::POST,
            of("regenerate"),
            json!({"duration": "x"}),
            400,
        ),
        (
            Method::POST,
            of("regenerate"),
            json!({"key_length": 0}),
            400,
        ),
        (
            Method::POST,
            of("regenerate"),
            json!({"key_length": []}),
            400,
        ),
        (
            Method::POST,
            of("regenerate"),
            json!({"key_length": 2048, "duration": "3650"}),
            404,
        ),
        (
            Method::PUT,
            of("update_transitional_version"),
            json!({"version": null, "x": 1}),
            422,
        ),
        (Method::POST, of("versions"), json!({}), 400),
        (
            Method::POST,
            of("versions"),
            json!({"value": {"certificate": "x"}}),
            400,
        ),
        (Method::DELETE, data(), json!(null), 400),
        (Method::GET, data(), json!(null), 400),
        (
            Method::GET,
            format!("{}?name=/it&versions=-1", data()),
            json!(null),
            400,
        ),
    ] {
        let what = format!("{method} {target} {body}");
        let answer = stranger.send(method, &target, body).await;
        assert_eq!(answer.status, status, "{what}: {answer:?}");
    }
}

#[tokio::test]
async fn a_missing_permission_is_reported_before_stored_state() {
    let options = Options::default().extra(&permission(
        "/may/*",
        &["uaa-client:writer".to_owned()],
        &["write"],
    ));
    let server = Server::start_with(&options).await;
    set_value(&server, "/it", "v").await;
    generate_certificate(&server, "/ca", json!({"is_ca": true})).await;
    let writer = server.as_client("writer").await;
    let data = "/api/v1/data";
    let signed = |name: &str| {
        let parameters = json!({"common_name": "c", "ca": "/ca"});
        json!({"name": name, "type": "certificate", "parameters": parameters})
    };
    for (method, target, body, status) in [
        // Another type than the credential's, and one that cannot be regenerated.
        (
            Method::PUT,
            data,
            json!({"name": "/it", "type": "json", "value": {}}),
            403,
        ),
        (
            Method::POST,
            data,
            json!({"name": "/it", "type": "password"}),
            403,
        ),
        (
            Method::POST,
            "/api/v1/regenerate",
            json!({"name": "/it"}),
            403,
        ),
        // Write permission is checked first, then read permission on the CA, then its existence.
        (Method::POST, data, signed("/it"), 403),
        (Method::POST, data, signed("/may/leaf"), 404),
        // Names that do not exist.
        (
            Method::PUT,
            data,
            json!({"name": "/absent", "type": "value", "value": "v"}),
            403,
        ),
        (
            Method::POST,
            data,
            json!({"name": "/absent", "type": "password"}),
            403,
        ),
        (
            Method::POST,
            data,
            json!({"name": "/absent", "regenerate": true}),
            403,
        ),
        (
            Method::POST,
            "/api/v1/regenerate",
            json!({"name": "/absent"}),
            403,
        ),
        (
            Method::POST,
            "/api/v1/regenerate",
            json!({"name": "/may/absent"}),
            404,
        ),
    ] {
        let what = format!("{method} {target} {body}");
        let answer = writer.send(method, target, body).await;
        assert_eq!(answer.status, status, "{what}: {answer:?}");
    }
}

#[tokio::test]
async fn the_first_forbidden_reference_ends_an_interpolation() {
    let options = Options::default().extra(&permission(
        "/readable/*",
        &["uaa-client:reader".to_owned()],
        &["read"],
    ));
    let server = Server::start_with(&options).await;
    set_value(&server, "/readable/text", "canary-of-a-value").await;
    let json = json!({"secret": "canary-of-a-value"});
    server
        .set("/readable/json", "json", json.clone())
        .await
        .expect(200);
    server
        .set("/hidden", "json", json.clone())
        .await
        .expect(200);
    // Few names and many names are read differently.
    let others = (0..16).map(|number| format!("/readable/{number}"));
    let others: Vec<String> = others.collect();
    for name in &others {
        server.set(name, "json", json.clone()).await.expect(200);
    }
    let reader = server.as_client("reader").await;
    for (names, status) in [
        (&["/readable/json"][..], 200),
        (&["/readable/json", "/readable/json"], 200),
        (&["/READABLE/json"], 404),
        (&["/readable/json", "/READABLE/json"], 404),
        (&["/hidden"], 404),
        (&["/readable/json", "/hidden"], 404),
        (&["/readable/json", "/absent"], 404),
        (&["/hidden", "/readable/text"], 404),
        (&["/readable/text", "/hidden"], 400),
        (&["/readable/absent", "/readable/text"], 404),
    ] {
        for others in [&[][..], &others] {
            let all = others
                .iter()
                .map(String::as_str)
                .chain(names.iter().copied());
            let references = all.map(|name| json!({"credentials": {"credhub-ref": name}}));
            let body = json!({"VCAP": references.collect::<Vec<_>>()});
            let answer = reader.post("/api/v1/interpolate", body).await;
            assert_eq!(answer.status, status, "{names:?}: {answer:?}");
            assert_eq!(answer.body.contains("canary"), status == 200, "{names:?}");
        }
    }
}

#[tokio::test]
async fn writing_a_certificate_by_id_needs_no_permission_on_its_ca() {
    let options = Options::default().extra(&permission(
        "/leaf",
        &["uaa-client:writer".to_owned()],
        &["write"],
    ));
    let server = Server::start_with(&options).await;
    generate_certificate(&server, "/ca", json!({"is_ca": true})).await;
    generate_certificate(&server, "/leaf", json!({"ca": "/ca"})).await;
    let leaf = Certificate::named(&server, "/leaf").await;
    let writer = server.as_client("writer").await;
    let by_id = leaf.path("regenerate");
    writer.post(&by_id, json!({})).await.expect(200);
    let by_name = json!({"name": "/leaf"});
    writer.post("/api/v1/regenerate", by_name).await.expect(404);
}
