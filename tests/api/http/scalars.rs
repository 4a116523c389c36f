//! Lenient parsing of scalars.

use keywright_harness::Server;
use serde_json::{Value, json};

use crate::given;

#[tokio::test]
async fn strings_are_accepted_as_booleans() {
    let server = Server::start().await;
    let digits =
        json!({"exclude_upper": "true", "exclude_lower": "true", "include_special": "false"});
    let version = given::generate(&server, "/a", "password", digits).await;
    let password = version["value"].as_str().unwrap();
    assert!(
        password.bytes().all(|byte| byte.is_ascii_digit()),
        "not only digits"
    );

    let overwrite = json!({"name": "/a", "type": "password", "overwrite": "true"});
    server.post("/api/v1/data", overwrite).await.expect(200);
    let regenerate = json!({"name": "/a", "regenerate": "true"});
    server.post("/api/v1/data", regenerate).await.expect(200);
    assert_eq!(given::versions(&server, "/a").await.len(), 3);

    let certificate = json!({"common_name": "c", "is_ca": "true"});
    let version = given::generate(&server, "/c", "certificate", certificate).await;
    assert_eq!(version["certificate_authority"], true);
}

#[tokio::test]
async fn strings_are_accepted_as_integers() {
    let server = Server::start().await;
    let version = given::generate(&server, "/a", "password", json!({"length": "12"})).await;
    assert_eq!(version["value"].as_str().unwrap().len(), 12);
    let converged = given::generate(&server, "/a", "password", json!({"length": 12})).await;
    assert_eq!(converged["id"], version["id"]);
    let certificate = json!({"common_name": "c", "self_sign": true, "duration": "7"});
    let version = given::generate(&server, "/c", "certificate", certificate).await;
    assert_eq!(version["duration_used"], 7);
}

#[tokio::test]
async fn an_invalid_boolean_is_400() {
    let server = Server::start().await;
    for word in [json!("yes"), json!("1"), json!(""), json!([]), json!({})] {
        for body in [
            json!({"name": "/a", "type": "password", "parameters": {"exclude_upper": word}}),
            json!({"name": "/a", "type": "password", "overwrite": word}),
        ] {
            let answer = server.post("/api/v1/data", body.clone()).await;
            assert_eq!(answer.status, 400, "{body}: {answer:?}");
            assert!(!answer.error().is_empty());
        }
    }
    server.get("/api/v1/data?name=/a").await.expect(404);
}

#[tokio::test]
async fn an_invalid_integer_is_400() {
    let server = Server::start().await;
    for number in [
        json!("twelve"),
        json!("1.5"),
        json!(12.5),
        json!(""),
        json!([]),
        Value::Null,
    ] {
        let body = json!({"name": "/a", "type": "password", "parameters": {"length": number}});
        let answer = server.post("/api/v1/data", body.clone()).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert!(!answer.error().is_empty());
    }
    server.get("/api/v1/data?name=/a").await.expect(404);
}

#[tokio::test]
async fn the_type_may_have_any_casing_and_is_returned_in_lower_case() {
    let server = Server::start().await;
    for credential_type in ["value", "VALUE", "Value"] {
        let version = given::set(&server, "/v", credential_type, json!("v")).await;
        assert_eq!(version["type"], "value");
    }
    for credential_type in ["password", "PASSWORD", "passWord"] {
        let version = given::generate(&server, "/p", credential_type, json!({})).await;
        assert_eq!(version["type"], "password");
    }
    assert_eq!(given::versions(&server, "/v").await.len(), 3);
    assert_eq!(given::versions(&server, "/p").await.len(), 1);
}

#[tokio::test]
async fn the_mode_is_accepted_in_lower_case_only() {
    let server = Server::start().await;
    for mode in ["overwrite", "no-overwrite", "converge"] {
        let body = json!({"name": "/a", "type": "password", "mode": mode});
        server.post("/api/v1/data", body).await.expect(200);
    }
    for mode in [
        "Overwrite",
        "OVERWRITE",
        "no_overwrite",
        "NO-OVERWRITE",
        "Converge",
        "",
        "merge",
    ] {
        let body = json!({"name": "/a", "type": "password", "mode": mode});
        let answer = server.post("/api/v1/data", body).await;
        assert_eq!(answer.status, 400, "{mode}: {answer:?}");
        assert!(!answer.error().is_empty());
    }
    assert_eq!(given::versions(&server, "/a").await.len(), 1);
}
