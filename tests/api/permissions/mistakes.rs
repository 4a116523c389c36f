//! Invalid input results in a client error, never in a server error.

use keywright_harness::{Caller, Server};
use reqwest::Method;

use super::{BY_CREDENTIAL, PERMISSIONS, address, stored};

/// Unusual JSON values for a field.
const ODD_VALUES: [&str; 18] = [
    "null",
    "true",
    "0",
    "1e999",
    r#""""#,
    r#"" ""#,
    r#""/""#,
    r#""*""#,
    r#""\u0000""#,
    r#""\ud83d\udd11\u202e""#,
    r#""../../etc/passwd""#,
    r#""'; drop table permission; --""#,
    "[]",
    r#"[null,[],{},"",1e400]"#,
    r#"["read",null]"#,
    "{}",
    r#"[{"path":"/a","actor":"x","operations":["read"],"path":"/b"}]"#,
    r#"{"":{"":null},"operations":{}}"#,
];

#[tokio::test]
async fn an_odd_field_is_not_a_server_error() {
    let server = Server::start().await;
    let caller = server.as_client("developer").await;
    let one = address(&server.grant("/a", "someone", &["read"]).await);
    for odd in ODD_VALUES {
        for body in [
            format!(r#"{{"path":{odd},"actor":"someone","operations":["read"]}}"#),
            format!(r#"{{"path":"/a","actor":{odd},"operations":["read"]}}"#),
            format!(r#"{{"path":"/a","actor":"someone","operations":{odd}}}"#),
            format!(r#"{{"path":"/a","actor":"someone","operations":[{odd}]}}"#),
            format!(r#"{{"operations":{odd}}}"#),
            odd.to_owned(),
        ] {
            for (method, path) in [
                (Method::POST, PERMISSIONS),
                (Method::PUT, &one),
                (Method::PATCH, &one),
            ] {
                expect_no_fault(&caller, method, path, &body).await;
            }
            for body in [
                format!(r#"{{"credential_name":"/a","permissions":[{body}]}}"#),
                format!(r#"{{"credential_name":"/a","permissions":{odd}}}"#),
                format!(r#"{{"credential_name":{odd},"permissions":[{body}]}}"#),
            ] {
                expect_no_fault(&caller, Method::POST, BY_CREDENTIAL, &body).await;
            }
        }
    }
    assert!(stored(&server, "/a", "someone").await.is_some());
}

#[tokio::test]
async fn an_odd_query_is_not_a_server_error() {
    let server = Server::start().await;
    let caller = server.as_client("developer").await;
    let slashes = "/".repeat(3_000);
    for odd in [
        "%00",
        "%FF",
        "%",
        "*",
        "%2F%2A%2F%2A",
        "'",
        "%27%20or%201=1",
        "a%0d%0ab",
        &slashes,
        &"x/".repeat(1_500),
        &"%2A".repeat(1_000),
    ] {
        for asked in [
            format!("{PERMISSIONS}?path={odd}&actor=x"),
            format!("{PERMISSIONS}?path=/a&actor={odd}"),
            format!("{PERMISSIONS}/explain?path={odd}&actor=x&operation=read"),
            format!("{PERMISSIONS}/explain?path=/a&actor={odd}&operation=read"),
            format!("{PERMISSIONS}/explain?path=/a&actor=x&operation={odd}"),
            format!("{BY_CREDENTIAL}?credential_name={odd}"),
            format!("/api/v1/data?name={odd}"),
        ] {
            expect_no_fault(&caller, Method::GET, &asked, "").await;
        }
        let asked = format!("{BY_CREDENTIAL}?credential_name={odd}&actor={odd}");
        expect_no_fault(&caller, Method::DELETE, &asked, "").await;
    }
}

async fn expect_no_fault(caller: &Caller, method: Method, path: &str, body: &str) {
    let request = caller.request(method, path).body(body.to_owned());
    let answer = keywright_harness::Answer::to(request).await;
    assert!(answer.status < 500, "{path} {body}: {answer:?}");
    if answer.status >= 400 {
        assert!(!answer.error().is_empty(), "{path} {body}");
    }
}
