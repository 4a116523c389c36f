//! Browsing, searching, and the page of a credential.

use reqwest::Method;
use serde_json::json;

use crate::{
    browser::{Browser, GUEST, GUEST_ACTOR, REVEAL, between, fields, form},
    events, server, session,
};

#[tokio::test]
async fn the_tree_shows_the_folders_and_credentials_of_one_path() {
    let (server, mut browser) = session().await;
    for name in ["/top", "/Team/a", "/team/b/c", "/team/b/d/e", "/team-b"] {
        server.set_value(name, "v").await;
    }
    let root = browser.page("/console").await;
    assert_eq!(rows(&root.body), ["team-b", "Team/", "top"]);
    let team = browser.page("/console?path=%2Fteam%2F").await;
    assert_eq!(rows(&team.body), ["a", "b/"]);
    let below = browser.page("/console?path=/team/b").await;
    assert_eq!(rows(&below.body), ["c", "d/"]);
    let finds = events(&server, "FIND");
    let details = &finds.last().unwrap()["request_details"];
    assert_eq!(*details, json!({"path": "/team/b"}));
}

#[tokio::test]
async fn a_path_with_more_entries_has_pages() {
    let (server, mut browser) = session().await;
    let mut expected = Vec::new();
    for number in 0..130 {
        let name = format!("/many/{number:03}");
        if number % 3 == 0 {
            server.set_value(&format!("{name}/one"), "v").await;
            server.set_value(&format!("{name}/two"), "v").await;
            expected.push(format!("{number:03}/"));
        } else {
            server.set_value(&name, "v").await;
            expected.push(format!("{number:03}"));
        }
    }
    let first = browser.page("/console?path=/many").await;
    assert_eq!(rows(&first.body), expected[..100]);
    let second = browser.page(&next_page(&first.body)).await;
    assert_eq!(rows(&second.body), expected[100..]);
    second.assert_contains("First page");
    second.assert_lacks("Next page");
}

#[tokio::test]
async fn a_search_finds_parts_of_names() {
    let (server, mut browser) = session().await;
    for name in ["/team/database", "/other/Database", "/team/web"] {
        server.stored(name, "password", json!("v")).await;
    }
    let found = browser.page("/console?name-like=DATA").await;
    assert_eq!(rows(&found.body), ["/other/Database", "/team/database"]);
    let none = browser.page("/console?name-like=absent").await;
    none.assert_contains("No credential that you may read");
}

#[tokio::test]
async fn filters_apply_to_all_credentials_below_a_path() {
    let (server, mut browser) = session().await;
    for (name, days) in [("/team/deep/one", 10), ("/team/two", 300), ("/other", 10)] {
        let parameters = json!({"self_sign": true, "duration": days});
        server.issued(name, parameters).await;
    }
    for name in ["/team/old", "/team/new"] {
        server.stored(name, "password", json!("v")).await;
    }
    // 31 days, in milliseconds.
    let age = "update credential set current_created_at = current_created_at - 2678400000 where name = '/team/old'";
    server.run_sql(age).await;
    for (query, expected) in [
        ("type=password", &["/team/new", "/team/old"][..]),
        (
            "type=certificate&path=/TEAM",
            &["/team/deep/one", "/team/two"],
        ),
        (
            "name-like=E&path=/team",
            &["/team/deep/one", "/team/new", "/team/old", "/team/two"],
        ),
        ("older-than-days=30", &["/team/old"]),
        ("older-than-days=32", &[]),
        ("expires-within-days=30", &["/other", "/team/deep/one"]),
        ("expires-within-days=9", &[]),
        (
            "expires-within-days=365&path=/team&name-like=deep&type=certificate",
            &["/team/deep/one"],
        ),
        ("type=certificate&older-than-days=30", &[]),
        ("type=unknown", &[]),
    ] {
        let page = browser.page(&format!("/console?{query}")).await;
        assert_eq!(rows(&page.body), expected, "{query}");
        let is_empty = page.body.contains("There is no matching credential");
        assert_eq!(is_empty, expected.is_empty(), "{query}");
    }
    let finds = events(&server, "FIND").into_iter();
    let mut details = finds.map(|event| event["request_details"].clone());
    assert!(details.any(|details| details == json!({"older-than-days": "30"})));
    // Leading zeros could enlarge the details of the event until they are omitted.
    for days in ["-1", "36501", "x", "000030"] {
        let path = format!("/console?older-than-days={days}");
        let refused = browser.get(&path).await.expect(400);
        let message = "Older-than-days must be a whole number from 0 to 36500.";
        refused.assert_contains(message);
    }
}

