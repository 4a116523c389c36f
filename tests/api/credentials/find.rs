//! GET /api/v1/data?path= and ?name-like=

use keywright_harness::Server;
use serde_json::json;

use crate::given;

#[tokio::test]
async fn a_path_finds_only_credentials_below_it() {
    let server = Server::start().await;
    let names = [
        "/a", "/a/b", "/a/bc", "/a/b/c", "/a/b/c/d", "/a-b/c", "/A/B/e", "/b/a/b/c", "/ab",
    ];
    for name in names {
        given::set_value(&server, name, "v").await;
    }
    for (path, expected) in [
        ("/a/b", &["/A/B/e", "/a/b/c/d", "/a/b/c"][..]),
        ("a/b", &["/A/B/e", "/a/b/c/d", "/a/b/c"]),
        ("/a/b/", &["/A/B/e", "/a/b/c/d", "/a/b/c"]),
        ("/A/b", &["/A/B/e", "/a/b/c/d", "/a/b/c"]),
        ("%2Fa%2Fb%2Fc", &["/a/b/c/d"]),
        ("/a", &["/A/B/e", "/a/b/c/d", "/a/b/c", "/a/bc", "/a/b"]),
        ("/a-b", &["/a-b/c"]),
        ("/ab", &[]),
        ("/a/b/c/d", &[]),
        ("/b/a", &["/b/a/b/c"]),
        ("/no/such", &[]),
        ("b/c", &[]),
    ] {
        assert_eq!(
            given::found(&server, &format!("path={path}")).await,
            expected,
            "{path}"
        );
    }
}

#[tokio::test]
async fn an_empty_path_or_text_finds_everything() {
    let server = Server::start().await;
    for name in ["/a", "/b/c", "/d/e/f"] {
        given::set_value(&server, name, "v").await;
    }
    for query in [
        "path=",
        "path",
        "path=/",
        "path=%2F",
        "name-like=",
        "name-like",
        "name-like=/",
    ] {
        assert_eq!(
            given::found(&server, query).await,
            ["/d/e/f", "/b/c", "/a"],
            "{query}"
        );
    }
}

#[tokio::test]
async fn a_text_finds_names_that_contain_it_in_any_casing() {
    let server = Server::start().await;
    for name in [
        "/deploy/Database",
        "/deploy/data",
        "/DATABASE",
        "/other/thing",
        "/d",
    ] {
        given::set_value(&server, name, "v").await;
    }
    for (text, expected) in [
        ("database", &["/DATABASE", "/deploy/Database"][..]),
        ("DataBase", &["/DATABASE", "/deploy/Database"]),
        ("dat", &["/DATABASE", "/deploy/data", "/deploy/Database"]),
        ("deploy/da", &["/deploy/data", "/deploy/Database"]),
        ("deploy%2Fda", &["/deploy/data", "/deploy/Database"]),
        ("/deploy", &["/deploy/data", "/deploy/Database"]),
        ("th", &["/other/thing"]),
        ("y/", &["/deploy/data", "/deploy/Database"]),
        (
            "d",
            &["/d", "/DATABASE", "/deploy/data", "/deploy/Database"],
        ),
        ("base", &["/DATABASE", "/deploy/Database"]),
        ("nothing", &[]),
        ("deploy/database/", &[]),
    ] {
        let found = given::found(&server, &format!("name-like={text}")).await;
        assert_eq!(found, expected, "{text}");
    }
}

