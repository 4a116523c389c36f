//! Searches by path, by a part of the name, and by the plugin that generated a value.

use keywright_harness::{BadPlugin, Server};
use serde_json::json;

use crate::{certificates::Certificate, given};

// GET /api/v1/data?path= and ?name-like=

#[tokio::test]
async fn a_path_finds_only_credentials_below_it() {
    let server = Server::reused().await;
    let names = [
        "/a", "/a/b", "/a/bc", "/a/b/c", "/a/b/c/d", "/a-b/c", "/A/B/e", "/b/a/b/c", "/ab",
    ];
    for name in names {
        server.set_value(name, "v").await;
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
        ("//", &[]),
        ("/a//", &[]),
    ] {
        let actual = server.found_names(&format!("path={path}")).await;
        assert_eq!(actual, expected, "{path}");
    }
}

#[tokio::test]
async fn a_damaged_time_fails_no_search() {
    let server = Server::start().await;
    for name in ["/a/sound", "/a/damaged"] {
        server.set_value(name, "v").await;
    }
    let beyond = i64::MAX;
    let sql = format!(
        "update credential_version set created_at = {beyond}
         where credential_sequence = (select sequence from credential where name = '/a/damaged');
         update credential set current_created_at = {beyond}, newest_created_at = {beyond} where name = '/a/damaged'"
    );
    server.run_sql(&sql).await;
    let found = server.get_json("/api/v1/data?path=/a").await;
    assert_eq!(found["credentials"][0]["name"], "/a/damaged");
    assert_eq!(
        found["credentials"][0]["version_created_at"],
        "9999-12-31T23:59:59Z"
    );
    assert_eq!(found["credentials"][1]["name"], "/a/sound");
    server.get("/api/v1/data?name=/a/damaged").await.expect(500);
    server.get("/api/v1/data?name=/a/sound").await.expect(200);
}

#[tokio::test]
async fn an_empty_path_or_text_finds_everything() {
    let server = Server::reused().await;
    for name in ["/a", "/b/c", "/d/e/f"] {
        server.set_value(name, "v").await;
    }
    for query in "path= path path=/ path=%2F name-like= name-like name-like=/".split(' ') {
        let actual = server.found_names(query).await;
        assert_eq!(actual, ["/d/e/f", "/b/c", "/a"], "{query}");
    }
}

#[tokio::test]
async fn a_text_finds_names_that_contain_it_in_any_casing() {
    let server = Server::reused().await;
    for name in "/deploy/Database /deploy/data /DATABASE /other/thing /d".split(' ') {
        server.set_value(name, "v").await;
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
        let found = server.found_names(&format!("name-like={text}")).await;
        assert_eq!(found, expected, "{text}");
    }
}