#[tokio::test]
async fn a_filter_past_its_maximum_of_entries_or_queries_has_pages() {
    let (server, mut browser) = session().await;
    for number in 0..101 {
        let name = format!("/many/{number:03}");
        server.set_value(&name, "v").await;
    }
    let first = browser.page("/console?type=value").await;
    assert_eq!(rows(&first.body).len(), 100);
    let second = browser.page(&next_page(&first.body)).await;
    assert_eq!(rows(&second.body), ["/many/100"]);

    for number in 200..457 {
        let path = format!("/many/{number}");
        server.grant(&path, GUEST_ACTOR, &["read"]).await;
    }
    server.set_value("/many/456", "v").await;
    let mut guest = Browser::logged_in(&server, GUEST).await;
    let first = guest.page("/console?type=value").await;
    assert!(rows(&first.body).is_empty(), "{first:?}");
    let second = guest.page(&next_page(&first.body)).await;
    assert_eq!(rows(&second.body), ["/many/456"]);
}

#[tokio::test]
async fn a_user_sees_only_what_the_permissions_allow() {
    let server = server().await;
    for name in ["/a/one", "/a/two/three", "/b/one", "/c/Mixed/x"] {
        server.set_value(name, "v").await;
    }
    let mut browser = Browser::logged_in(&server, GUEST).await;
    for path in [
        "/console",
        "/console?path=/a",
        "/console?name-like=one",
        "/console/overview",
    ] {
        let page = browser.page(path).await;
        for name in ["one", "two", "three", "/b"] {
            page.assert_lacks(&format!("{name}</a>"));
        }
    }
    let hidden = browser.refused(404, "/console/credential?name=/a/one");
    let hidden = hidden.await.body;
    let absent = browser.refused(404, "/console/credential?name=/absent");
    assert_eq!(hidden, absent.await.body);

    // Permissions are case-sensitive.
    server.grant("/a/two/*", GUEST_ACTOR, &["read"]).await;
    server.grant("/b/one", GUEST_ACTOR, &["read"]).await;
    server.grant("/c/mixed/*", GUEST_ACTOR, &["read"]).await;
    server.grant("/d/*", GUEST_ACTOR, &["write"]).await;
    let root = browser.page("/console").await;
    assert_eq!(rows(&root.body), ["a/", "b/"]);
    let below = browser.page("/console?path=/a").await;
    assert_eq!(rows(&below.body), ["two/"]);
    let found = browser.page("/console?name-like=one").await;
    assert_eq!(rows(&found.body), ["/b/one"]);
}

#[tokio::test]
async fn many_permissions_on_absent_names_make_pages() {
    let server = server().await;
    server.set_value("/many/z", "v").await;
    for number in 0..256 {
        let path = format!("/many/{number}");
        server.grant(&path, GUEST_ACTOR, &["read"]).await;
    }
    server.grant("/many/z", GUEST_ACTOR, &["read"]).await;
    let mut browser = Browser::logged_in(&server, GUEST).await;
    let first = browser.page("/console?path=/many").await;
    assert!(rows(&first.body).is_empty(), "{first:?}");
    let second = browser.page(&next_page(&first.body)).await;
    assert_eq!(rows(&second.body), ["z"]);
}

#[tokio::test]
async fn the_next_page_of_a_filter_reveals_no_hidden_name() {
    let server = server().await;
    for number in 0..512 {
        server.set_value(&format!("/team/s{number:03}"), "v").await;
    }
    for number in 0..255 {
        let path = format!("/a/{number}");
        server.grant(&path, GUEST_ACTOR, &["read"]).await;
    }
    server.grant("/Team/*", GUEST_ACTOR, &["read"]).await;
    let mut browser = Browser::logged_in(&server, GUEST).await;
    let first = browser.page("/console?type=value").await;
    first.assert_lacks("s511");
}

#[tokio::test]
async fn versions_past_the_maximum_are_not_shown() {
    let (server, mut browser) = session().await;
    let older = "Older versions are not shown.";
    for (versions, is_complete) in [(15, true), (16, false)] {
        while server.versions("/a").await.len() < versions {
            server.set_value("/a", "v").await;
        }
        let page = browser.page("/console/credential?name=/a").await;
        assert_eq!(page.body.matches("<li><p><time").count(), 15);
        assert_eq!(page.body.contains(older), !is_complete);
    }
}