#[tokio::test]
async fn every_character_of_a_search_is_literal() {
    let server = Server::start().await;
    for name in ["/p_q/a_b", "/pxq/axb", "/p.q/a.b", "/p(q)/a[b]", "/p-q/a:b"] {
        given::set_value(&server, name, "v").await;
    }
    for (query, expected) in [
        ("name-like=a_b", &["/p_q/a_b"][..]),
        ("name-like=_", &["/p_q/a_b"]),
        ("name-like=a.b", &["/p.q/a.b"]),
        ("name-like=.", &["/p.q/a.b"]),
        ("name-like=a[b]", &["/p(q)/a[b]"]),
        ("name-like=(q)", &["/p(q)/a[b]"]),
        ("name-like=a:b", &["/p-q/a:b"]),
        ("name-like=p-q", &["/p-q/a:b"]),
        ("name-like=%25", &[]),
        ("name-like=a%25b", &[]),
        ("name-like=%2A", &[]),
        ("name-like=a*", &[]),
        ("name-like=%22", &[]),
        ("name-like=%22a_b%22", &[]),
        ("name-like='", &[]),
        ("name-like=%27%20or%201=1--", &[]),
        ("name-like=a_b%20OR%20axb", &[]),
        ("name-like=NEAR(a_b)", &[]),
        ("name-like=%5C", &[]),
        ("name-like=%00", &[]),
        ("name-like=%F0%9F%94%91", &[]),
        ("path=/p_q", &["/p_q/a_b"]),
        ("path=/p.q", &["/p.q/a.b"]),
        ("path=/p%25", &[]),
        ("path=/%25", &[]),
        ("path=/p*", &[]),
        ("path=/p%5C_q", &[]),
        ("path=/p%5Bx%5Dq", &[]),
    ] {
        assert_eq!(given::found(&server, query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn an_item_has_a_name_and_the_time_of_its_newest_version() {
    let server = Server::start().await;
    given::set_value(&server, "/Team/a", "old").await;
    let newest = given::set_value(&server, "/team/A", "new").await;
    for query in ["path=/TEAM", "name-like=TEAM"] {
        let answer = server
            .get(&format!("/api/v1/data?{query}"))
            .await
            .expect(200);
        let item = json!({"name": "/Team/a", "version_created_at": newest["version_created_at"]});
        assert_eq!(answer.json(), json!({"credentials": [item]}), "{query}");
    }
}

#[tokio::test]
async fn the_last_written_credential_comes_first() {
    let server = Server::start().await;
    for name in ["/c", "/a", "/b", "/d"] {
        given::set_value(&server, name, "v").await;
    }
    for query in ["path=", "name-like=/"] {
        assert_eq!(
            given::found(&server, query).await,
            ["/d", "/b", "/a", "/c"],
            "{query}"
        );
    }
    given::set_value(&server, "/a", "again").await;
    given::set_value(&server, "/c", "again").await;
    for query in ["path=", "name-like=/"] {
        assert_eq!(
            given::found(&server, query).await,
            ["/c", "/a", "/d", "/b"],
            "{query}"
        );
    }
}

#[tokio::test]
async fn no_match_is_an_empty_list() {
    let server = Server::start().await;
    for query in [
        "path=",
        "path=/a",
        "name-like=a",
        "path=&expires-within-days=9",
    ] {
        let answer = server
            .get(&format!("/api/v1/data?{query}"))
            .await
            .expect(200);
        assert_eq!(answer.body, r#"{"credentials":[]}"#, "{query}");
    }
}

#[tokio::test]
async fn a_deleted_credential_is_not_found() {
    let server = Server::start().await;
    given::set_value(&server, "/path/kept", "v").await;
    given::set_value(&server, "/path/deleted", "v").await;
    server
        .delete("/api/v1/data?name=/path/deleted")
        .await
        .expect(204);
    for query in ["path=", "path=/path", "name-like=path", "name-like=e"] {
        assert_eq!(
            given::found(&server, query).await,
            ["/path/kept"],
            "{query}"
        );
    }
    assert!(given::found(&server, "name-like=deleted").await.is_empty());
    given::set_value(&server, "/path/deleted", "again").await;
    assert_eq!(
        given::found(&server, "name-like=deleted").await,
        ["/path/deleted"]
    );
}

#[tokio::test]
async fn credentials_of_every_type_are_found() {
    let server = Server::start().await;
    let certificate = json!({"common_name": "c", "self_sign": true});
    given::set_value(&server, "/t/value", "v").await;
    given::set(&server, "/t/json", "json", json!({})).await;
    for (credential_type, parameters) in [
        ("password", json!({})),
        ("user", json!({})),
        ("rsa", json!({})),
        ("ssh", json!({})),
        ("certificate", certificate),
    ] {
        given::generate(
            &server,
            &format!("/t/{credential_type}"),
            credential_type,
            parameters,
        )
        .await;
    }
    let expected = [
        "/t/certificate",
        "/t/ssh",
        "/t/rsa",
        "/t/user",
        "/t/password",
        "/t/json",
        "/t/value",
    ];
    assert_eq!(given::found(&server, "path=/t").await, expected);
    assert_eq!(given::found(&server, "name-like=/t/").await, expected);
}

#[tokio::test]
async fn a_long_list_is_complete() {
    let server = Server::start().await;
    for number in 0..250 {
        given::set_value(&server, &format!("/many/{number:03}"), "v").await;
    }
    let expected: Vec<String> = (0..250)
        .rev()
        .map(|number| format!("/many/{number:03}"))
        .collect();
    assert_eq!(given::found(&server, "path=/many").await, expected);
    assert_eq!(given::found(&server, "name-like=many").await, expected);
}
