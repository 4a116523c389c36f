//! The action, the resources and the details of each request's events.

use keywright_harness::Server;
use reqwest::Method;
use serde_json::{Value, json};

use super::{events_of, touched};
use crate::{external_certificates, given};

// The action and the resources of each request's events.

/// A request, its response status, its action, and its resources.
type Case<'a> = (Method, String, Value, u16, &'a str, &'a [&'a str]);

/// The id of a certificate's credential.
async fn certificate_id(server: &Server, name: &str) -> String {
    let answer = server
        .get(&format!("/api/v1/certificates?name={name}"))
        .await;
    answer.expect(200).json()["certificates"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Sends the requests one after the other and checks the events of each.
async fn assert_audited(server: &Server, cases: Vec<Case<'_>>) {
    for (method, path, body, status, action, resources) in cases {
        let what = format!("{method} {path} {body}");
        let mut request = server.authorized(method.clone(), &path);
        if !body.is_null() {
            request = request.body(body.to_string());
        }
        let answer = server.send(request).await;
        assert_eq!(answer.status, status, "{what}: {}", answer.body);
        let events = events_of(server, &answer);
        assert!(!events.is_empty(), "{what}");
        for event in &events {
            assert_eq!(event["action"], action, "{what}");
            assert_eq!(event["status"], status, "{what}");
            assert_eq!(event["method"], method.as_str(), "{what}");
        }
        assert_eq!(touched(&events), resources, "{what}");
        if resources.is_empty() {
            assert_eq!(events.len(), 1, "{what}");
        }
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "it is one table")]
async fn each_request_about_credentials_has_its_action() {
    let server = Server::start().await;
    let (get, put, post, delete) = (Method::GET, Method::PUT, Method::POST, Method::DELETE);
    let version = given::set_value(&server, "/value", "v").await;
    given::set(&server, "/json", "json", json!({"a": 1})).await;
    given::generate(&server, "/password", "password", json!({})).await;
    given::generate_certificate(&server, "/root", json!({"is_ca": true})).await;
    given::generate_certificate(&server, "/leaf", json!({"ca": "/root"})).await;
    let data = || "/api/v1/data".to_owned();
    let query = |query: &str| format!("/api/v1/data?{query}");
    let named = |name: &str| json!({"name": name});
    let leaf = json!({"name": "/leaf", "type": "certificate", "mode": "overwrite",
        "parameters": {"common_name": "l", "key_type": given::QUICK_KEY, "ca": "/root"}});
    let document = json!({"s": [{"credentials": {"credhub-ref": "((/json))"}}]});
    let cases: Vec<Case<'_>> = vec![
        (
            put.clone(),
            data(),
            json!({"name": "/new", "type": "value", "value": "v"}),
            200,
            "SET",
            &["write /new"],
        ),
        (
            post.clone(),
            data(),
            json!({"name": "/p", "type": "password"}),
            200,
            "GENERATE",
            &["write /p"],
        ),
        (
            post.clone(),
            data(),
            leaf,
            200,
            "GENERATE",
            &["read /root", "write /leaf"],
        ),
        (
            post.clone(),
            data(),
            json!({"name": "/password", "regenerate": true}),
            200,
            "REGENERATE",
            &["write /password"],
        ),
        (
            post.clone(),
            "/api/v1/regenerate".to_owned(),
            named("/password"),
            200,
            "REGENERATE",
            &["write /password"],
        ),
        (
            post.clone(),
            "/api/v1/regenerate".to_owned(),
            named("/leaf"),
            200,
            "REGENERATE",
            &["read /root", "write /leaf"],
        ),
        (
            post.clone(),
            "/api/v1/bulk-regenerate".to_owned(),
            json!({"signed_by": "/root"}),
            200,
            "BULK_REGENERATE",
            &["read /root", "write /leaf"],
        ),
        (
            get.clone(),
            query("name=/value"),
            Value::Null,
            200,
            "GET",
            &["read /value"],
        ),
        (
            get.clone(),
            query("name=/VALUE&current=true"),
            Value::Null,
            200,
            "GET",
            &["read /VALUE"],
        ),
        (
            get.clone(),
            format!("/api/v1/data/{}", given::id(&version)),
            Value::Null,
            200,
            "GET",
            &["read /value"],
        ),
        (
            Method::HEAD,
            query("name=/value"),
            Value::Null,
            200,
            "GET",
            &["read /value"],
        ),
        (get.clone(), query("path=/"), Value::Null, 200, "FIND", &[]),
        (
            get.clone(),
            query("name-like=val"),
            Value::Null,
            200,
            "FIND",
            &[],
        ),
        (
            get.clone(),
            query("path=/&expires-within-days=3&effective=true"),
            Value::Null,
            200,
            "FIND",
            &[],
        ),
        (
            post,
            "/api/v1/interpolate".to_owned(),
            document,
            200,
            "INTERPOLATE",
            &["read /json"],
        ),
        (
            delete,
            query("name=/value"),
            Value::Null,
            204,
            "DELETE",
            &["delete /value"],
        ),
        (
            get.clone(),
            "/nowhere".to_owned(),
            Value::Null,
            404,
            "UNKNOWN",
            &[],
        ),
        (Method::PATCH, data(), Value::Null, 404, "UNKNOWN", &[]),
    ];
    assert_audited(&server, cases).await;
}

#[tokio::test]
async fn each_request_about_certificates_has_its_action() {
    let server = Server::start().await;
    let (get, put, post, delete) = (Method::GET, Method::PUT, Method::POST, Method::DELETE);
    given::generate_certificate(&server, "/root", json!({"is_ca": true})).await;
    let old = given::generate_certificate(&server, "/leaf", json!({"ca": "/root"})).await;
    let id = certificate_id(&server, "/leaf").await;
    let all = || "/api/v1/certificates".to_owned();
    let at = |below: &str| format!("/api/v1/certificates/{id}/{below}");
    let brought = external_certificates::authority("brought");
    let brought = json!({"value": {"certificate": brought.certificate}});
    let one = at(&format!("versions/{}", given::id(&old)));
    let cases: Vec<Case<'_>> = vec![
        (
            get.clone(),
            all(),
            Value::Null,
            200,
            "GET_ALL_CERTIFICATES",
            &[],
        ),
        (
            get.clone(),
            format!("{}/", all()),
            Value::Null,
            200,
            "GET_ALL_CERTIFICATES",
            &[],
        ),
        (
            get.clone(),
            format!("{}?name=/root", all()),
            Value::Null,
            200,
            "GET_CERTIFICATE",
            &["read /root"],
        ),
        (
            get.clone(),
            at("versions"),
            Value::Null,
            200,
            "GET_CERTIFICATE_VERSIONS",
            &["read /leaf"],
        ),
        (
            post.clone(),
            at("regenerate"),
            json!({"set_as_transitional": true}),
            200,
            "REGENERATE_CERTIFICATE",
            &["read /root", "write /leaf"],
        ),
        (
            put,
            at("update_transitional_version"),
            json!({"version": null}),
            200,
            "UPDATE_TRANSITIONAL_VERSION",
            &["write /leaf"],
        ),
        (
            post,
            at("versions"),
            brought,
            200,
            "ADD_CERTIFICATE_VERSION",
            &["write /leaf"],
        ),
        (
            delete,
            one,
            Value::Null,
            200,
            "DELETE_CERTIFICATE_VERSION",
            &["delete /leaf"],
        ),
    ];
    assert_audited(&server, cases).await;
}

