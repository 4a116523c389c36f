//! The permissions on a path, explanations, and adding, changing and removing permissions.

use keywright_harness::{Options, Response, Server, Text};
use serde_json::json;

use crate::{
    browser::{Browser, DEVELOPER_ACTOR, GUEST, GUEST_ACTOR, between},
    events, session,
};

const PERMISSIONS: &str = "/console/permissions";
const ADD: &str = "/console/permissions/add";
const CHANGE: &str = "/console/permission/change";
const REMOVE: &str = "/console/permission/remove";

#[tokio::test]
async fn permissions_on_a_path_are_listed_with_inherited_ones() {
    let (server, mut browser) = session().await;
    let mut ids = Vec::new();
    for (path, actor, operations) in [
        ("/a/*", "uaa-user:z", &["read", "write"][..]),
        ("/a/b", "uaa-user:y", &["read"]),
        ("/a/b", "uaa-user:x", &["delete"]),
        ("/A/b", "uaa-user:other-casing", &["read"]),
        ("/a/b/*", "uaa-user:below", &["read"]),
    ] {
        ids.push(server.grant(path, actor, operations).await);
    }
    let page = browser.page("/console/permissions?path=a/b").await;
    let developers = [DEVELOPER_CLIENT, DEVELOPER_ACTOR];
    assert_eq!(
        rows(&page),
        [
            ["uaa-user:x", "delete", "this path"],
            ["uaa-user:y", "read", "this path"],
            ["uaa-user:z", "read, write", "/a/* inherited"],
            [developers[0], ALL, "/* inherited"],
            [developers[1], ALL, "/* inherited"],
        ]
    );
    page.assert_contains("<td>your own</td>");
    let events = events(&server, "GET_PERMISSIONS");
    assert_eq!(events.len(), 5, "{events:?}");
    for (event, (path, index)) in events.iter().zip([("/a/b", 2), ("/a/b", 1), ("/a/*", 0)]) {
        assert_eq!(event["operation"], "read_acl");
        assert_eq!(event["resource_name"], path);
        assert_eq!(event["resource_id"], ids[index]);
    }
}

#[tokio::test]
async fn permissions_beyond_one_page_are_on_the_next() {
    let (server, mut browser) = session().await;
    // Two more permissions are on all names.
    let actor = |number: usize| format!("uaa-user:{number:03}");
    let permissions: Vec<_> = (0..98)
        .map(|number| json!({"path": "/a", "actor": actor(number), "operations": ["read"]}))
        .collect();
    let body = json!({"credential_name": "/a", "permissions": permissions});
    server.post("/api/v1/permissions", body).await.expect(201);
    let page = browser.get("/console/permissions?path=/a").await;
    assert_eq!(rows(&page).len(), 100);
    page.assert_lacks("Next page");

    server.grant("/a", &actor(98), &["read"]).await;
    let first = browser.get("/console/permissions?path=/a").await;
    let second = browser.page(&next_page(&first)).await;
    let actors = [rows(&first), rows(&second)].concat();
    let actors: Vec<_> = actors.iter().map(|[actor, ..]| actor.clone()).collect();
    let expected = (0..99).map(actor);
    let expected = expected.chain([DEVELOPER_CLIENT, DEVELOPER_ACTOR].map(str::to_owned));
    assert_eq!(actors, expected.collect::<Vec<_>>());
    assert_eq!(rows(&second).len(), 1);
    second.assert_contains("First page");
    second.assert_lacks("Next page");

    // A page may start after a permission that does not exist. A start on a path that does not cover `/a` is ignored.
    let query = "path=/a&after-path=/a&after-actor=uaa-user:097x";
    let page = browser.get(&format!("{PERMISSIONS}?{query}")).await;
    assert_eq!(rows(&page)[0][0], actor(98));
    let query = "path=/a&after-path=/b&after-actor=x";
    let page = browser.get(&format!("{PERMISSIONS}?{query}")).await;
    assert_eq!(rows(&page)[0][0], actor(0));
    for (path, actor) in [("/a", "a%00"), ("/a", ""), ("/a%00", "a")] {
        let query = format!("path=/a&after-path={path}&after-actor={actor}");
        browser
            .refused(400, &format!("{PERMISSIONS}?{query}"))
            .await;
    }
}

