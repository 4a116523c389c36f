//! Attacks: stored scripts, requests from other sites, redirections, and secrets in pages.

use keywright_harness::{ReusedServer, Text};
use reqwest::{
    Method,
    header::{ACCEPT, CONTENT_TYPE, ORIGIN},
};
use serde_json::json;

use crate::{
    browser::{Browser, DEVELOPER, REVEAL, fields, form},
    events, server, session,
};

/// The pages that need a session.
const PAGES: &[&str] = &[
    "/console",
    "/console?path=/a&from=%2Fa",
    "/console?name-like=a",
    "/console/overview",
    "/console/credential?name=/a",
    "/console/credential?name=/absent",
    "/console/certificates",
    "/console/certificate?name=/absent",
    "/console/certificate/rotation?name=/absent",
    "/console/expiring",
    "/console/generate",
    "/console/generate?type=password",
    "/console/set",
    "/console/permissions",
    "/console/permissions?path=/a",
    "/console/permissions/add",
    "/console/permissions/explain?path=/a&actor=uaa-user:x&operation=read",
    "/console/permission?id=absent",
    "/console/keys-and-plugins",
    "/console/absent/page",
];

/// The pages without a session.
const OPEN: &[&str] = &[
    "/console/login",
    "/console/callback",
    "/console/logged-out",
    "/console/script.js",
    "/console/style.css",
    "/console/icon.svg",
];

/// The addresses that accept forms, with fields that would take effect.
const ACTIONS: &[(&str, &[(&str, &str)])] = &[
    ("/console/credential/reveal", &[("field", "value")]),
    ("/console/credential/regenerate", &[("name", "/a")]),
    (
        "/console/credential/delete",
        &[("name", "/a"), ("typed_name", "/a")],
    ),
    (
        "/console/generate",
        &[("name", "/b"), ("type", "password"), ("mode", "overwrite")],
    ),
    (
        "/console/set",
        &[("name", "/b"), ("type", "value"), ("value", "v")],
    ),
    (
        "/console/certificate/rotation",
        &[("name", "/a"), ("step", "1")],
    ),
    (
        "/console/permissions/add",
        &[
            ("path", "/b"),
            ("actor", "uaa-user:x"),
            ("operation.read", "true"),
        ],
    ),
    ("/console/permission/change", &[("operation.read", "true")]),
    ("/console/permission/remove", &[]),
    ("/console/logout", &[]),
];

const SECRET: &str = "hunter2-hunter2";
const SCRIPT: &str = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>";

#[tokio::test]
async fn every_response_has_the_security_headers() {
    let (server, mut browser) = with_a_credential().await;
    let mut anonymous = Browser::new(&server);
    let mut responses = Vec::new();
    for path in PAGES {
        responses.push((path, browser.get(path).await));
        responses.push((path, anonymous.get(path).await.expect(303)));
    }
    for path in OPEN {
        responses.push((path, anonymous.get(path).await));
    }
    for (path, _) in ACTIONS {
        responses.push((path, browser.send_form(path, &[]).await.expect(403)));
        responses.push((path, anonymous.send_form(path, &[]).await.expect(401)));
    }
    for (path, response) in responses {
        let policy = response.header("content-security-policy").unwrap();
        for directive in policy.split("; ") {
            let is_restrictive = directive.ends_with(" 'none'")
                || [
                    "script-src 'self'",
                    "connect-src 'self'",
                    "style-src 'self'",
                    "img-src 'self'",
                    "form-action 'self'",
                ]
                .contains(&directive);
            assert!(is_restrictive, "{path}: {directive}");
        }
        for required in [
            "default-src 'none'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ] {
            policy.assert_contains(required);
        }
        for (name, value) in [
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("x-frame-options", "DENY"),
        ] {
            assert_eq!(response.header(name), Some(value), "{path}: {name}");
        }
        let page = without_own_script(&response.body);
        let page = page.replace("http://www.w3.org/2000/svg", "");
        for forbidden in [
            "<script",
            "<style",
            " style=",
            " onclick",
            "javascript:",
            "http://",
        ] {
            page.assert_lacks(forbidden);
        }
    }
}

