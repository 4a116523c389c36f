//! What a resolver does wrong ends its own request.

use keywright_harness::{Options, Server, component};
use serde_json::json;

/// A server whose resolver does this in the place of its work.
async fn server(behaviour: &str) -> Server {
    let section = format!(
        "[resolver]\ncomponent = \"{}\"\ngrants = [\"random\", \"signing\"]\n\
         limits = {{ deadline_ms = 1000 }}\nsettings = {{ find-references = \"{behaviour}\" }}",
        component("hostile").display(),
    );
    Server::start_with(&Options::default().without_resolver().extra(&section)).await
}

#[tokio::test]
async fn each_misbehaviour_has_an_error_of_its_own() {
    let malformed = "returned something of another shape than it declared";
    for (behaviour, fault) in [
        ("loop", "did not end within its deadline"),
        ("allocate", "asked for more memory than its limit"),
        ("panic", "trapped"),
        ("many-references", "returned more than its output limit"),
        ("amplify", "returned more than its output limit"),
        ("long-name", "returned more than its output limit"),
        ("twice", malformed),
        ("within", malformed),
        ("misconfigured", "says that its settings are wrong"),
        ("other", "reported a failure of its own"),
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
async fn a_place_that_the_document_does_not_have_is_the_plugins_fault() {
    let server = server("most-references").await;
    server.set("x", "json", json!({})).await.expect(200);
    let answer = server.post("/api/v1/interpolate", json!({"a": 1})).await;
    assert!([404, 500].contains(&answer.status), "{}", answer.body);
    answer.error();
}

#[tokio::test]
async fn a_document_that_it_refuses_is_400_in_short_and_printable_words() {
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
async fn a_server_without_a_resolver_serves_everything_else() {
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
