//! Credentials: the statuses and the bodies of each verb.

mod asked;
mod authority;
mod bulk_regenerate;
mod delete;
mod find;
mod generate;
mod get;
mod regenerate;
mod set;

use serde_json::Value;

use crate::harness::Service;

/// The path of most requests.
const DATA: &str = "/api/v1/data";

/// Sends a body, asserts the status, and returns the `error` of an error response.
async fn check(service: &Service, method: &str, path: &str, body: Value, status: u16) -> String {
    let answer = service.send_json(method, path, &body).await;
    assert_eq!(answer.status.as_u16(), status, "{body}: {}", answer.text);
    if answer.status.is_success() {
        return String::new();
    }
    answer.error()
}