#[tokio::test]
async fn no_action_is_possible_from_another_site() {
    let (server, mut browser) = with_a_credential().await;
    let root = browser.page("/console").await;
    let token = fields(form(&root.body, "/console/logout")).remove(0);
    let mut other = Browser::logged_in(&server, DEVELOPER).await;
    let page = other.page("/console").await;
    let other_token = fields(form(&page.body, "/console/logout")).remove(0);
    let id = server.newest("/a").await["id"].clone();
    let id = id.as_str().unwrap();
    let permission = server.grant("/a", "uaa-user:x", &["delete"]).await;
    let own = server.base_url().to_owned();
    for (path, given) in ACTIONS {
        let given = given.iter();
        let given = given.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let mut given: Vec<_> = given.collect();
        given.push(("version".to_owned(), id.to_owned()));
        given.push(("id".to_owned(), permission.clone()));
        let with = |token: &(String, String)| [given.clone(), vec![token.clone()]].concat();
        let empty = (token.0.clone(), String::new());
        for (form, sender, site) in [
            // Without the session's token, or with another session's.
            (given.clone(), own.as_str(), "same-origin"),
            (with(&empty), own.as_str(), "same-origin"),
            (with(&other_token), own.as_str(), "same-origin"),
            // With the token, but from another site.
            (with(&token), "https://other.example", "cross-site"),
            (with(&token), "https://other.example", ""),
            (with(&token), "null", ""),
            (with(&token), "null", "cross-site"),
            (with(&token), own.as_str(), "same-site"),
            (with(&token), "", ""),
        ] {
            let mut request = browser.form_request(path, &form);
            if !sender.is_empty() {
                request = request.header(ORIGIN, sender);
            }
            if !site.is_empty() {
                request = request.header("sec-fetch-site", site);
            }
            let refused = server.send(request).await.expect(403);
            refused.assert_lacks(SECRET);
        }
        let request = browser
            .request(Method::POST, path)
            .header(ORIGIN, &own)
            .header(CONTENT_TYPE, "text/plain")
            .body(format!("{}={}", token.0, token.1));
        server.send(request).await.expect(415);
    }
    assert_eq!(server.versions("/a").await.len(), 1);
    assert!(server.versions("/b").await.is_empty());
    let kept = format!("/api/v2/permissions/{permission}");
    let kept = server.get_json(&kept).await;
    assert_eq!(kept["operations"], json!(["delete"]));
    let added = "/api/v2/permissions?path=/b&actor=uaa-user:x";
    server.get(added).await.expect(404);
    browser.page("/console").await;
}

#[tokio::test]
async fn stored_texts_are_never_markup() {
    let (server, mut browser) = session().await;
    for (name, credential_type, value) in [
        ("/x/json", "json", json!({SCRIPT: SCRIPT})),
        ("/x/value", "value", json!(SCRIPT)),
        (
            "/x/user",
            "user",
            json!({"username": SCRIPT, "password": SCRIPT}),
        ),
    ] {
        let body = json!({"name": name, "type": credential_type, "value": value, "metadata": {SCRIPT: SCRIPT}});
        server.put("/api/v1/data", body).await.expect(200);
    }
    let parameters = json!({"common_name": "<script>alert(1)</script>", "self_sign": true});
    let certificate = server.generated("/x/certificate", "certificate", parameters);
    certificate.await;
    let permission = server.grant("/x/*", SCRIPT, &["read"]).await;
    let script = "%22%27%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E";
    let mut pages = vec![browser.get("/console?path=/x").await];
    for name in ["json", "value", "user", "certificate"] {
        let path = format!("/console/credential?name=/x/{name}");
        let page = browser.page(&path).await;
        pages.push(browser.reveal(&page).await);
        pages.push(page);
    }
    for path in [
        "/console?path={}",
        "/console?name-like={}",
        "/console?path=/x&from={}",
        "/console/credential?name={}",
        "/console/generate?type={}",
        "/console/generate?type=password&name={}",
        "/console/set?name={}&type={}",
        "/console/login?then={}",
        "/console/callback?error={}&state={}",
        "/console/permissions?path=/x/*",
        "/console/permissions?path=/x&after-path=/x&after-actor={}",
        "/console/permissions/add?path={}&actor={}",
        "/console/permissions/explain?path={}&actor={}&operation={}",
        "/console/permissions/explain?path=/x/a&actor={}&operation=read",
        "/console/{}",
    ] {
        pages.push(browser.open(&path.replace("{}", script)).await);
    }
    let change = format!("/console/permission?id={permission}");
    pages.push(browser.page(&change).await);
    let action = "/console/permission/remove";
    pages.push(browser.fill_in(&change, action, &[]).await.expect(200));
    let set = browser.page("/console/set").await;
    let filled = [
        ("name", SCRIPT),
        ("metadata", SCRIPT),
        ("value", "v"),
        ("type", "value"),
    ];
    let refused = browser.submit(&set, "/console/set", &filled).await;
    pages.push(refused.expect(400));
    for page in pages {
        let markup = without_own_script(&page.body);
        markup.assert_lacks("<script");
        markup.assert_lacks("<img");
        page.assert_lacks("\"'>");
    }
}

