//! Every route, requested by callers without permission, and in read-only mode. The tests use the router's list, so that no
//! route can omit the check.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use keywright_api::{Access, Route, routes};
use keywright_core::{credential::StoredVersion, permission::Operation};
use serde_json::{Value, json};

use crate::harness::{Response, Service, good_claims, trusted_key};

/// A request to a route.
struct Probe {
    method: &'static str,
    /// The path with ids for its variable segments, and the query.
    target: String,
    body: String,
}

impl Probe {
    /// Returns the route. A literal segment takes precedence over a variable one.
    fn route(&self) -> Route {
        let path = self.target.split('?').next().unwrap();
        let matching = routes().into_iter().filter(|route| {
            let segments = route.path().split('/');
            self.method == route.method().as_str()
                && segments.clone().count() == path.split('/').count()
                && segments
                    .zip(path.split('/'))
                    .all(|(one, other)| one.starts_with('{') || one == other)
        });
        matching
            .min_by_key(|route| route.path().matches('{').count())
            .unwrap_or_else(|| panic!("{} is not a route", describe(self)))
    }

    async fn send(&self, service: &Service, authorization: Option<String>) -> Response {
        let mut headers = vec![("content-type", "application/json".to_owned())];
        headers.extend(authorization.map(|value| ("authorization", value)));
        service
            .send_with(self.method, &self.target, &headers, self.body.clone())
            .await
    }
}

