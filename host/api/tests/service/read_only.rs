//! Read-only mode, on each path of the router.

use std::collections::BTreeSet;

use axum::http::{Method, StatusCode};

use crate::harness::{Answer, Service};

/// The methods and paths other than GET that work in read-only mode.
const GOES_ON: [(Method, &str); 2] = [
    (Method::POST, "/management"),
    (Method::POST, "/api/v1/interpolate"),
];

#[tokio::test]
async fn all_writes_are_rejected_and_reads_are_unchanged() {
    let service = Service::new();
    for route in routes() {
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
            let before = answer(&service, &method, &route).await;
            switch(&service, true).await;
            let after = answer(&service, &method, &route).await;
            let goes_on =
                method == Method::GET || GOES_ON.contains(&(method.clone(), route.as_str()));
            if is_known && !goes_on {
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
async fn options_is_refused_at_every_route() {
    let service = Service::new();
    switch(&service, true).await;
    for route in routes() {
        let answer = answer(&service, &Method::OPTIONS, &route).await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{route}");
    }
    let unknown = answer(&service, &Method::OPTIONS, "/unknown").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

/// The paths, with ids for their parameters.
fn routes() -> BTreeSet<String> {
    let routes = keywright_api::routes();
    routes.iter().map(|route| with_ids(route.path())).collect()
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
async fn answer(service: &Service, method: &Method, route: &str) -> Answer {
    service.send(method.as_str(), route, "not JSON").await
}

/// Returns whether a route has a method; routes with GET have HEAD, too.
async fn has_method(service: &Service, method: &Method, route: &str) -> bool {
    let method = match *method {
        Method::HEAD => &Method::GET,
        _ => method,
    };
    let answer = answer(service, method, route).await;
    answer.status != StatusCode::NOT_FOUND || !answer.text.is_empty()
}

async fn switch(service: &Service, is_on: bool) {
    let body = format!(r#"{{"read_only_mode":{is_on}}}"#);
    let answer = service.send("POST", "/management", body.clone()).await;
    assert_eq!((answer.status, answer.text), (StatusCode::OK, body));
}
