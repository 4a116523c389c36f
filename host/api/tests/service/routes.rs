//! Every route, requested by callers without permission, and in read-only mode. The tests use the router's list, so that no
//! route can omit the check.

use std::collections::BTreeSet;

use axum::http::{Method, StatusCode};
use keywright_api::{Access, Route, routes};
use keywright_core::{credential::StoredVersion, permission::Operation};
use serde_json::{Value, json};

use crate::harness::{Response, Service, good_claims, trusted_key};

/// A request to a route.
struct Probe {
    method: &'static str,
    /// The route's path in the list.
    route: &'static str,
    /// The path with ids for its variable segments, and the query.
    target: String,
    body: Value,
}

impl Probe {
    fn is_for(&self, route: &Route) -> bool {
        self.method == route.method().as_str() && self.route == route.path()
    }

    async fn send(&self, service: &Service, authorization: Option<String>) -> Response {
        let mut headers = vec![("content-type", "application/json".to_owned())];
        headers.extend(authorization.map(|value| ("authorization", value)));
        let body = match &self.body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        service
            .send_with(self.method, &self.target, &headers, body)
            .await
    }
}

#[tokio::test]
async fn every_route_has_a_request_in_this_test() {
    let (_, probes) = service_with_probes().await;
    for route in routes() {
        assert!(
            probes.iter().any(|probe| probe.is_for(&route)),
            "{} {} has no request in this test",
            route.method(),
            route.path()
        );
    }
    for probe in probes {
        assert!(
            routes().iter().any(|route| probe.is_for(route)),
            "{} {} is not a route",
            probe.method,
            probe.route
        );
    }
}

#[tokio::test]
async fn a_route_is_listed_once() {
    let listed: Vec<_> = routes()
        .iter()
        .map(|route| (route.method().to_string(), route.path()))
        .collect();
    let distinct: BTreeSet<_> = listed.iter().collect();
    assert_eq!(distinct.len(), listed.len());
}

#[tokio::test]
async fn without_credentials_only_open_routes_respond() {
    let (service, probes) = service_with_probes().await;
    let before = everything(&service).await;
    for (route, probe) in with_routes(&probes) {
        let response = probe.send(&service, None).await;
        let is_allowed = response.status != 401;
        assert_eq!(
            is_allowed,
            route.access() == Access::Open,
            "{}",
            describe(probe)
        );
        assert!(!response.text.contains(CANARY), "{}", describe(probe));
    }
    assert_eq!(everything(&service).await, before);
}

#[tokio::test]
async fn without_a_permission_nothing_is_disclosed_or_changed() {
    let (service, probes) = service_with_probes().await;
    let before = everything(&service).await;
    for (route, probe) in with_routes(&probes) {
        let reads = service.storage.reads();
        let response = probe.send(&service, Some(stranger())).await;
        if matches!(route.access(), Access::Permission(_)) {
            // The duration of further reads would reveal which credentials exist.
            let what = "has read more than names";
            assert_eq!(service.storage.reads(), reads, "{} {what}", describe(probe));
        }
        let what = format!("{}: {} {}", describe(probe), response.status, response.text);
        assert!(!response.text.contains(CANARY), "{what}");
        match route.access() {
            Access::Open | Access::Identity => assert_ne!(response.status, 401, "{what}"),
            Access::Permission(Operation::Write) => assert_eq!(response.status, 403, "{what}"),
            Access::Permission(_) if response.status == 200 => {
                assert!(is_empty(&response), "{what}");
            }
            Access::Permission(_) => assert_eq!(response.status, 404, "{what}"),
        }
    }
    assert_eq!(everything(&service).await, before);
}

#[tokio::test]
async fn each_request_succeeds_with_permission() {
    let count = service_with_probes().await.1.len();
    for at in 0..count {
        let (service, probes) = service_with_probes().await;
        let probe = &probes[at];
        let response = probe.send(&service, Some(service.token())).await;
        let what = format!("{}: {} {}", describe(probe), response.status, response.text);
        assert!(response.status.is_success(), "{what}");
        assert!(!is_empty(&response), "{what}");
    }
}

