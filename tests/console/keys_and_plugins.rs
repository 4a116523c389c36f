//! The page of encryption keys and plugins, and the overview.

use std::fs;

use keywright_harness::{Options, Response, Server, Text, release};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    browser::{Browser, DEVELOPER, GUEST, GUEST_ACTOR, between},
    session,
};

const PAGE: &str = "/console/keys-and-plugins";
const OVERVIEW: &str = "/console/overview";

#[tokio::test]
async fn types_are_listed_with_their_plugins_calls_and_faults() {
    let options = Options::default()
        .hostile("", "generate = \"trap\"")
        .console("");
    let server = Server::start_with(&options).await;
    for (name, credential_type, status) in [("/a", "password", 200), ("/b", "hostile", 500)] {
        let generated = server.generate(name, credential_type, json!({})).await;
        generated.expect(status);
    }
    let mut browser = Browser::logged_in(&server, DEVELOPER).await;
    let page = browser.page(PAGE).await;
    for (credential_type, randomness, calls, faults) in [
        ("password", "tested: at least 160 bits", 2, "0"),
        ("rsa", "tested: at least", 0, "0"),
        (
            "hostile",
            "derives its values",
            2,
            "<span class=\"mark soon\">1</span>",
        ),
    ] {
        let row = row(&page, credential_type);
        let digest = server.plugin_digest(credential_type).await;
        row.assert_contains(&format!("sha256:{digest}"));
        row.assert_contains(randomness);
        let counted = format!("<td>{calls}</td><td>{faults}</td><td class=\"wrapped\">closed</td>");
        row.assert_contains(&counted);
    }
    assert!(row(&page, "json").contains("Set by callers, without a plugin."));
    assert!(row(&page, "resolver").contains("not applicable"));
}

#[tokio::test]
async fn summaries_of_plugins_are_escaped() {
    const SCRIPT: &str = "<script>alert(1)</script>";
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("hostile.wasm");
    let summary = ("Misbehaves as configured.", SCRIPT);
    fs::write(&path, release("hostile", summary)).unwrap();
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\", \"signing\"]\nderived = true",
        path.display()
    );
    let options = Options::default()
        .generator("hostile", &section)
        .console("");
    let server = Server::start_with(&options).await;
    let mut browser = Browser::logged_in(&server, DEVELOPER).await;
    for path in [
        PAGE,
        "/console/generate",
        "/console/generate?type=hostile",
        "/console/set",
    ] {
        let page = browser.page(path).await;
        let escaped = "&lt;script&gt;alert(1)&lt;/script&gt;";
        page.assert_contains(escaped);
        page.assert_lacks(SCRIPT);
    }
}

#[tokio::test]
async fn an_open_circuit_is_only_shown_to_callers_it_refuses() {
    let options = Options::default()
        .hostile("", "generate = \"trap\"")
        .environment("KEYWRIGHT_PLUGINS__FAULTS_MAX", "3")
        .environment("KEYWRIGHT_PLUGINS__DISABLED_SECONDS", "3600")
        .console("");
    let server = Server::start_with(&options).await;
    let mut developer = Browser::logged_in(&server, DEVELOPER).await;
    let mut guest = Browser::logged_in(&server, GUEST).await;
    let fail = async |browser: &mut Browser, name: &str| {
        let form = "/console/generate?type=hostile";
        let given = [("name", name)];
        let page = browser.fill_in(form, "/console/generate", &given);
        page.await.status
    };
    let page = developer.page(OVERVIEW).await;
    page.assert_contains("No plugin is disabled for you.");
    for number in 1..=3 {
        let name = format!("/a/{number}");
        assert_eq!(fail(&mut developer, &name).await, 500);
    }
    assert_eq!(fail(&mut developer, "/a/4").await, 503);
    let open = "<span class=\"mark late\">open</span> for you, next attempt in 3";
    let page = developer.page(PAGE).await;
    assert!(row(&page, "hostile").contains(open), "{page:?}");
    let page = developer.page(OVERVIEW).await;
    page.assert_contains(&format!("hostile</a>: {open}"));
    let page = guest.page(PAGE).await;
    assert!(row(&page, "hostile").contains(">closed</td>"), "{page:?}");
    server.grant("/guest", GUEST_ACTOR, &["write"]).await;
    assert_eq!(fail(&mut guest, "/guest").await, 500);
}