#[tokio::test]
async fn the_text_direction_of_an_actor_does_not_affect_the_page() {
    let (server, mut browser) = session().await;
    let actor = "uaa-client:\u{202e}ppa";
    let permission = server.grant("/x/*", actor, &["read"]).await;
    let change = format!("/console/permission?id={permission}");
    let explain = "/console/permissions/explain?path=/x/a&operation=read";
    let explain = format!("{explain}&actor=uaa-client:%E2%80%AEppa");
    let action = "/console/permission/change";
    for page in [
        browser.page(&change).await,
        browser.page(&explain).await,
        browser.fill_in(&change, action, &[]).await.expect(200),
    ] {
        page.assert_contains(&format!("<bdi>{actor}</bdi>"));
        assert!(!page.body.contains(&format!("{actor} ")), "{page:?}");
    }
}

#[tokio::test]
async fn a_login_never_leads_to_another_site() {
    let server = server().await;
    for then in [
        "https://other.example/",
        "//other.example/console",
        "/\\other.example",
        "/console/../../identity",
        "javascript:alert(1)",
        "/console/\r\nLocation: https://other.example",
    ] {
        let mut browser = Browser::new(&server);
        let then: String = form_urlencoded(then);
        let path = format!("/console/login?then={then}");
        let page = browser.log_in(&path, DEVELOPER).await;
        assert!([200, 404].contains(&page.status), "{then}: {page:?}");
    }
}