#[tokio::test]
async fn every_route_has_a_request_in_this_test() {
    let name = |route: &Route| format!("{} {}", route.method(), route.path());
    let (_, probes) = service_with_probes().await;
    let requested: BTreeSet<_> = probes.iter().map(|probe| name(&probe.route())).collect();
    let listed: BTreeSet<_> = routes().iter().map(name).collect();
    assert_eq!(requested, listed);
    assert_eq!(listed.len(), routes().len());
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

/// Requests that would disclose or change secrets, at least one per route. Ids replace the words in capitals.
const REQUESTS: &str = r#"
    GET /docs
    GET /openapi.json
    GET /health
    GET /info
    GET /api/v1/key-usage
    GET /management
    POST /management {"read_only_mode": false}
    GET /api/v1/types
    GET /version
    GET /api/v1/data?name=/guarded/it
    GET /api/v1/data?name=/guarded/it&current=true
    GET /api/v1/data?path=/guarded
    GET /api/v1/data?name-like=guarded
    GET /api/v1/data?path=&expires-within-days=3650
    GET /api/v1/data/VERSION
    PUT /api/v1/data {"name": "/guarded/it", "type": "json", "value": {"other": 1}}
    POST /api/v1/data {"name": "/new", "type": "password"}
    POST /api/v1/data {"name": "/guarded/made", "regenerate": true}
    DELETE /api/v1/data?name=/guarded/it
    POST /api/v1/regenerate {"name": "/guarded/made"}
    POST /api/v1/bulk-regenerate {"signed_by": "/guarded/ca"}
    POST /api/v1/interpolate {"a": [{"credentials": {"ref": "/guarded/it"}}]}
    GET /api/v1/certificates
    GET /api/v1/certificates?name=/guarded/leaf
    POST /api/v1/certificates/LEAF/regenerate
    PUT /api/v1/certificates/TWO/update_transitional_version {"version": "SECOND"}
    GET /api/v1/certificates/TWO/versions
    POST /api/v1/certificates/TWO/versions {"value": {"certificate": "c"}}
    DELETE /api/v1/certificates/TWO/versions/SECOND
    GET /api/v2/permissions?path=/guarded/it&actor=someone
    GET /api/v2/permissions/explain?path=/guarded/it&actor=someone&operation=read
    POST /api/v2/permissions {"path": "/guarded/it", "actor": "new", "operations": ["write"]}
    GET /api/v2/permissions/PERMISSION
    PUT /api/v2/permissions/PERMISSION {"path": "/guarded/it", "actor": "someone", "operations": ["write"]}
    PATCH /api/v2/permissions/PERMISSION {"operations": ["write"]}
    DELETE /api/v2/permissions/PERMISSION
    GET /api/v1/permissions?credential_name=/guarded/it
    POST /api/v1/permissions {"credential_name": "/guarded/it", "permissions": [{"actor": "new", "operations": ["write"]}]}
    DELETE /api/v1/permissions?credential_name=/guarded/it&actor=someone
"#;

/// Returns a service with secrets, and the requests.
async fn service_with_probes() -> (Service, Vec<Probe>) {
    let service = Service::new().await;
    for (name, signer) in [("ca", "ca"), ("leaf", "ca"), ("two", "two")] {
        let [name, signer] = [name, signer].map(|name| format!("/guarded/{name}"));
        service.storage.store_signed(&name, &signer).await;
    }
    let leaf = service.storage.newest("/guarded/leaf").await.credential_id;
    let two = service.storage.newest("/guarded/two").await.credential_id;
    let created = async |method, path: &str, body: Value| {
        let created = service.send_json(method, path, &body).await.json();
        let id = created.get("id").or(created.get("uuid")).unwrap();
        id.as_str().unwrap().to_owned()
    };
    let set = json!({"name": GUARDED, "type": "json", "value": {"secret": CANARY}});
    let version = created("PUT", DATA, set).await;
    let generate = json!({"name": "/guarded/made", "type": "password"});
    created("POST", DATA, generate).await;
    let second = json!({"value": {"certificate": CANARY}});
    let versions = format!("/api/v1/certificates/{two}/versions");
    let second = created("POST", &versions, second).await;
    let permission = json!({"path": GUARDED, "actor": "someone", "operations": ["read"]});
    let permission = created("POST", "/api/v2/permissions", permission).await;
    let probes = REQUESTS.trim().lines().map(|line| {
        let mut parts = line.trim().splitn(3, ' ');
        let mut part = || parts.next().unwrap_or_default();
        let (method, target, body) = (part(), part(), part());
        Probe {
            method,
            target: target
                .replace("VERSION", &version)
                .replace("LEAF", &leaf.to_string())
                .replace("TWO", &two.to_string())
                .replace("SECOND", &second)
                .replace("PERMISSION", &permission),
            body: body.replace("SECOND", &second),
        }
    });
    let probes = probes.collect();
    (service, probes)
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
    probes.iter().map(|probe| (probe.route(), probe))
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

const OF_CREDENTIAL: &str = "/api/v1/permissions";

/// The methods and paths other than GET that work in read-only mode.
const AVAILABLE: [(&str, &str); 2] = [("POST", "/management"), ("POST", "/api/v1/interpolate")];

#[tokio::test]
async fn read_only_mode_rejects_writes_and_does_not_change_reads() {
    let service = Service::new().await;
    let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    for route in paths().into_iter().chain([UNKNOWN.to_owned()]) {
        for method in methods {
            let what = format!("{method} {route}");
            switch(&service, false).await;
            let is_known = has_method(&service, method, &route).await;
            let before = response(&service, method, &route).await;
            switch(&service, true).await;
            let after = response(&service, method, &route).await;
            let is_available = method == "GET" || AVAILABLE.contains(&(method, &*route));
            let is_refused = is_known || method == "OPTIONS";
            if is_refused && !is_available && route != UNKNOWN {
                assert_eq!(after.status, StatusCode::SERVICE_UNAVAILABLE, "{what}");
                assert!(method == "HEAD" || after.error().contains("read-only"));
            } else if (method, &*route) == ("GET", "/management") {
                // The only response that contains the mode.
                assert_eq!(after.text, r#"{"read_only_mode":true}"#);
            } else {
                assert_eq!(after.status, before.status, "{what}");
                // The response with the mode changes.
                assert!(after.text == before.text || route == "/management");
            }
        }
    }
}

const UNKNOWN: &str = "/api/v1/unknown";

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
async fn response(service: &Service, method: &str, route: &str) -> Response {
    service.send(method, route, "not JSON").await
}

/// Returns whether a route has a method; routes with GET have HEAD, too.
async fn has_method(service: &Service, method: &str, route: &str) -> bool {
    let method = if method == "HEAD" { "GET" } else { method };
    let response = response(service, method, route).await;
    response.status != StatusCode::NOT_FOUND || !response.text.is_empty()
}

async fn switch(service: &Service, is_on: bool) {
    let body = format!(r#"{{"read_only_mode":{is_on}}}"#);
    let response = service.send("POST", "/management", body.clone()).await;
    assert_eq!((response.status, response.text), (StatusCode::OK, body));
}
