//! Paths, methods, query parameters, and the order in which a request is checked.

use keywright_harness::Server;
use reqwest::Method;
use serde_json::{Value, json};

use crate::given;

// Paths and methods, and the order in which a request is checked.

#[tokio::test]
async fn a_trailing_slash_changes_nothing() {
    let server = Server::reused().await;
    let version = given::set(&server, "/a", "json", json!({"k": 1})).await;
    let by_id = format!("/api/v1/data/{}", given::id(&version));
    for path in ["/info", "/health", "/version", &by_id] {
        let plain = server.get(path).await.expect(200);
        let slashed = server.get(&format!("{path}/")).await.expect(200);
        assert_eq!(slashed.body, plain.body, "{path}");
    }
    for query in ["name=/a", "path=", "name-like=a"] {
        let response = server.get(&format!("/api/v1/data?{query}")).await;
        let plain = response.expect(200);
        let response = server.get(&format!("/api/v1/data/?{query}")).await;
        let slashed = response.expect(200);
        assert_eq!(slashed.body, plain.body, "{query}");
    }
    let set = json!({"name": "/b", "type": "value", "value": "v"});
    server.put("/api/v1/data/", set).await.expect(200);
    let generate = json!({"name": "/c", "type": "password"});
    server.post("/api/v1/data/", generate).await.expect(200);
    server
        .post("/api/v1/regenerate/", json!({"name": "/c"}))
        .await
        .expect(200);
    let response = server.post("/api/v1/interpolate/", json!({})).await;
    response.expect(200);
    server.delete("/api/v1/data/?name=/b").await.expect(204);
}

#[tokio::test]
async fn a_wrong_method_is_404_and_needs_a_token_like_its_path() {
    let server = Server::reused().await;
    for (method, path) in wrong_methods() {
        let response = server.send(server.authorized(method.clone(), path)).await;
        assert_eq!(
            (response.status, response.body.as_str()),
            (404, ""),
            "{method} {path}"
        );
        let is_open = ["/info", "/health"].contains(&path);
        let status = if is_open { 404 } else { 401 };
        let response = server.send(server.request(method.clone(), path)).await;
        response.expect(status);
    }
}

#[tokio::test]
async fn changes_that_pages_of_other_sites_send_are_refused() {
    let server = Server::reused().await;
    given::generate_certificate(&server, "/root", json!({"is_ca": true})).await;
    let listed = server.get_json("/api/v1/certificates?name=/root").await;
    let id = listed["certificates"][0]["id"].as_str().unwrap();
    // A form needs neither a body nor a content type that other sites can't send.
    let path = format!("/api/v1/certificates/{id}/regenerate");
    let send = async |method: &Method, has_token: bool, sites: &[&str]| {
        let mut request = server.request(method.clone(), &path);
        if has_token {
            request = request.bearer_auth(server.token());
        }
        for site in sites {
            request = request.header("sec-fetch-site", *site);
        }
        server.send(request).await
    };
    let changes = [
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ];
    for method in &changes {
        for sites in [
            &["cross-site"][..],
            &["same-site"],
            &["Same-Origin"],
            &[""],
            &["same-origin", "cross-site"],
        ] {
            for has_token in [true, false] {
                let refused = send(method, has_token, sites).await.expect(403).error();
                let expected = "a page of another site sent the request; from other sites, only GET and HEAD are allowed";
                assert_eq!(refused, expected, "{method} {sites:?}");
            }
        }
    }
    assert_eq!(given::versions(&server, "/root").await.len(), 1);
    for method in &changes {
        for sites in [&["same-origin"][..], &["none"], &[]] {
            let status = if *method == Method::POST { 200 } else { 404 };
            send(method, true, sites).await.expect(status);
        }
    }
    assert_eq!(given::versions(&server, "/root").await.len(), 4);
    for method in [Method::GET, Method::HEAD] {
        let request = server.authorized(method, "/version");
        let response = server
            .send(request.header("sec-fetch-site", "cross-site"))
            .await;
        response.expect(200);
    }
}

