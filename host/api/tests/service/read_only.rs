//! Read-only mode, at each path that the router has.

use axum::http::{Method, StatusCode};

use crate::harness::{Answer, Service};

/// What goes on in read-only mode beside GET.
const GOES_ON: [(Method, &str); 2] = [
    (Method::POST, "/management"),
    (Method::POST, "/api/v1/interpolate"),
];

#[tokio::test]
async fn every_write_of_every_route_is_refused_and_everything_else_answers_as_before() {
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
            } else {
                assert_eq!(after.status, before.status, "{method} {route}");
                // What tells the mode tells another one now.
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

/// The paths that `router.rs` and what it names mount, with ids in the places of parameters, read from the code so that
/// none is forgotten here.
fn routes() -> Vec<String> {
    let literals = [
        include_str!("../../src/router.rs"),
        include_str!("../../src/server_mode.rs"),
    ]
    .map(|code| code.split('"').skip(1).step_by(2))
    .into_iter()
    .flatten();
    let routes: Vec<_> = literals
        .filter(|literal| literal.starts_with('/') && !literal.contains(' '))
        .map(with_ids)
        .collect();
    for known in [
        "/api/v1/data",
        "/api/v1/bulk-regenerate",
        "/management",
        "/info",
    ] {
        assert!(routes.iter().any(|route| route == known), "{known}");
    }
    routes
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

/// Sends what is no good body for anything, so that a write that is let through changes nothing.
async fn answer(service: &Service, method: &Method, route: &str) -> Answer {
    service.send(method.as_str(), route, "not JSON").await
}

/// Whether a route has a method; what has GET has HEAD.
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