#[tokio::test]
async fn permissions_that_the_user_may_not_read_are_hidden() {
    let (server, _) = session().await;
    let on_all = server.grant("/*", "uaa-user:secret", &["read"]).await;
    let on_path = server.grant("/a/*", "uaa-user:shown", &["read"]).await;
    let mut guest = Browser::logged_in(&server, GUEST).await;
    let one = |id: &str| format!("/console/permission?id={id}");
    let explain = "/console/permissions/explain?actor=uaa-user:shown&operation=read&path=/a/b";
    let unknown = guest.get(&one(&uuid(7))).await.expect(404);
    for path in [&on_path, "malformed"] {
        let hidden = guest.get(&one(path)).await.expect(404);
        assert_eq!(hidden.body, unknown.body, "{path}");
    }
    let hidden = guest.get("/console/permissions?path=/a/b").await;
    let message = "The permission does not exist or the caller may not access it.";
    assert!(hidden.expect(404).body.contains(message));
    let hidden = guest.get(explain).await.expect(404);
    hidden.assert_lacks("<svg");

    server.grant("/a/*", GUEST_ACTOR, &["read_acl"]).await;
    let page = guest.page("/console/permissions?path=/a/b").await;
    let actors: Vec<_> = rows(&page).into_iter().map(|[actor, ..]| actor).collect();
    assert_eq!(actors, [GUEST_ACTOR, "uaa-user:shown"]);
    let note = "You may not read the permissions on <code>/*</code>.";
    page.assert_contains(note);
    page.assert_lacks("uaa-user:secret");
    guest.page(&one(&on_path)).await;
    guest.page(explain).await;
    let hidden = guest.get(&one(&on_all)).await.expect(404);
    assert_eq!(hidden.body, unknown.body);
    // The permission to read does not suffice to change. The response is the same as for an unknown permission.
    let page = guest.get(&one(&on_path)).await;
    let refused = guest.submit(&page, REMOVE, &[]).await.expect(404);
    assert_eq!(refused.body, unknown.body);
}

#[tokio::test]
async fn a_permission_is_added_changed_and_removed() {
    let (server, mut browser) = session().await;
    server.set_value("/a/b", "v").await;
    let guest = server.as_user(GUEST_ID).await;
    let status = async || guest.get("/api/v1/data?name=/a/b").await.status;
    let form = "/console/permissions/add?path=/a/*";
    let given = [("actor", GUEST_ACTOR), ("operation.read", "true")];
    let page = browser.fill_in(form, ADD, &given).await.expect(200);
    let added =
        format!("Added the permission of <bdi>{GUEST_ACTOR}</bdi> on <code>/a/*</code>: read.");
    page.assert_contains(&added);
    assert_eq!(status().await, 200);

    let list = browser.get("/console/permissions?path=/a/*").await;
    let change = between(&list.body, "href=\"/console/permission?id=", "\"").unwrap();
    let form = format!("/console/permission?id={change}");
    let page = browser.page(&form).await;
    let checked = "name=\"operation.read\" value=\"true\" checked";
    page.assert_contains(checked);
    let given = [("operation.read", ""), ("operation.delete", "true")];
    let page = browser.submit(&page, CHANGE, &given).await.expect(200);
    let changed =
        format!("Changed the permission of <bdi>{GUEST_ACTOR}</bdi> on <code>/a/*</code>: delete.");
    page.assert_contains(&changed);
    assert_eq!(status().await, 404);

    let page = browser.fill_in(&form, REMOVE, &[]).await.expect(200);
    page.assert_contains("Removed the permission of");
    browser.get(&form).await.expect(404);
    for (action, operations) in [
        ("ADD_PERMISSIONS", "read"),
        ("PATCH_PERMISSIONS", "delete"),
        ("DELETE_PERMISSIONS", "delete"),
    ] {
        let events = events(&server, action);
        assert_eq!(events.len(), 1, "{action}");
        let event = &events[0];
        assert_eq!(event["actor"], DEVELOPER_ACTOR, "{action}");
        assert_eq!(event["operation"], "write_acl", "{action}");
        assert_eq!(event["resource_name"], "/a/*", "{action}");
        let details = json!({"actor": GUEST_ACTOR, "operations": [operations]});
        assert_eq!(event["request_details"], details, "{action}");
    }
}