/// Returns a service with secrets, and requests that would disclose or change them, at least one per route.
#[expect(clippy::too_many_lines, reason = "a table of cases")]
async fn service_with_probes() -> (Service, Vec<Probe>) {
    let service = Service::new().await;
    service
        .storage
        .store_signed("/guarded/ca", "/guarded/ca")
        .await;
    service
        .storage
        .store_signed("/guarded/leaf", "/guarded/ca")
        .await;
    let set = json!({"name": GUARDED, "type": "json", "value": {"secret": CANARY}});
    let version = service.send_json("PUT", DATA, &set).await.json();
    let id = version["id"].as_str().unwrap();
    let generate = json!({"name": "/guarded/made", "type": "password"});
    service.send_json("POST", DATA, &generate).await;
    let leaf = service.storage.newest("/guarded/leaf").await.credential_id;
    service
        .storage
        .store_signed("/guarded/two", "/guarded/two")
        .await;
    let two = service.storage.newest("/guarded/two").await.credential_id;
    let certificate = format!("{CERTIFICATES}/{two}");
    let second = json!({"value": {"certificate": CANARY}});
    let second = service
        .send_json("POST", &format!("{certificate}/versions"), &second)
        .await
        .json();
    let second = second["id"].as_str().unwrap();
    let row = json!({"path": GUARDED, "actor": "someone", "operations": ["read"]});
    let row = service.send_json("POST", PERMISSIONS, &row).await.json();
    let row = row["uuid"].as_str().unwrap().to_owned();
    let probe = |method, route, target: String, body| Probe {
        method,
        route,
        target,
        body,
    };
    let by_name = |query: &str| format!("{DATA}?{query}");
    let versions = format!("{certificate}/versions");
    let mut probes = vec![
        probe("GET", "/docs", "/docs".into(), Value::Null),
        probe("GET", "/openapi.json", "/openapi.json".into(), Value::Null),
        probe("GET", "/health", "/health".into(), Value::Null),
        probe("GET", "/info", "/info".into(), Value::Null),
        probe("GET", KEY_USAGE, KEY_USAGE.into(), Value::Null),
        probe("GET", "/management", "/management".into(), Value::Null),
        probe(
            "POST",
            "/management",
            "/management".into(),
            json!({"read_only_mode": false}),
        ),
        probe("GET", TYPES, TYPES.into(), Value::Null),
        probe("GET", "/version", "/version".into(), Value::Null),
        probe("GET", DATA, by_name("name=/guarded/it"), Value::Null),
        probe(
            "GET",
            DATA,
            by_name("name=/guarded/it&current=true"),
            Value::Null,
        ),
        probe("GET", DATA, by_name("path=/guarded"), Value::Null),
        probe("GET", DATA, by_name("name-like=guarded"), Value::Null),
        probe(
            "GET",
            DATA,
            by_name("path=&expires-within-days=3650"),
            Value::Null,
        ),
        probe(
            "GET",
            "/api/v1/data/{id}",
            format!("{DATA}/{id}"),
            Value::Null,
        ),
        probe(
            "PUT",
            DATA,
            DATA.into(),
            json!({"name": GUARDED, "type": "json", "value": {"other": 1}}),
        ),
        probe(
            "POST",
            DATA,
            DATA.into(),
            json!({"name": "/new", "type": "password"}),
        ),
        probe(
            "POST",
            DATA,
            DATA.into(),
            json!({"name": "/guarded/made", "regenerate": true}),
        ),
        probe("DELETE", DATA, by_name("name=/guarded/it"), Value::Null),
        probe(
            "POST",
            "/api/v1/regenerate",
            "/api/v1/regenerate".into(),
            json!({"name": "/guarded/made"}),
        ),
        probe(
            "POST",
            "/api/v1/bulk-regenerate",
            "/api/v1/bulk-regenerate".into(),
            json!({"signed_by": "/guarded/ca"}),
        ),
        probe(
            "POST",
            "/api/v1/interpolate",
            "/api/v1/interpolate".into(),
            json!({"a": [{"credentials": {"ref": GUARDED}}]}),
        ),
        probe("GET", CERTIFICATES, CERTIFICATES.into(), Value::Null),
        probe(
            "GET",
            CERTIFICATES,
            format!("{CERTIFICATES}?name=/guarded/leaf"),
            Value::Null,
        ),
        probe(
            "POST",
            "/api/v1/certificates/{certificate_id}/regenerate",
            format!("{CERTIFICATES}/{leaf}/regenerate"),
            Value::Null,
        ),
        probe(
            "PUT",
            "/api/v1/certificates/{certificate_id}/update_transitional_version",
            format!("{certificate}/update_transitional_version"),
            json!({"version": second}),
        ),
        probe("GET", VERSIONS, versions.clone(), Value::Null),
        probe(
            "POST",
            VERSIONS,
            versions.clone(),
            json!({"value": {"certificate": "c"}}),
        ),
        probe(
            "DELETE",
            "/api/v1/certificates/{certificate_id}/versions/{version_id}",
            format!("{versions}/{second}"),
            Value::Null,
        ),
    ];
    for (method, route, target, body) in permission_requests(&row) {
        probes.push(probe(method, route, target, body));
    }
    (service, probes)
}