// Events of permission changes.

const UNKNOWN: &str = "/api/v2/permissions/0b7f1c52-6f5e-4d43-8f0d-0d5c3c1b9a77";

/// A body of the older interface that grants read and write to these actors.
fn granting(actors: &[String]) -> Value {
    let entries = actors
        .iter()
        .map(|actor| json!({"path": "/a", "actor": actor, "operations": ["read", "write"]}));
    json!({"credential_name": "/a", "permissions": entries.collect::<Vec<_>>()})
}

#[tokio::test]
async fn each_of_a_hundred_grants_in_one_request_is_audited_in_full() {
    let server = Server::start().await;
    let actors = (0..100).map(|number| format!("{number:03}{}", "\u{10348}".repeat(252)));
    let actors: Vec<String> = actors.collect();
    let stranger = server.as_client("stranger").await;
    let refused = stranger
        .post("/api/v1/permissions", granting(&actors))
        .await;
    let granted = server.post("/api/v1/permissions", granting(&actors)).await;
    for (answer, status, is_identified) in [(refused, 404, false), (granted, 201, true)] {
        assert_eq!(answer.status, status, "{}", answer.body);
        let events = events_of(&server, &answer);
        assert_eq!(events.len(), actors.len());
        for (event, actor) in events.iter().zip(&actors) {
            let details = json!({"actor": actor, "operations": ["read", "write"]});
            assert_eq!(event["request_details"], details);
            assert_eq!(event["action"], "ADD_PERMISSIONS");
            assert_eq!(event["operation"], "write_acl");
            assert_eq!(event["resource_name"], "/a");
            assert_eq!(event["resource_id"].is_string(), is_identified);
        }
    }
}

#[tokio::test]
async fn permission_changes_are_audited_with_actor_and_operations() {
    let server = Server::start().await;
    let id = server.grant("/a", "someone", &["read"]).await;
    let one = format!("/api/v2/permissions/{id}");
    let by_credential = "/api/v1/permissions?credential_name=/a&actor=someone";
    let body =
        |operations: &[&str]| json!({"path": "/a", "actor": "someone", "operations": operations});
    let reported = |operations: &[&str]| json!({"actor": "someone", "operations": operations});
    let write = json!({"operations": ["write"]});
    let (patch, put, delete) = (Method::PATCH, Method::PUT, Method::DELETE);
    let post = Method::POST;
    let all = "/api/v2/permissions";
    for (method, path, body, status, details) in [
        (
            &patch,
            one.as_str(),
            write.clone(),
            200,
            reported(&["write"]),
        ),
        (
            &put,
            &one,
            body(&["read", "delete"]),
            200,
            reported(&["read", "delete"]),
        ),
        (&post, all, body(&["write"]), 409, reported(&["write"])),
        (
            &delete,
            &one,
            Value::Null,
            200,
            reported(&["read", "delete"]),
        ),
        (
            &delete,
            by_credential,
            Value::Null,
            404,
            json!({"actor": "someone"}),
        ),
        (&post, all, body(&["read"]), 201, reported(&["read"])),
        (
            &delete,
            by_credential,
            Value::Null,
            204,
            reported(&["read"]),
        ),
        (&patch, UNKNOWN, write.clone(), 404, write.clone()),
        (&put, UNKNOWN, body(&["read"]), 404, reported(&["read"])),
        (&delete, UNKNOWN, Value::Null, 404, Value::Null),
    ] {
        let mut request = server.authorized(method.clone(), path);
        if !body.is_null() {
            request = request.body(body.to_string());
        }
        let answer = server.send(request).await;
        let what = format!("{method} {path} {body}: {}", answer.body);
        assert_eq!(answer.status, status, "{what}");
        let events = events_of(&server, &answer);
        assert_eq!(events.len(), 1, "{what}");
        assert_eq!(events[0]["request_details"], details, "{what}");
    }
}