#[tokio::test]
async fn every_character_of_a_search_is_literal() {
    let server = Server::reused().await;
    for name in ["/p_q/a_b", "/pxq/axb", "/p.q/a.b", "/p(q)/a[b]", "/p-q/a:b"] {
        server.set_value(name, "v").await;
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
        assert_eq!(server.found_names(query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn an_item_has_a_name_and_the_time_of_its_newest_version() {
    let server = Server::reused().await;
    server.set_value("/Team/a", "old").await;
    let newest = server.set_value("/team/A", "new").await;
    for query in ["path=/TEAM", "name-like=TEAM"] {
        let found = server.get_json(&format!("/api/v1/data?{query}")).await;
        let item = json!({"name": "/Team/a", "version_created_at": newest["version_created_at"]});
        assert_eq!(found, json!({"credentials": [item]}), "{query}");
    }
}

#[tokio::test]
async fn the_last_written_credential_comes_first() {
    let server = Server::reused().await;
    for name in ["/c", "/a", "/b", "/d"] {
        server.set_value(name, "v").await;
    }
    for query in ["path=", "name-like=/"] {
        let actual = server.found_names(query).await;
        assert_eq!(actual, ["/d", "/b", "/a", "/c"], "{query}");
    }
    server.set_value("/a", "again").await;
    server.set_value("/c", "again").await;
    for query in ["path=", "name-like=/"] {
        let actual = server.found_names(query).await;
        assert_eq!(actual, ["/c", "/a", "/d", "/b"], "{query}");
    }
}

#[tokio::test]
async fn a_deleted_credential_is_not_found() {
    let server = Server::reused().await;
    server.set_value("/path/kept", "v").await;
    server.set_value("/path/deleted", "v").await;
    let response = server.delete("/api/v1/data?name=/path/deleted").await;
    response.expect(204);
    for query in ["path=", "path=/path", "name-like=path", "name-like=e"] {
        assert_eq!(server.found_names(query).await, ["/path/kept"], "{query}");
    }
    assert!(server.found_names("name-like=deleted").await.is_empty());
    server.set_value("/path/deleted", "again").await;
    let actual = server.found_names("name-like=deleted").await;
    assert_eq!(actual, ["/path/deleted"]);
}

#[tokio::test]
async fn credentials_of_every_type_are_found() {
    let server = Server::reused().await;
    given::every_type(&server, "/t").await;
    let expected = [
        "certificate",
        "ssh",
        "rsa",
        "user",
        "password",
        "json",
        "value",
    ];
    let expected = expected.map(|credential_type| format!("/t/{credential_type}"));
    assert_eq!(server.found_names("path=/t").await, expected);
    assert_eq!(server.found_names("name-like=/t/").await, expected);
}

#[tokio::test]
async fn a_long_list_is_complete() {
    let server = Server::reused().await;
    for number in 0..250 {
        server.set_value(&format!("/many/{number:03}"), "v").await;
    }
    let expected = (0..250).rev().map(|number| format!("/many/{number:03}"));
    let expected: Vec<String> = expected.collect();
    assert_eq!(server.found_names("path=/many").await, expected);
    assert_eq!(server.found_names("name-like=many").await, expected);
}

// `GET /api/v1/data?generated_by=`

/// The digest of a component that generated nothing.
const NOTHING: &str = "sha256:6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d";

async fn found(server: &Server, query: &str, digest: &str) -> Vec<String> {
    server
        .found_names(&format!("{query}generated_by={digest}"))
        .await
}

#[tokio::test]
async fn active_versions_of_a_plugin_are_found_newest_first() {
    let bad = BadPlugin::of("password");
    let server = bad.server().await;
    for name in ["/a/One", "/a/two", "/b/three", "/kept"] {
        server.generated(name, "password", json!({})).await;
    }
    server.stored("/set", "password", json!("mine")).await;
    server.generated("/user", "user", json!({})).await;
    let server = BadPlugin::replaced(server).await;
    let digest = &bad.digest();
    let all = ["/kept", "/b/three", "/a/two", "/a/One"];
    assert_eq!(found(&server, "", digest).await, all);
    server.regenerated("/a/two").await;
    server.generated("/new", "password", json!({})).await;
    server.stored("/b/three", "password", json!("mine")).await;
    assert_eq!(found(&server, "", digest).await, ["/kept", "/a/One"]);
    assert!(found(&server, "", NOTHING).await.is_empty());
}

#[tokio::test]
async fn the_digest_may_be_uppercase_or_lack_its_algorithm() {
    let bad = BadPlugin::of("password");
    let server = bad.server().await;
    server.generated("/a", "password", json!({})).await;
    let digest = bad.digest();
    let digits = digest.strip_prefix("sha256:").unwrap();
    let upper = digits.to_uppercase();
    for written in ["LOWER", "UPPER", "sha256:UPPER", "sha256%3ALOWER"] {
        let written = written.replace("LOWER", digits).replace("UPPER", &upper);
        assert_eq!(found(&server, "", &written).await, ["/a"], "{written}");
    }
}

#[tokio::test]
async fn a_path_or_a_part_of_the_name_restricts_the_search() {
    let bad = BadPlugin::of("password");
    let server = bad.server().await;
    for name in ["/a/One", "/a/two", "/b/three"] {
        server.generated(name, "password", json!({})).await;
    }
    let digest = &bad.digest();
    for (query, expected) in [
        ("path=/a&", &["/a/two", "/a/One"][..]),
        ("path=A/&", &["/a/two", "/a/One"]),
        ("path=&", &["/b/three", "/a/two", "/a/One"]),
        ("path=/c&", &[]),
        ("name-like=ONE&", &["/a/One"]),
        ("name-like=t&", &["/b/three", "/a/two"]),
        ("name-like=e&", &["/b/three", "/a/One"]),
        ("name-like=&", &["/b/three", "/a/two", "/a/One"]),
        ("name-like=%25&", &[]),
        ("name=/a/One&", &["/b/three", "/a/two", "/a/One"]),
    ] {
        assert_eq!(found(&server, query, digest).await, expected, "{query}");
    }
}

#[tokio::test]
async fn a_certificate_is_found_by_active_and_transitional_versions() {
    let bad = BadPlugin::of("certificate");
    let server = bad.server().await;
    let parameters = json!({"common_name": "ca", "is_ca": true, "key_type": "ecdsa-p256"});
    server.generated("/ca", "certificate", parameters).await;
    let server = BadPlugin::replaced(server).await;
    let certificate = Certificate::named(&server, "/ca").await;
    let digest = &bad.digest();
    // The bad plugin's version is active, then transitional, then neither.
    let body = json!({"set_as_transitional": true});
    certificate.regenerate(body).await.expect(200);
    assert_eq!(found(&server, "", digest).await, ["/ca"]);
    let bad_version = server.versions("/ca").await[1]["id"].clone();
    let move_to = async |version: &serde_json::Value| {
        let moved = certificate.move_transitional(version.clone()).await;
        moved.expect(200);
    };
    move_to(&bad_version).await;
    assert_eq!(found(&server, "", digest).await, ["/ca"]);
    move_to(&json!(null)).await;
    assert!(found(&server, "", digest).await.is_empty());
}

#[tokio::test]
async fn only_readable_credentials_are_found() {
    let bad = BadPlugin::of("password");
    let server = bad.server().await;
    for name in ["/team/a", "/other/a"] {
        server.generated(name, "password", json!({})).await;
    }
    let caller = server.as_client("app").await;
    let path = format!("/api/v1/data?generated_by={}", bad.digest());
    let none = caller.get(&path).await.expect(200).json();
    assert_eq!(none, json!({"credentials": []}));
    server.grant("/team/*", caller.actor(), &["read"]).await;
    let found = caller.get(&path).await.expect(200).json();
    assert_eq!(found["credentials"].as_array().unwrap().len(), 1);
    assert_eq!(found["credentials"][0]["name"], "/team/a");
}

#[tokio::test]
async fn an_invalid_digest_or_conflicting_parameter_is_400_and_named() {
    let server = Server::reused().await;
    let digits = "0".repeat(64);
    let table = "
        400 GET /api/v1/data?generated_by= => generated_by
        400 GET /api/v1/data?generated_by=sha256:12 => 64 hexadecimal digits
        400 GET /api/v1/data?generated_by=DIGITS0 => generated_by
        400 GET /api/v1/data?generated_by=SHORTg => generated_by
        400 GET /api/v1/data?generated_by=SHA256:DIGITS => generated_by
        400 GET /api/v1/data?generated_by=sha512:DIGITS => generated_by
        400 GET /api/v1/data?generated_by=DIGITS&generated_by=DIGITS => the parameter generated_by must not be repeated
        400 GET /api/v1/data?generated_by=DIGITS&expires-within-days=3 => expires-within-days
        400 GET /api/v1/data?generated_by=DIGITS&path=/&name-like=a => path
        400 GET /api/v1/data?generated_by=DIGITS&effective=true => effective
    ";
    let table = table
        .replace("DIGITS", &digits)
        .replace("SHORT", &digits[1..]);
    given::assert_refused(&server, &table).await;
}

#[tokio::test]
async fn a_credential_with_several_matching_versions_is_found_once() {
    let bad = BadPlugin::of("certificate");
    let server = bad.server().await;
    let parameters = json!({"common_name": "ca", "is_ca": true, "key_type": "ecdsa-p256"});
    for name in ["/one", "/two"] {
        let certificate = Certificate::generate(&server, name, parameters.clone()).await;
        let body = json!({"set_as_transitional": true});
        certificate.regenerate(body).await.expect(200);
    }
    assert_eq!(found(&server, "", &bad.digest()).await, ["/two", "/one"]);
}