#[tokio::test]
async fn keys_are_listed_and_a_rotation_has_a_progress_bar() {
    let folder = TempDir::new().unwrap();
    let options = |keys: &[&str]| {
        let key = |(index, key): (usize, &&str)| {
            let file = folder.path().join(key);
            let base64 = format!("{}E=", key.repeat(42));
            fs::write(&file, base64).unwrap();
            format!(
                "[[encryption.keys]]\nprovider = \"raw\"\nfile = \"{}\"\nactive = {}\n",
                file.display(),
                index == 0
            )
        };
        let keys: String = keys.iter().enumerate().map(key).collect();
        Options::default()
            .encryption(&format!("{keys}[encryption.rotation]\nenabled = false\n"))
            .without_plugins()
            .console("")
    };
    let server = Server::start_with(&options(&["Q"])).await;
    for name in ["/a", "/b", "/c"] {
        server.set_value(name, "v").await;
    }
    let server = Server::start_in(server.stop().await, &options(&["R", "Q"])).await;
    server.set_value("/d", "v").await;
    let mut browser = Browser::logged_in(&server, DEVELOPER).await;
    let progress = "<progress id=\"rotation\" max=\"4\" value=\"1\">";
    for path in [PAGE, OVERVIEW] {
        let page = browser.page(path).await;
        page.assert_contains(progress);
    }
    let page = browser.page(PAGE).await;
    page.assert_contains("1 of 4 versions are encrypted with the active key.");
    let rows = page.body.split("<th scope=\"row\"><code>").skip(1);
    let rows: Vec<_> = rows.collect();
    assert_eq!(rows.len(), 2, "{page:?}");
    rows[0].assert_contains("active</span></td><td>1</td>");
    rows[1].assert_contains("<td>inactive</td><td>3</td>");
    page.assert_contains("No plugins are configured on this server.");

    let server = Server::start_in(server.stop().await, &options(&["R"])).await;
    let mut browser = Browser::logged_in(&server, DEVELOPER).await;
    let page = browser.page(PAGE).await;
    page.assert_lacks("<progress");
    page.assert_contains("not configured</span></td><td>3</td>");
    let unreadable =
        "Number of versions that can't be read because their keys are not configured: 3.";
    page.assert_contains(unreadable);
}

#[tokio::test]
async fn the_overview_counts_readable_credentials_by_type() {
    let (server, mut developer) = session().await;
    let mut guest = Browser::logged_in(&server, GUEST).await;
    let page = guest.page(OVERVIEW).await;
    page.assert_contains("There is no credential that you may read.");
    server.stored("/a/two", "json", json!({})).await;
    for name in [
        "/a/one",
        "/A/three",
        "/a/sub/four",
        "/ab",
        "/other",
        "/other/five",
    ] {
        server.set_value(name, "v").await;
    }
    for path in ["/a/*", "/a/sub/*", "/other", "/absent"] {
        server.grant(path, GUEST_ACTOR, &["read"]).await;
    }
    let counts = |page: &Response| {
        let section = between(&page.body, "<h2 id=\"types\">", "</section>").unwrap();
        let counts = section.split("<dt>").skip(1);
        let counts = counts.map(|count| count.replace("</dt><dd>", " "));
        let counts = counts.map(|count| count[..count.find('<').unwrap()].to_owned());
        counts.collect::<Vec<_>>()
    };
    let page = developer.page(OVERVIEW).await;
    assert_eq!(counts(&page), ["json 1", "value 6"]);
    let page = guest.page(OVERVIEW).await;
    assert_eq!(counts(&page), ["json 1", "value 3"]);
    let partial = "You may read more than the ";
    page.assert_lacks(partial);

    // The maximum number of paths, together with /a/*, /absent and /other; then one more.
    for number in 0..253 {
        let path = format!("/many/{number}");
        server.grant(&path, GUEST_ACTOR, &["read"]).await;
    }
    let page = guest.page(OVERVIEW).await;
    page.assert_lacks(partial);
    server.grant("/many/z", GUEST_ACTOR, &["read"]).await;
    let page = guest.page(OVERVIEW).await;
    page.assert_contains(partial);
}

#[tokio::test]
async fn the_overview_lists_cas_with_a_transitional_version() {
    let (server, mut browser) = session().await;
    let page = browser.page(OVERVIEW).await;
    page.assert_contains("No CA that you may read has a transitional version");
    let root = server.generate_authority("/ca/root", None).await;
    let value = &root["value"];
    let rotate = async |name: &str| {
        server.stored(name, "certificate", value.clone()).await;
        let path = server.certificate_path(name).await + "/versions";
        let transitional = json!({"value": value, "transitional": true});
        server.post(&path, transitional).await.expect(200);
    };
    let leaf = json!({"common_name": "leaf", "self_sign": true});
    server.generated("/ca/leaf", "certificate", leaf).await;
    server.regenerate_as_transitional("/ca/leaf").await;
    let oldest: Vec<_> = (0..20).map(|number| format!("/ca/{number:02}")).collect();
    for name in &oldest {
        rotate(name).await;
    }
    let more = "Only the 20 oldest CAs are shown.";
    let page = browser.page(OVERVIEW).await;
    assert_eq!(listed_cas(&page), oldest);
    page.assert_lacks(more);
    rotate("/ca/20").await;
    let page = browser.page(OVERVIEW).await;
    assert_eq!(listed_cas(&page), oldest);
    page.assert_contains(more);
    let mut guest = Browser::logged_in(&server, GUEST).await;
    server.grant("/ca/20", GUEST_ACTOR, &["read"]).await;
    let page = guest.page(OVERVIEW).await;
    assert_eq!(listed_cas(&page), ["/ca/20"]);
}

fn listed_cas(page: &Response) -> Vec<&str> {
    let section = between(&page.body, "<h2 id=\"rotations\">", "</section>").unwrap();
    let links = section.split("<li><a href=").skip(1);
    let names = links.map(|link| between(link, ">", "</a>").unwrap());
    names.collect()
}

fn row<'a>(page: &'a Response, name: &str) -> &'a str {
    let start = format!("<th scope=\"row\"><strong>{name}</strong>");
    between(&page.body, &start, "</tr>").unwrap()
}