/// Returns requests about the permission with this id, which belongs to another actor.
fn permission_requests(id: &str) -> Vec<(&'static str, &'static str, String, Value)> {
    let by_path = format!("{PERMISSIONS}?path={GUARDED}&actor=someone");
    let explain = format!("{EXPLAIN}?path={GUARDED}&actor=someone&operation=read");
    let by_name = format!("{OF_CREDENTIAL}?credential_name={GUARDED}");
    let one = || format!("{PERMISSIONS}/{id}");
    let whole = |actor| json!({"path": GUARDED, "actor": actor, "operations": ["write"]});
    let entry = json!({"path": GUARDED, "actor": "new", "operations": ["write"]});
    vec![
        ("GET", PERMISSIONS, by_path, Value::Null),
        ("GET", EXPLAIN, explain, Value::Null),
        ("POST", PERMISSIONS, PERMISSIONS.into(), whole("new")),
        ("GET", ONE_PERMISSION, one(), Value::Null),
        ("PUT", ONE_PERMISSION, one(), whole("someone")),
        (
            "PATCH",
            ONE_PERMISSION,
            one(),
            json!({"operations": ["write"]}),
        ),
        ("DELETE", ONE_PERMISSION, one(), Value::Null),
        ("GET", OF_CREDENTIAL, by_name.clone(), Value::Null),
        (
            "POST",
            OF_CREDENTIAL,
            OF_CREDENTIAL.into(),
            json!({"credential_name": GUARDED, "permissions": [entry]}),
        ),
        (
            "DELETE",
            OF_CREDENTIAL,
            format!("{by_name}&actor=someone"),
            Value::Null,
        ),
    ]
}

/// Returns all stored records.
async fn everything(service: &Service) -> (Vec<StoredVersion>, String) {
    let permissions = format!("{OF_CREDENTIAL}?credential_name={GUARDED}");
    let permissions = service.get(&permissions).await;
    assert_eq!(permissions.status, 200);
    (service.storage.everything().await, permissions.text)
}

/// Returns each request with its route.
fn with_routes(probes: &[Probe]) -> impl Iterator<Item = (Route, &Probe)> {
    probes.iter().map(|probe| {
        let mut routes = routes().into_iter();
        let route = routes.find(|route| probe.is_for(route));
        (
            route.unwrap_or_else(|| panic!("{}", describe(probe))),
            probe,
        )
    })
}

/// Returns the header of a valid token of an actor without permissions.
fn stranger() -> String {
    let mut claims = good_claims();
    claims["client_id"] = json!("stranger");
    format!("Bearer {}", trusted_key().sign(&claims))
}

/// Returns whether a response is an object whose only field is an empty list.
fn is_empty(response: &Response) -> bool {
    let json: Value = serde_json::from_str(&response.text).unwrap_or_default();
    let fields = json.as_object();
    fields.is_some_and(|fields| fields.len() == 1 && fields.values().all(|all| *all == json!([])))
}