#[tokio::test]
async fn refused_changes_have_the_messages_of_the_api() {
    let (server, mut browser) = session().await;
    server.grant("/a", "uaa-user:x", &["read"]).await;
    let valid = [
        ("path", "/a"),
        ("actor", "uaa-user:x"),
        ("operation.read", "true"),
    ];
    let long = format!("/{}", "a".repeat(255));
    for (given, status, message) in [
        (
            valid,
            409,
            "The actor already has a permission on this path; change its operations instead.",
        ),
        (
            [valid[0], valid[1], ("operation.read", "")],
            400,
            "A permission needs at least one operation.",
        ),
        (
            [("path", "/a*"), valid[1], valid[2]],
            400,
            "A path may contain only letters",
        ),
        (
            [("path", &long), valid[1], valid[2]],
            400,
            "A path must have at most 255 characters",
        ),
        (
            [valid[0], ("actor", ""), valid[2]],
            400,
            "An actor is required.",
        ),
        (
            [valid[0], ("actor", DEVELOPER_ACTOR), valid[2]],
            400,
            "An actor can&#39;t add, change or delete its own permissions.",
        ),
    ] {
        let refused = browser.fill_in(ADD, ADD, &given).await.expect(status);
        let message = message.replace("&#39;", "'");
        let body = refused.body.replace("&#39;", "'");
        body.assert_contains(&message);
        assert!(body.contains("checked") || given[2].1.is_empty(), "{body}");
    }
    let own = format!("/api/v2/permissions?path=/*&actor={DEVELOPER_ACTOR}");
    let own = server.get_json(&own).await["uuid"].clone();
    let form = format!("/console/permission?id={}", own.as_str().unwrap());
    for (action, given) in [(CHANGE, [("operation.read", "true")]), (REMOVE, [("", "")])] {
        let refused = browser.fill_in(&form, action, &given).await;
        assert!(refused.expect(400).body.contains("its own permissions."));
    }

    server.set_read_only(true).await;
    let refused = browser.fill_in(ADD, ADD, &valid).await.expect(503);
    refused.assert_contains("read-only mode");
}

