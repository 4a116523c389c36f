//! A misbehaving resolver only fails its own request.

use keywright_harness::{Options, Server, component};
use serde_json::json;

/// Starts a server whose resolver misbehaves in this way. Endless behaviors have a deadline of one second, others the longest
/// deadline.
async fn server(behaviour: &str) -> Server {
    let deadline_ms = if behaviour == "loop" { 1_000 } else { 600_000 };
    let section = format!(
        "[resolver]\ncomponent = \"{}\"\ngrants = [\"random\", \"signing\"]\n\
         limits = {{ deadline_ms = {deadline_ms} }}\nsettings = {{ find-references = \"{behaviour}\" }}",
        component("hostile").display(),
    );
    Server::start_with(&Options::default().without_resolver().extra(&section)).await
}

#[tokio::test]
async fn every_misbehavior_has_its_own_error() {
    let malformed = "returned output that does not have the declared form";
    for (behaviour, fault) in [
        ("loop", "exceeded its deadline"),
        ("allocate", "exceeded its memory limit"),
        ("panic", "trapped"),
        ("twice", malformed),
        ("within", malformed),
        ("misconfigured", "reported that its settings are invalid"),
        ("other", "reported an internal error"),
    ] {
        let server = server(behaviour).await;
        for name in ["x", "y"] {
            server
                .set(name, "json", json!({"secret": "hunter2"}))
                .await
                .expect(200);
        }
        let document = json!({"a": {"b": "hunter2"}});
        let answer = server.post("/api/v1/interpolate", document).await;
        assert_eq!(answer.status, 500, "{behaviour}: {}", answer.body);
        assert_eq!(
            answer.error(),
            format!("the plugin resolver {fault}"),
            "{behaviour}"
        );
        assert!(!answer.body.contains("hunter2") && !server.log().contains("hunter2"));
        server.get("/api/v1/data?name=/x").await.expect(200);
    }
}

#[tokio::test]
async fn pointer_outside_the_document_is_a_plugin_fault() {
    for pointer in [
        "/nowhere", "/a/b/c", "/list/-", "/list/2", "/list/01", "/list/a", "a", "/~", "/~2", "/A",
    ] {
        let server = server(&format!("at:{pointer}")).await;
        server
            .set("/x", "json", json!({"secret": "hunter2"}))
            .await
            .expect(200);
        let document = json!({"a": {"b": 1}, "list": [1, 2]});
        let answer = server.post("/api/v1/interpolate", document).await;
        assert_eq!(answer.status, 500, "{pointer}: {}", answer.body);
        assert_eq!(
            answer.error(),
            "the plugin resolver returned output that does not have the declared form",
            "{pointer}"
        );
        assert!(!server.log().contains("hunter2"), "{pointer}");
    }
}

#[tokio::test]
async fn any_value_in_the_document_can_be_replaced() {
    for (pointer, expected) in [
        ("/a/b", json!({"a": {"b": "filled"}, "list": [1, 2]})),
        ("/list/1", json!({"a": {"b": 1}, "list": [1, "filled"]})),
        ("/a", json!({"a": "filled", "list": [1, 2]})),
        ("", json!("filled")),
    ] {
        let server = server(&format!("at:{pointer}")).await;
        let value = json!({"secret": "s"});
        server.set("/x", "json", value.clone()).await.expect(200);
        let document = json!({"a": {"b": 1}, "list": [1, 2]});
        let answer = server.post("/api/v1/interpolate", document).await;
        let expected = expected
            .to_string()
            .replace("\"filled\"", &value.to_string());
        assert_eq!(answer.expect(200).body, expected, "{pointer}");
    }
}

#[tokio::test]
async fn too_many_or_too_long_references_are_400() {
    for behaviour in ["many-references", "amplify", "long-name"] {
        let server = server(behaviour).await;
        let answer = server.post("/api/v1/interpolate", json!({})).await;
        assert!(
            answer.expect(400).error().contains("references"),
            "{behaviour}"
        );
    }
}

#[tokio::test]
async fn rejected_document_is_400_with_a_printable_message() {
    let server = server("refuse-document").await;
    let error = server
        .post("/api/v1/interpolate", json!({}))
        .await
        .expect(400)
        .error();
    assert!(error.contains("noxxx"), "{error}");
    assert!(
        error.len() < 2_048 && !error.contains(char::is_control),
        "{error}"
    );
}

#[tokio::test]
async fn server_works_without_a_resolver() {
    let server = Server::start_with(&Options::default().without_resolver()).await;
    server
        .post("/api/v1/interpolate", json!({}))
        .await
        .expect(501)
        .error();
    server
        .generate("/a", "password", json!({}))
        .await
        .expect(200);
}