#[tokio::test]
async fn pages_and_logs_contain_no_secret_before_it_is_revealed() {
    let (server, mut browser) = with_a_credential().await;
    for path in PAGES {
        let page = browser.get(path).await;
        page.assert_lacks(SECRET);
    }
    let page = browser.get("/console/credential?name=/a").await;
    let revealed = browser.reveal(&page).await;
    revealed.assert_contains(SECRET);
    let session = &browser.cookies[crate::browser::SESSION];
    let token = fields(form(&page.body, "/console/logout")).remove(0).1;
    let log = server.log();
    for secret in [SECRET, session, &token, "eyJ"] {
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret}");
        assert!(!server.audit_trail().contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn a_field_for_the_script_is_exact_and_not_cached() {
    let (server, mut browser) = session().await;
    let value = "\n<b>\r\n\u{feff}ü";
    server.stored("/a", "value", json!(value)).await;
    let page = browser.page("/console/credential?name=/a").await;
    let fields = fields(form(&page.body, REVEAL));
    let request = browser
        .form_request(REVEAL, &fields)
        .header(ORIGIN, "null")
        .header("sec-fetch-site", "same-origin")
        .header(ACCEPT, "text/plain");
    let field = server.send(request).await.expect(200);
    assert_eq!(field.body, value);
    for (name, expected) in [
        ("content-type", "text/plain; charset=utf-8"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(field.header(name), Some(expected));
    }
    assert_eq!(events(&server, "GET").len(), 1);
}

#[tokio::test]
async fn a_value_that_html_can_not_contain_has_no_copy_button() {
    let (server, mut browser) = session().await;
    for (value, shown, is_copyable) in [
        ("a\r\0b", "\na&#13;\u{2400}b</pre>", false),
        ("a\rb", "\na&#13;b</pre>", true),
    ] {
        server.stored("/a", "value", json!(value)).await;
        let page = browser.page("/console/credential?name=/a").await;
        let revealed = browser.reveal(&page).await;
        revealed.assert_contains(shown);
        assert_eq!(revealed.body.contains("data-copy"), is_copyable, "{shown}");
    }
}

#[tokio::test]
async fn a_token_without_a_session_opens_no_page() {
    let (server, _) = with_a_credential().await;
    for path in PAGES {
        let request = Browser::new(&server).request(Method::GET, path);
        let request = request.bearer_auth(server.token());
        server.send(request).await.expect(303);
    }
}

#[tokio::test]
async fn a_form_past_the_maximum_size_is_413() {
    let (_server, mut browser) = session().await;
    let form = browser.get("/console/set?name=/a&type=value").await;
    let value = [("value", &*"v".repeat(320 * 1024))];
    let refused = browser.submit(&form, "/console/set", &value).await;
    let refused = refused.expect(413);
    refused.assert_contains("A form must have at most 327680 bytes.");
    let longest = [("value", &*"+".repeat(65_536))];
    let accepted = browser.submit(&form, "/console/set", &longest).await;
    accepted.expect(303);
}

#[tokio::test]
async fn one_field_past_the_maximum_of_a_form_is_413() {
    let (_server, mut browser) = session().await;
    let page = browser.get("/console/set?name=/a&type=value").await;
    let mut all = fields(form(&page.body, "/console/set"));
    all.resize(10_000, ("x".to_owned(), String::new()));
    let accepted = browser.send_form("/console/set", &all).await;
    // The value is missing.
    accepted.expect(400);
    all.push(all[all.len() - 1].clone());
    let refused = browser.send_form("/console/set", &all).await.expect(413);
    let message = "A form must have at most 10000 fields.";
    refused.assert_contains(message);
}

/// Returns a page without the element of the console's own script.
pub(crate) fn without_own_script(page: &str) -> String {
    page.replacen("<script src=\"/console/script.js\" defer></script>", "", 1)
}

/// Starts a session, and sets a credential.
async fn with_a_credential() -> (ReusedServer, Browser) {
    let (server, browser) = session().await;
    server.stored("/a", "password", json!(SECRET)).await;
    (server, browser)
}

fn form_urlencoded(text: &str) -> String {
    let bytes = text.bytes().map(|byte| format!("%{byte:02X}"));
    bytes.collect()
}

#[tokio::test]
async fn a_connection_is_closed_after_a_request_of_ambiguous_length() {
    let server = server().await;
    for path in ["/health", "/console/login", "/console"] {
        let ambiguous = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\
            Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        );
        let next = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let mut connection = server.connect();
        connection.send(ambiguous.as_bytes());
        connection.send(next.as_bytes());
        let received = String::from_utf8(connection.receive_to_end()).unwrap();
        assert!(received.starts_with("HTTP/1.1 400"), "{received}");
        assert_eq!(received.matches("HTTP/1.1 ").count(), 1, "{received}");
    }
}

#[tokio::test]
async fn a_link_fills_in_neither_the_actor_nor_the_operations() {
    let (_server, mut browser) = with_a_credential().await;
    let query = "path=/a&actor=uaa-user:x&operation.read=true";
    let path = format!("/console/permissions/add?{query}");
    let page = browser.page(&path).await;
    page.assert_contains("value=\"/a\"");
    page.assert_lacks("uaa-user:x");
    page.assert_lacks(" checked");
}