#[tokio::test]
async fn an_explanation_is_a_diagram_and_a_table_of_the_rules() {
    let (server, mut browser) = session().await;
    server.grant("/a/*", GUEST_ACTOR, &["read", "delete"]).await;
    server.grant("/a/b/c", GUEST_ACTOR, &["write"]).await;
    let page = explained(&mut browser, "/a/b/c", "read").await;
    page.assert_contains(&format!("<bdi>{GUEST_ACTOR}</bdi> may read <code>"));
    let diagram = between(&page.body, "<svg class=\"rules\"", "</svg>").unwrap();
    let title =
        "/*: no permission; /a/*: read, delete; /a/b/*: no permission; /a/b/c: write</title>";
    diagram.assert_contains("role=\"img\" aria-labelledby=\"diagram-0\"");
    diagram.assert_contains(title);
    let allowing = between(diagram, "<text class=\"allows\"", "</text>").unwrap();
    assert!(allowing.ends_with(">✓ read, delete"), "{diagram}");
    assert_eq!(
        rows(&page),
        [
            ["/*", "none", "no"],
            ["/a/*", "read, delete", "yes"],
            ["/a/b/*", "none", "no"],
            ["/a/b/c", "write", "no"],
        ]
    );
    page.assert_contains("The permission on <code>/a/*</code> allows this operation.");
    let events = events(&server, "EXPLAIN_PERMISSIONS");
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["operation"], "read_acl");
    assert_eq!(events[0]["resource_name"], "/a/b/c");
    let page = explained(&mut browser, "/a/b/c", "read_acl").await;
    page.assert_contains("</bdi> may <strong>not </strong>read_acl <code>");

    server.set_value("/A/B/c", "v").await;
    let page = explained(&mut browser, "/a/b/c", "read").await;
    page.assert_contains("The credential is stored as <code>/A/B/c</code>.");
    let actual = page.body.matches("<svg class=\"rules\"").count();
    assert_eq!(actual, 2, "{page:?}");
    // The path with the maximum number of levels.
    let deepest = "/a".repeat(127);
    let page = explained(&mut browser, &deepest, "read").await.expect(200);
    assert_eq!(rows(&page).len(), 128);
    for (query, status) in [
        ("actor=&path=/a&operation=read", 400),
        ("actor=x&path=/a/&operation=read", 400),
        ("actor=x&path=/a&operation=execute", 422),
        ("", 400),
    ] {
        let refused = browser
            .refused(status, &format!("{PERMISSIONS}/explain?{query}"))
            .await;
        assert!(refused.body.contains("role=\"alert\""), "{query}");
    }
}

#[tokio::test]
async fn without_enforcement_every_actor_may_do_everything() {
    let options = Options::default().without_enforcement().console("");
    let server = Server::start_with(&options).await;
    let mut browser = Browser::logged_in(&server, GUEST).await;
    let page = explained(&mut browser, "/a", "delete").await;
    let decision = format!("<bdi>{GUEST_ACTOR}</bdi> may delete <code>/a</code>");
    page.assert_contains(&decision);
    let note = "This server does not enforce permissions";
    page.assert_contains(note);
    page.assert_lacks("Add one");
}

/// The id of the user without permissions.
const GUEST_ID: &str = "7c1d0e52-9d0a-4a51-8a55-0b9be2f3c1de";

/// The actor of the tests' requests to the API.
const DEVELOPER_CLIENT: &str = "uaa-client:developer";

const ALL: &str = "read, write, delete, read_acl, write_acl";

/// Returns the page that explains whether the guest may perform an operation.
async fn explained(browser: &mut Browser, path: &str, operation: &str) -> Response {
    let query = format!("actor={GUEST_ACTOR}&path={path}&operation={operation}");
    let path = format!("{PERMISSIONS}/explain?{query}");
    browser.page(&path).await
}

/// Returns the texts of the first three cells of each row of the page's tables.
fn rows(page: &Response) -> Vec<[String; 3]> {
    let rows = page.body.split("<th scope=\"row\">").skip(1);
    let rows = rows.map(|row| {
        let row = &row[..row.find("</tr>").unwrap()];
        let cells = row.split("</td>").flat_map(|cell| cell.split("</th>"));
        let mut texts = cells.map(text);
        [(); 3].map(|()| texts.next().unwrap())
    });
    rows.collect()
}

/// Returns the text of markup without its tags.
fn text(markup: &str) -> String {
    let texts = markup.split('<').map(|part| match part.split_once('>') {
        Some((_, text)) => text,
        None => part,
    });
    texts.collect::<String>().trim().to_owned()
}

fn next_page(page: &Response) -> String {
    let mut links = page.body.split("href=\"").skip(1);
    let next = links.find(|link| link.contains("after-path=")).unwrap();
    next.split('"').next().unwrap().replace("&amp;", "&")
}

fn uuid(number: u128) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}
