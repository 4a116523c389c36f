//! `DELETE /api/v1/data`.

use axum::http::StatusCode;
use serde_json::json;

use super::{DATA, check};
use crate::harness::Service;

#[tokio::test]
async fn deleting_returns_no_body_and_then_not_found() {
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