#[tokio::test]
async fn secret_fields_are_revealed_one_at_a_time_and_audited() {
    let (server, mut browser) = session().await;
    let value = json!({"username": "ada", "password": "correct horse"});
    server.stored("/a/user", "user", value).await;
    let page = browser.page("/console/credential?name=/a/user").await;
    page.assert_contains("ada");
    page.assert_lacks("correct horse");
    page.assert_lacks("$6$");
    assert_eq!(events(&server, "GET"), [] as [serde_json::Value; 0]);
    let views = events(&server, "VIEW");
    let mut names = views.iter().map(|event| &event["resource_name"]);
    assert!(names.all(|name| name == "/a/user"), "{views:?}");

    assert!(form(&page.body, REVEAL).contains("value=\"password\""));
    let revealed = browser.reveal(&page).await;
    revealed.assert_contains("correct horse");
    revealed.assert_lacks("$6$");
    let reads = events(&server, "GET");
    assert_eq!(reads.len(), 1);
    assert_eq!(reads[0]["operation"], "read");
    assert_eq!(reads[0]["resource_name"], "/a/user");
    assert_eq!(reads[0]["version_id"], server.newest("/a/user").await["id"]);
    assert_eq!(reads[0]["status"], 200);
}

#[tokio::test]
async fn a_revealed_version_requires_the_permission_to_read() {
    let server = server().await;
    server.stored("/a", "password", json!("hunter2")).await;
    let id = server.newest("/a").await["id"].clone();
    let mut browser = Browser::logged_in(&server, GUEST).await;
    let root = browser.page("/console").await;
    let token = fields(form(&root.body, "/console/logout")).remove(0);
    let fields = [
        token,
        ("version".to_owned(), id.as_str().unwrap().to_owned()),
        ("field".to_owned(), "value".to_owned()),
    ];
    let refused = browser.send_form(REVEAL, &fields).await.expect(404);
    refused.assert_lacks("hunter2");
}

#[tokio::test]
async fn the_timeline_marks_active_and_transitional_versions() {
    let (server, mut browser) = session().await;
    let parameters = json!({"common_name": "root", "is_ca": true, "duration": 10});
    server.issued("/ca", parameters).await;
    server.regenerate_as_transitional("/ca").await;
    let page = browser.page("/console/credential?name=/ca").await;
    for expected in [
        "Active version",
        "Transitional version",
        "<span class=\"mark active\">active</span>",
        "<span class=\"mark soon\">transitional</span>",
        "by the plugin certificate",
        "-----BEGIN CERTIFICATE-----",
        "&quot;common_name&quot;: &quot;root&quot;",
        "in 9 days",
    ] {
        page.assert_contains(expected);
    }
    page.assert_lacks("PRIVATE KEY");
    let overview = browser.page("/console/overview").await;
    overview.assert_contains("href=\"/console/credential?name=%2Fca\"");
    overview.assert_contains("Within 30 days</a></dt><dd>1</dd>");
}

#[tokio::test]
async fn metadata_is_shown_and_json_values_are_not() {
    let (server, mut browser) = session().await;
    let body = r#"{
        "name": "/a", "type": "json", "value": {"secret-key": "secret-text"},
        "metadata": {"owner": "shop", "account": 12345678901234567890123}
    }"#;
    let put = server.authorized(Method::PUT, "/api/v1/data").body(body);
    server.send(put).await.expect(200);
    let page = browser.page("/console/credential?name=/a").await;
    page.assert_contains("&quot;owner&quot;: &quot;shop&quot;");
    page.assert_contains("&quot;account&quot;: 12345678901234567890123\n");
    page.assert_lacks("secret-");
    let revealed = browser.reveal(&page).await;
    let json = "{&quot;secret-key&quot;:&quot;secret-text&quot;}";
    revealed.assert_contains(json);
}

#[tokio::test]
async fn values_are_revealed_in_read_only_mode() {
    let (server, mut browser) = session().await;
    server.stored("/a", "password", json!("hunter2")).await;
    server.set_read_only(true).await;
    let page = browser.page("/console/credential?name=/a").await;
    let revealed = browser.reveal(&page).await;
    revealed.assert_contains("hunter2");
    let regenerate = "/console/credential/regenerate";
    let refused = browser.submit(&page, regenerate, &[]).await.expect(503);
    refused.assert_contains("The server is in read-only mode and rejects writes.");
}

/// Returns the address of the next page.
fn next_page(page: &str) -> String {
    let mut links = page.split("href=\"").skip(1);
    let next = links.find(|link| link.contains("from=")).unwrap();
    next.split('"').next().unwrap().replace("&amp;", "&")
}

/// Returns the labels of the rows of the page's table.
fn rows(page: &str) -> Vec<String> {
    let rows = page.split("<th scope=\"row\">").skip(1);
    let labels = rows.map(|row| between(row, "\">", "</a>").unwrap().to_owned());
    labels.collect()
}
