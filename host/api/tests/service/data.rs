//! Credentials: the statuses and the bodies of each verb.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::harness::Service;

const DATA: &str = "/api/v1/data";

async fn check(service: &Service, method: &str, path: &str, body: Value, status: u16) -> String {
    let answer = service.send_json(method, path, &body).await;
    assert_eq!(answer.status.as_u16(), status, "{body}: {}", answer.text);
    if answer.status.is_success() {
        return String::new();
    }
    answer.error()
}

#[tokio::test]
async fn what_is_set_is_read_by_name_and_by_id() {
    let service = Service::new();
    let body =
        json!({"name": "a/B", "type": "VALUE", "value": "one", "metadata": {"b": 1, "a": 2}});
    let set = service.send_json("PUT", DATA, &body).await;
    assert_eq!(set.status, StatusCode::OK);
    let members: Vec<String> = set.json().as_object().unwrap().keys().cloned().collect();
    let order = [
        "type",
        "version_created_at",
        "id",
        "name",
        "metadata",
        "value",
    ];
    assert_eq!(members, order);
    assert_eq!(set.json()["type"], "value");
    assert_eq!(set.json()["name"], "/a/B");
    assert_eq!(set.json()["version_created_at"], "2027-01-15T08:00:00Z");
    let by_name = service.get("/api/v1/data?current=true&name=%2FA%2Fb").await;
    assert_eq!(by_name.text, format!(r#"{{"data":[{}]}}"#, set.text));
    let id = set.json()["id"].as_str().unwrap().to_owned();
    let by_id = service.get(&format!("/api/v1/data/{id}/")).await;
    assert_eq!(by_id.text, set.text);
}

#[tokio::test]
async fn reading_what_is_not_there_is_not_found() {
    let service = Service::new();
    for path in [
        "/api/v1/data?name=absent",
        "/api/v1/data?name=bad%20name*",
        "/api/v1/data/7c3b2d1e-0000-4000-8000-000000000000",
        "/api/v1/data/no-uuid",
        "/api/v1/data/%FF",
    ] {
        let answer = service.get(path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        assert!(!answer.error().is_empty());
    }
}

#[tokio::test]
async fn the_query_chooses_versions() {
    let service = Service::new();
    for value in ["1", "2", "3"] {
        let body = json!({"name": "a", "type": "value", "value": value});
        check(&service, "PUT", DATA, body, 200).await;
    }
    for (query, values) in [
        ("name=a", vec!["3", "2", "1"]),
        ("name=a&versions=2", vec!["3", "2"]),
        ("name=a&versions=99999999999", vec!["3", "2", "1"]),
        ("name=a&current=false&versions=1", vec!["3"]),
        ("name=a&current=true", vec!["3"]),
    ] {
        let answer = service.get(&format!("{DATA}?{query}")).await;
        let data = answer.json()["data"].clone();
        let read: Vec<&str> = data
            .as_array()
            .unwrap()
            .iter()
            .map(|version| version["value"].as_str().unwrap())
            .collect();
        assert_eq!(read, values, "{query}");
    }
    for (query, status, named) in [
        ("name=a&versions=0", 404, ""),
        ("name=a&versions=-1", 400, "versions"),
        ("name=a&versions=abc", 400, "versions"),
        ("name=a&versions=1&versions=1", 400, "versions"),
        ("name=a&current=maybe", 400, "current"),
        ("name=a&current=true&versions=2", 400, "current"),
        ("name=a&name=b", 400, "name"),
        ("name=", 400, "name"),
        ("", 400, "name"),
        ("paths=true", 400, "name"),
    ] {
        let answer = service.get(&format!("{DATA}?{query}")).await;
        assert_eq!(answer.status.as_u16(), status, "{query}");
        assert!(answer.error().contains(named), "{query}");
    }
}

#[tokio::test]
async fn a_search_wins_over_a_name() {
    let service = Service::new();
    for name in ["/a/one", "/b/two"] {
        let body = json!({"name": name, "type": "value", "value": "x"});
        check(&service, "PUT", DATA, body, 200).await;
    }
    for (query, names) in [
        ("path=", vec!["/b/two", "/a/one"]),
        ("name-like=", vec!["/b/two", "/a/one"]),
        ("path=a&name=/b/two", vec!["/a/one"]),
        ("name-like=TW&name=", vec!["/b/two"]),
        ("path=/none", vec![]),
    ] {
        let answer = service.get(&format!("{DATA}?{query}")).await;
        let found = answer.json()["credentials"].clone();
        let read: Vec<&str> = found
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["name"].as_str().unwrap())
            .collect();
        assert_eq!(read, names, "{query}");
    }
    for query in [
        "path=a&name-like=b",
        "path=a&expires-within-days=x",
        "path=a&path=b",
    ] {
        let answer = service.get(&format!("{DATA}?{query}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
    }
    let expiring = service
        .get("/api/v1/data?path=a&expires-within-days=1")
        .await;
    assert_eq!(
        expiring.text,
        r#"{"credentials":[{"name":"/a/one","version_created_at":"2027-01-15T08:00:00Z","expiry_date":"2027-01-16T08:00:00Z"}]}"#
    );
}

#[tokio::test]
async fn deleting_answers_nothing_and_then_not_found() {
    let service = Service::new();
    let body = json!({"name": "a", "type": "value", "value": "x"});
    check(&service, "PUT", DATA, body, 200).await;
    let deleted = service.send("DELETE", "/api/v1/data?name=/A", "").await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert_eq!(deleted.text, "");
    for (query, status) in [
        ("name=a", 404),
        ("name=", 400),
        ("", 400),
        ("name=a&name=a", 400),
    ] {
        let answer = service.send("DELETE", &format!("{DATA}?{query}"), "").await;
        assert_eq!(answer.status.as_u16(), status, "{query}");
    }
}

#[tokio::test]
async fn set_refuses_each_mistake_with_its_status() {
    let service = Service::new();
    let long = "x".repeat(7_000);
    for (body, status, named) in [
        (
            json!({"name": "a", "value": "x"}),
            422,
            "value, json, certificate",
        ),
        (json!({"name": "a", "type": "", "value": "x"}), 422, "type"),
        (
            json!({"name": "a", "type": null, "value": "x"}),
            422,
            "type",
        ),
        (json!({"name": "a", "type": 1, "value": "x"}), 422, "type"),
        (
            json!({"name": "a", "type": "pgp", "value": "x"}),
            422,
            "type",
        ),
        (json!({"type": "pgp"}), 422, "type"),
        (json!({"name": "a", "type": "value"}), 400, "value"),
        (
            json!({"name": "a", "type": "value", "value": null}),
            400,
            "value",
        ),
        (
            json!({"name": "a", "type": "value", "value": ""}),
            400,
            "value",
        ),
        (
            json!({"name": "a", "type": "value", "value": 1}),
            400,
            "value",
        ),
        (
            json!({"name": "a", "type": "json", "value": []}),
            400,
            "value",
        ),
        (json!({"type": "value", "value": "x"}), 400, "name"),
        (
            json!({"name": "/", "type": "value", "value": "x"}),
            400,
            "name",
        ),
        (
            json!({"name": "a b", "type": "value", "value": "x"}),
            400,
            "name",
        ),
        (
            json!({"name": 1, "type": "value", "value": "x"}),
            400,
            "name",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x", "mode": "overwrite"}),
            422,
            "mode",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x", "overwrite": true}),
            422,
            "overwrite",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x", "parameters": {}}),
            422,
            "parameters",
        ),
        (
            json!({"name": "a", "type": "user", "value": {"bogus": 1}}),
            422,
            "bogus",
        ),
        (
            json!({"name": "a", "type": "certificate", "value": {"bogus": 1}}),
            422,
            "bogus",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x", "metadata": {"a": long}}),
            400,
            "metadata",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x".repeat(65_537)}),
            413,
            "65,536",
        ),
    ] {
        let error = check(&service, "PUT", DATA, body.clone(), status).await;
        assert!(error.contains(named), "{body}: {error}");
    }
}

#[tokio::test]
async fn a_value_comes_back_with_its_numbers_as_they_were() {
    let service = Service::new();
    let body = "{\"name\": \"n\", \"type\": \"json\", \"value\": {\"n\": 12345678901234567890123, \"f\": 1.10}}";
    let set = service.send("PUT", DATA, body).await;
    let value = r#""value":{"n":12345678901234567890123,"f":1.10}"#;
    assert!(set.text.contains(value), "{}", set.text);
    assert!(
        service
            .get("/api/v1/data?name=n")
            .await
            .text
            .contains(value)
    );
}

#[tokio::test]
async fn any_configured_type_is_set_and_generated() {
    let service = Service::new();
    let body = json!({"name": "w", "type": "WireGuard", "value": {"key": 1}});
    check(&service, "PUT", DATA, body, 200).await;
    let generated = service
        .send_json(
            "POST",
            DATA,
            &json!({"name": "g", "type": "wireguard", "parameters": {"a": 1}}),
        )
        .await;
    assert_eq!(generated.json()["value"], json!({"a": 1}));
}

#[tokio::test]
async fn generate_refuses_each_mistake_with_its_status() {
    let service = Service::new();
    let long = "x".repeat(7_000);
    for (body, status, named) in [
        (json!({"name": "a"}), 400, "type"),
        (json!({"name": "a", "type": "pgp"}), 400, "type"),
        (json!({"name": "a", "type": "value"}), 400, "value"),
        (
            json!({"name": "a", "type": "json", "parameters": {}}),
            400,
            "json",
        ),
        (json!({"type": "password"}), 400, "name"),
        (json!({"type": "pgp"}), 400, "name"),
        (
            json!({"name": "a", "type": "certificate"}),
            400,
            "parameters",
        ),
        (
            json!({"name": "a", "type": "password", "mode": "OVERWRITE"}),
            400,
            "mode",
        ),
        (
            json!({"name": "a", "type": "password", "mode": 1}),
            400,
            "mode",
        ),
        (
            json!({"name": "a", "type": "password", "overwrite": null}),
            400,
            "overwrite",
        ),
        (
            json!({"name": "a", "type": "password", "overwrite": "yes"}),
            400,
            "overwrite",
        ),
        (
            json!({"name": "a", "type": "password", "parameters": []}),
            400,
            "parameters",
        ),
        (
            json!({"name": "a", "type": "password", "bogus": 1}),
            400,
            "bogus",
        ),
        (
            json!({"name": "a", "type": "password", "value": {"username": "x"}}),
            400,
            "value",
        ),
        (
            json!({"name": "a", "type": "user", "value": {"password": "x"}}),
            400,
            "password",
        ),
        (
            json!({"name": "a", "type": "user", "value": "x"}),
            400,
            "value",
        ),
        (
            json!({"name": "a", "type": "password", "regenerate": false}),
            400,
            "regenerate",
        ),
        (
            json!({"name": "a", "type": "password", "parameters": {"fault": "?"}}),
            400,
            "fault",
        ),
        (
            json!({"name": "a", "type": "password", "parameters": {"fault": "trap"}}),
            500,
            "echo",
        ),
        (
            json!({"name": "a", "type": "password", "metadata": {"a": long}}),
            400,
            "metadata",
        ),
    ] {
        let error = check(&service, "POST", DATA, body.clone(), status).await;
        assert!(error.contains(named), "{body}: {error}");
    }
    let full = json!({"name": "a", "type": "password", "parameters": {"fault": "full"}});
    let answer = service.send_json("POST", DATA, &full).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.headers["retry-after"], "3");
}

#[tokio::test]
async fn the_mode_decides_whether_a_version_is_added() {
    let service = Service::new();
    let generate = async |members: Value| {
        let mut body = json!({"name": "p", "type": "password", "parameters": {"length": 20}});
        for (name, value) in members.as_object().unwrap() {
            body[name] = value.clone();
        }
        let answer = service.send_json("POST", DATA, &body).await;
        assert_eq!(answer.status, StatusCode::OK, "{body}: {}", answer.text);
        answer.json()["id"].as_str().unwrap().to_owned()
    };
    let mut newest = generate(json!({})).await;
    for (members, is_written) in [
        (json!({}), false),
        (json!({"mode": null}), false),
        (json!({"mode": "converge"}), false),
        (json!({"mode": "converge", "overwrite": false}), false),
        (json!({"mode": "converge", "overwrite": true}), false),
        (
            json!({"parameters": {"length": 21}, "mode": "no-overwrite"}),
            false,
        ),
        (
            json!({"parameters": {"length": 21}, "overwrite": false}),
            false,
        ),
        (
            json!({"parameters": {"length": 21}, "overwrite": "false"}),
            false,
        ),
        (json!({"parameters": {"length": 21}}), true),
        (json!({"mode": "overwrite"}), true),
        (json!({"mode": "overwrite", "overwrite": false}), true),
        (json!({"overwrite": true}), true),
    ] {
        let id = generate(members.clone()).await;
        assert_eq!(id != newest, is_written, "{members}");
        newest = id;
    }
}

#[tokio::test]
async fn the_user_name_of_the_value_wins_unless_it_is_empty() {
    let service = Service::new();
    for (members, username) in [
        (json!({"value": {"username": "v"}}), json!("v")),
        (
            json!({"value": {"username": "v"}, "parameters": {"username": "p"}}),
            json!("v"),
        ),
        (
            json!({"value": {"username": ""}, "parameters": {"username": "p"}}),
            json!("p"),
        ),
        (
            json!({"value": {"username": ""}, "parameters": {}}),
            Value::Null,
        ),
        (json!({"value": {"username": null}}), Value::Null),
        (json!({"value": null}), Value::Null),
        (json!({}), Value::Null),
    ] {
        let mut body = json!({"name": "u", "type": "User", "mode": "overwrite"});
        for (name, value) in members.as_object().unwrap() {
            body[name] = value.clone();
        }
        let answer = service.send_json("POST", DATA, &body).await;
        assert_eq!(answer.json()["value"]["username"], username, "{body}");
    }
}

#[tokio::test]
async fn a_generated_certificate_says_how_it_was_issued() {
    let service = Service::new();
    let body = json!({"name": "c", "type": "certificate", "parameters": {"duration": 365}});
    let generated = service.send_json("POST", DATA, &body).await;
    let tail = r#""transitional":false,"certificate_authority":true,"self_signed":true,"generated":true,"expiry_date":"2030-01-01T00:00:00Z","duration_overridden":false,"duration_used":365,"key_length":2048}"#;
    assert!(generated.text.ends_with(tail), "{}", generated.text);
    let read = service.get("/api/v1/data?name=c").await;
    assert!(
        read.text
            .ends_with(r#""expiry_date":"2030-01-01T00:00:00Z"}]}"#)
    );
    let kept = service.send_json("POST", DATA, &body).await;
    assert_eq!(kept.json()["duration_used"], 0);
}

#[tokio::test]
async fn regenerate_works_in_both_forms() {
    let service = Service::new();
    let generate = json!({"name": "/p", "type": "password", "parameters": {"length": 20}});
    check(&service, "POST", DATA, generate, 200).await;
    for (path, body) in [
        (
            "/api/v1/regenerate",
            json!({"name": "p", "metadata": {"a": 1}}),
        ),
        (
            DATA,
            json!({"name": "p", "regenerate": true, "metadata": {"a": 1}}),
        ),
        (
            DATA,
            json!({"name": "p", "regenerate": "true", "type": "password", "metadata": {"a": 1}}),
        ),
    ] {
        let answer = service.send_json("POST", path, &body).await;
        assert_eq!(answer.status, StatusCode::OK, "{body}");
        assert_eq!(answer.json()["value"], json!({"length": 20}));
        assert_eq!(answer.json()["metadata"], json!({"a": 1}));
    }
    let versions = service.get("/api/v1/data?name=p").await.json();
    assert_eq!(versions["data"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn regenerate_refuses_each_mistake_with_its_status() {
    let service = Service::new();
    let set = json!({"name": "/s", "type": "password", "value": "x"});
    check(&service, "PUT", DATA, set, 200).await;
    let long = json!({"a": "x".repeat(7_000)});
    for (body, by_name, through_data) in [
        (json!({}), 400, 400),
        (json!({"name": null}), 400, 400),
        (json!({"name": ""}), 400, 400),
        (json!({"name": 1}), 400, 400),
        (json!({"name": "absent"}), 404, 404),
        (json!({"name": "s"}), 400, 400),
        (json!({"name": "s", "bogus": 1}), 422, 400),
        (json!({"name": "s", "mode": "overwrite"}), 422, 400),
        (json!({"name": "s", "metadata": long}), 413, 413),
    ] {
        check(
            &service,
            "POST",
            "/api/v1/regenerate",
            body.clone(),
            by_name,
        )
        .await;
        let mut body = body;
        body["regenerate"] = json!(true);
        check(&service, "POST", DATA, body, through_data).await;
    }
}

#[tokio::test]
async fn the_type_of_a_credential_can_not_change() {
    let service = Service::new();
    let set = json!({"name": "/s", "type": "value", "value": "x"});
    check(&service, "PUT", DATA, set, 200).await;
    let other = json!({"name": "/s", "type": "password", "value": "x"});
    check(&service, "PUT", DATA, other, 400).await;
    let generate = json!({"name": "/s", "type": "password", "mode": "no-overwrite"});
    check(&service, "POST", DATA, generate, 400).await;
}