#[tokio::test]
async fn an_invalid_token_is_reported_before_all_other_errors() {
    let server = Server::reused().await;
    for (method, path, body) in [
        (Method::PUT, "/api/v1/data", "not json"),
        (Method::POST, "/api/v1/data", r#"{"unknown": 1}"#),
        (Method::PATCH, "/api/v1/data", ""),
        (Method::GET, "/api/v1/data?versions=x", ""),
        (Method::DELETE, "/api/v1/data", ""),
        (Method::GET, "/no/such/path", ""),
    ] {
        let request = server
            .request(method.clone(), path)
            .bearer_auth("no.valid.token")
            .body(body);
        let response = server.send(request).await;
        assert_eq!(
            (response.status, response.error().as_str()),
            (401, "invalid_token"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_bad_request_is_reported_before_an_absent_credential() {
    let server = Server::reused().await;
    let body = json!({"name": "/absent", "unknown": 1});
    server.post("/api/v1/regenerate", body).await.expect(422);
    let response = server.get("/api/v1/data?name=/absent&versions=-1").await;
    response.expect(400);
    let response = server.get("/api/v1/data?name=/absent&current=maybe").await;
    response.expect(400);
}

#[tokio::test]
async fn a_bad_request_is_reported_before_conflicts_with_stored_data() {
    let server = Server::reused().await;
    given::set_value(&server, "/a", "v").await;
    let other_type_and_unknown: Value =
        json!({"name": "/a", "type": "password", "value": "v", "unknown": 1});
    server
        .put("/api/v1/data", other_type_and_unknown.clone())
        .await
        .expect(422);
    let too_large_and_unknown =
        json!({"name": "/a", "type": "value", "value": "v".repeat(70_000), "unknown": 1});
    let response = server.put("/api/v1/data", too_large_and_unknown).await;
    response.expect(422);
    assert_eq!(given::versions(&server, "/a").await.len(), 1);
}

fn wrong_methods() -> [(Method, &'static str); 31] {
    let by_id = "/api/v1/data/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9";
    let versions = "/api/v1/certificates/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9/versions";
    let version = "/api/v1/certificates/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9/versions/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9";
    [
        (Method::POST, "/api/v1/certificates"),
        (Method::PUT, versions),
        (Method::PATCH, versions),
        (Method::DELETE, versions),
        (Method::GET, version),
        (Method::POST, version),
        (Method::OPTIONS, "/info"),
        (Method::OPTIONS, "/version"),
        (Method::OPTIONS, "/management"),
        (Method::OPTIONS, "/api/v1/interpolate"),
        (Method::GET, "/api/v1/bulk-regenerate"),
        (Method::PUT, "/api/v1/bulk-regenerate"),
        (Method::PATCH, "/api/v1/data"),
        (Method::GET, "/api/v1/regenerate"),
        (Method::PUT, "/api/v1/regenerate"),
        (Method::DELETE, "/api/v1/regenerate"),
        (Method::GET, "/api/v1/interpolate"),
        (Method::PUT, "/api/v1/interpolate"),
        (Method::DELETE, "/api/v1/interpolate"),
        (Method::PUT, by_id),
        (Method::POST, by_id),
        (Method::DELETE, by_id),
        (Method::OPTIONS, "/api/v1/data"),
        (Method::HEAD, "/api/v1/interpolate"),
        (Method::PUT, "/management"),
        (Method::DELETE, "/management"),
        (Method::POST, "/version"),
        (Method::DELETE, "/version"),
        (Method::POST, "/info"),
        (Method::PUT, "/health"),
        (Method::DELETE, "/health"),
    ]
}

#[tokio::test]
async fn head_responds_like_get_without_a_body() {
    let server = Server::reused().await;
    given::set_value(&server, "/a", "v").await;
    for path in [
        "/info",
        "/health",
        "/version",
        "/management",
        "/api/v1/data?name=/a",
        "/api/v1/data?name=/absent",
        "/api/v1/data",
        "/api/v1/certificates",
        "/unknown",
    ] {
        let get = server.get(path).await;
        let head = server.send(server.authorized(Method::HEAD, path)).await;
        assert_eq!(
            (head.status, head.body.as_str()),
            (get.status, ""),
            "{path}"
        );
        assert_eq!(
            head.header("content-type"),
            get.header("content-type"),
            "{path}"
        );
    }
    for path in [
        "/version",
        "/management",
        "/api/v1/data?name=/a",
        "/unknown",
    ] {
        let response = server.send(server.request(Method::HEAD, path)).await;
        response.expect(401);
    }
}

// Query parameters.

#[tokio::test]
async fn a_missing_or_empty_name_is_400_and_the_error_names_it() {
    let server = Server::reused().await;
    for query in [
        "",
        "?",
        "?name=",
        "?name",
        "?current=true",
        "?versions=1",
        "?Name=/a",
        // The listing of all paths, which the API no longer has.
        "?paths=true",
    ] {
        let path = format!("/api/v1/data{query}");
        for response in [server.get(&path).await, server.delete(&path).await] {
            response.expect_error(400, "name");
        }
    }
}

#[tokio::test]
async fn a_duplicate_parameter_is_400_and_named() {
    let server = Server::reused().await;
    given::set_value(&server, "/a", "v").await;
    for (query, parameter) in [
        ("name=/a&name=/a", "name"),
        ("name=/a&n%61me=/b", "name"),
        ("name=/a&versions=1&versions=2", "versions"),
        ("name=/a&current=true&current=true", "current"),
        ("path=/a&path=/b", "path"),
        ("name-like=a&name-like=b", "name-like"),
        (
            "path=&expires-within-days=1&expires-within-days=2",
            "expires-within-days",
        ),
    ] {
        let response = server.get(&format!("/api/v1/data?{query}")).await;
        response.expect_error(400, parameter);
    }
    let response = server.delete("/api/v1/data?name=/a&name=/b").await;
    response.expect(400);
    assert_eq!(given::versions(&server, "/a").await.len(), 1);
}

#[tokio::test]
async fn an_unparsable_scalar_is_400_and_names_the_parameter() {
    let server = Server::reused().await;
    given::set_value(&server, "/a", "v").await;
    for (query, parameter) in [
        ("name=/a&versions=abc", "versions"),
        ("name=/a&versions=1.5", "versions"),
        ("name=/a&versions=%201", "versions"),
        ("name=/a&versions=99999999999999999999", "versions"),
        ("name=/a&versions=-1", "versions"),
        ("name=/a&current=maybe", "current"),
        ("name=/a&current=2", "current"),
        ("path=/&expires-within-days=x", "expires-within-days"),
        ("name-like=a&expires-within-days=1.5", "expires-within-days"),
        // Parameters without an effect are checked, too.
        ("path=/&versions=abc", "versions"),
        ("path=/&versions=-1", "versions"),
        ("name-like=a&name=/a&current=maybe", "current"),
        ("name=/a&expires-within-days=x", "expires-within-days"),
        ("name=/a&effective=maybe", "effective"),
    ] {
        let response = server.get(&format!("/api/v1/data?{query}")).await;
        response.expect_error(400, parameter);
    }
}

#[tokio::test]
async fn current_and_versions_exclude_each_other() {
    let server = Server::reused().await;
    for text in ["one", "two", "three"] {
        given::set_value(&server, "/a", text).await;
    }
    let both = server
        .get("/api/v1/data?name=/a&current=true&versions=1")
        .await
        .expect(400);
    assert!(!both.error().is_empty());
    let response = server
        .get("/api/v1/data?name=/a&current=false&versions=2")
        .await
        .expect(200);
    assert_eq!(given::versions_in(&response).len(), 2);
}

#[tokio::test]
async fn path_and_name_like_override_name_and_exclude_each_other() {
    let server = Server::reused().await;
    given::set_value(&server, "/p/a", "v").await;
    given::set_value(&server, "/q/b", "v").await;
    assert_eq!(
        given::found_names(&server, "name=/q/b&path=/p").await,
        ["/p/a"]
    );
    let actual = given::found_names(&server, "name=/q/b&name-like=p/").await;
    assert_eq!(actual, ["/p/a"]);
    let response = server
        .get("/api/v1/data?path=/p&name-like=a")
        .await
        .expect(400);
    assert!(!response.error().is_empty());
}

#[tokio::test]
async fn query_values_are_percent_decoded() {
    let server = Server::reused().await;
    given::set_value(&server, "/a/b:(c)[1]", "v").await;
    for query in [
        "name=/a/b:(c)[1]",
        "name=%2Fa%2Fb%3A%28c%29%5B1%5D",
        "name=%2fa/b:(c)%5b1%5d",
        "current=true&name=a%2Fb:(c)[1]",
    ] {
        let response = server.get(&format!("/api/v1/data?{query}")).await;
        assert_eq!(response.status, 200, "{query}: {response:?}");
        assert_eq!(given::versions_in(&response).len(), 1, "{query}");
    }
    server.get("/api/v1/data?name=%2A").await.expect(404);
    let response = server
        .delete("/api/v1/data?name=%2Fa%2Fb%3A%28c%29%5B1%5D")
        .await;
    response.expect(204);
    assert_eq!(
        server.get("/api/v1/data?path=").await.json(),
        json!({"credentials": []})
    );
}
