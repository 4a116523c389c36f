//! The type json.

use keywright_harness::Server;
use reqwest::Method;
use serde_json::json;

#[tokio::test]
async fn any_object_is_kept_unchanged() {
    let server = Server::start().await;
    for value in [
        json!({}),
        json!({"": null}),
        json!({"a": {"b": [1, 2.5, true, null, {"c": "d"}]}}),
        json!({"name": "x", "type": "y", "value": {"value": 1}}),
        json!({"clé": "🔑", "quote\"": "\\"}),
    ] {
        let answer = server
            .set("/a", "json", value.clone())
            .await
            .expect(200)
            .json();
        assert_eq!(answer["value"], value);
        assert_eq!(server.versions("/a").await[0]["value"], value);
    }
}

#[tokio::test]
async fn numbers_and_field_order_are_kept_as_written() {
    let server = Server::start().await;
    let value = r#"{"z":12345678901234567890123456789,"a":1.10,"m":-0}"#;
    let body = format!(r#"{{"name":"/a","type":"json","value":{value}}}"#);
    let request = server.authorized(Method::PUT, "/api/v1/data").body(body);
    let answer = server.send(request).await.expect(200);
    assert!(answer.body.contains(value), "{}", answer.body);
    let read = server.get("/api/v1/data?name=/a").await.expect(200);
    assert!(read.body.contains(value), "{}", read.body);
}

#[tokio::test]
async fn a_value_that_is_not_an_object_is_400() {
    let server = Server::start().await;
    for value in [
        json!([]),
        json!([{"a": 1}]),
        json!("{}"),
        json!(1),
        json!(false),
    ] {
        server.set("/a", "json", value).await.expect(400).error();
    }
}