fn describe(probe: &Probe) -> String {
    format!("{} {}", probe.method, probe.target)
}

/// The secret that must not be disclosed.
const CANARY: &str = "canary-of-a-guarded-value";

const GUARDED: &str = "/guarded/it";

const DATA: &str = "/api/v1/data";

const CERTIFICATES: &str = "/api/v1/certificates";

const PERMISSIONS: &str = "/api/v2/permissions";

const ONE_PERMISSION: &str = "/api/v2/permissions/{permission_id}";

const EXPLAIN: &str = "/api/v2/permissions/explain";

const OF_CREDENTIAL: &str = "/api/v1/permissions";

const KEY_USAGE: &str = "/api/v1/key-usage";

const TYPES: &str = "/api/v1/types";

const VERSIONS: &str = "/api/v1/certificates/{certificate_id}/versions";

/// The methods and paths other than GET that work in read-only mode.
const AVAILABLE: [(Method, &str); 2] = [
    (Method::POST, "/management"),
    (Method::POST, "/api/v1/interpolate"),
];

#[tokio::test]
async fn read_only_mode_rejects_writes_and_does_not_change_reads() {
    let service = Service::new().await;
    for route in paths() {
        for method in [
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ] {
            switch(&service, false).await;
            let is_known = has_method(&service, &method, &route).await;
            let before = response(&service, &method, &route).await;
            switch(&service, true).await;
            let after = response(&service, &method, &route).await;
            let is_available =
                method == Method::GET || AVAILABLE.contains(&(method.clone(), route.as_str()));
            if is_known && !is_available {
                assert_eq!(
                    after.status,
                    StatusCode::SERVICE_UNAVAILABLE,
                    "{method} {route}"
                );
                assert!(method == Method::HEAD || after.error().contains("read-only"));
            } else if (&method, route.as_str()) == (&Method::GET, "/management") {
                // The only response that contains the mode.
                assert_eq!(after.text, r#"{"read_only_mode":true}"#);
            } else {
                assert_eq!(after.status, before.status, "{method} {route}");
                // The response with the mode changes.
                assert!(after.text == before.text || route == "/management");
            }
        }
    }
}

#[tokio::test]
async fn read_only_mode_refuses_options_at_every_route() {
    let service = Service::new().await;
    switch(&service, true).await;
    for route in paths() {
        let response = response(&service, &Method::OPTIONS, &route).await;
        assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE, "{route}");
    }
}

#[tokio::test]
async fn an_unknown_path_is_404_in_read_only_mode() {
    let service = Service::new().await;
    switch(&service, true).await;
    for method in [Method::HEAD, Method::OPTIONS, Method::PUT, Method::DELETE] {
        let unknown = response(&service, &method, "/api/v1/unknown").await;
        assert_eq!(unknown.status, StatusCode::NOT_FOUND, "{method}");
    }
}

/// Returns the paths, with ids for their parameters.
fn paths() -> BTreeSet<String> {
    routes()
        .iter()
        .map(|route| with_ids(route.path()))
        .collect()
}

fn with_ids(route: &str) -> String {
    route
        .split('/')
        .map(|segment| {
            if segment.starts_with('{') {
                "7c3b2d1e-0000-4000-8000-000000000000"
            } else {
                segment
            }
        })
        .collect::<Vec<_>>()
        .join("/")
}

/// Sends an invalid body, so that an admitted write changes nothing.
async fn response(service: &Service, method: &Method, route: &str) -> Response {
    service.send(method.as_str(), route, "not JSON").await
}

/// Returns whether a route has a method; routes with GET have HEAD, too.
async fn has_method(service: &Service, method: &Method, route: &str) -> bool {
    let method = match *method {
        Method::HEAD => &Method::GET,
        _ => method,
    };
    let response = response(service, method, route).await;
    response.status != StatusCode::NOT_FOUND || !response.text.is_empty()
}

async fn switch(service: &Service, is_on: bool) {
    let body = format!(r#"{{"read_only_mode":{is_on}}}"#);
    let response = service.send("POST", "/management", body.clone()).await;
    assert_eq!((response.status, response.text), (StatusCode::OK, body));
}
