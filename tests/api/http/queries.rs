//! Query parameters.

use keywright_harness::Server;
use serde_json::json;

use crate::given;

#[tokio::test]
async fn a_missing_or_empty_name_is_400_and_the_error_names_it() {
    let server = Server::start().await;
    for query in [
        "",
        "?",
        "?name=",
        "?name",
        "?current=true",
        "?versions=1",
        "?Name=/a",
    ] {
        let path = format!("/api/v1/data{query}");
        for answer in [server.get(&path).await, server.delete(&path).await] {
            assert_eq!(answer.status, 400, "{query}: {answer:?}");
            assert!(answer.error().contains("name"), "{query}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn the_removed_listing_of_all_paths_is_400() {
    let server = Server::start().await;
    let answer = server.get("/api/v1/data?paths=true").await.expect(400);
    assert!(answer.error().contains("name"), "{answer:?}");
}

#[tokio::test]
async fn a_duplicate_parameter_is_400_and_named() {
    let server = Server::start().await;
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
        let answer = server.get(&format!("/api/v1/data?{query}")).await;
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
        assert!(answer.error().contains(parameter), "{query}: {answer:?}");
    }
    server
        .delete("/api/v1/data?name=/a&name=/b")
        .await
        .expect(400);
    assert_eq!(given::versions(&server, "/a").await.len(), 1);
}

#[tokio::test]
async fn an_unparsable_scalar_is_400_and_names_the_parameter() {
    let server = Server::start().await;
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
        // Also where they have no effect.
        ("path=/&versions=abc", "versions"),
        ("path=/&versions=-1", "versions"),
        ("name-like=a&name=/a&current=maybe", "current"),
        ("name=/a&expires-within-days=x", "expires-within-days"),
        ("name=/a&effective=maybe", "effective"),
    ] {
        let answer = server.get(&format!("/api/v1/data?{query}")).await;
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
        assert!(answer.error().contains(parameter), "{query}: {answer:?}");
    }
}

#[tokio::test]
async fn current_and_versions_exclude_each_other() {
    let server = Server::start().await;
    for text in ["one", "two", "three"] {
        given::set_value(&server, "/a", text).await;
    }
    let both = server
        .get("/api/v1/data?name=/a&current=true&versions=1")
        .await
        .expect(400);
    assert!(!both.error().is_empty());
    let answer = server
        .get("/api/v1/data?name=/a&current=false&versions=2")
        .await
        .expect(200);
    assert_eq!(given::data(&answer).len(), 2);
}

#[tokio::test]
async fn path_and_name_like_win_over_name_and_exclude_each_other() {
    let server = Server::start().await;
    given::set_value(&server, "/p/a", "v").await;
    given::set_value(&server, "/q/b", "v").await;
    assert_eq!(given::found(&server, "name=/q/b&path=/p").await, ["/p/a"]);
    assert_eq!(
        given::found(&server, "name=/q/b&name-like=p/").await,
        ["/p/a"]
    );
    let answer = server
        .get("/api/v1/data?path=/p&name-like=a")
        .await
        .expect(400);
    assert!(!answer.error().is_empty());
}

#[tokio::test]
async fn values_are_percent_decoded() {
    let server = Server::start().await;
    given::set_value(&server, "/a/b:(c)[1]", "v").await;
    for query in [
        "name=/a/b:(c)[1]",
        "name=%2Fa%2Fb%3A%28c%29%5B1%5D",
        "name=%2fa/b:(c)%5b1%5d",
        "current=true&name=a%2Fb:(c)[1]",
    ] {
        let answer = server.get(&format!("/api/v1/data?{query}")).await;
        assert_eq!(answer.status, 200, "{query}: {answer:?}");
        assert_eq!(given::data(&answer).len(), 1, "{query}");
    }
    server.get("/api/v1/data?name=%2A").await.expect(404);
    let answer = server
        .delete("/api/v1/data?name=%2Fa%2Fb%3A%28c%29%5B1%5D")
        .await;
    answer.expect(204);
    assert_eq!(
        server.get("/api/v1/data?path=").await.json(),
        json!({"credentials": []})
    );
}
