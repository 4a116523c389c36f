//! The rotation of a CA in the console.

use keywright_harness::{Response, Server, Shell, connects};
use serde_json::{Value, json};

use crate::{
    browser::{Browser, DEVELOPER, GUEST, fields, filled, form},
    certificate_limits::copies,
    events,
    external::Ca,
    reading::GUEST_ACTOR,
    server,
};

const ROTATION: &str = "/console/certificate/rotation";

#[tokio::test]
async fn a_rotation_in_four_steps_interrupts_no_connection() {
    let server = with_leaf().await;
    let mut browser = Browser::logged_in(&server, DEVELOPER).await;
    let deployed = |leaf: Value, trusted: Response| (leaf, trusted.expect(200).body);
    let mut before = None;
    for (step, trusted_count, confirmation) in [
        (1, 2, "Distribute the trust bundle."),
        (2, 2, "The new version signs."),
        (3, 2, "Deploy the regenerated certificates."),
        (
            4,
            1,
            "The rotation is complete. You can stop trusting the old version.",
        ),
    ] {
        let page = opened(&mut browser).await;
        assert!(
            page.body
                .contains(&format!("<button>Take step {step}</button>")),
            "{page:?}"
        );
        assert_eq!(
            page.body.matches("(complete)").count(),
            step - 1,
            "{page:?}"
        );
        assert_eq!(
            page.body.contains("Outstanding: 1 credential<"),
            step == 3,
            "{page:?}"
        );
        let page = browser
            .submit_and_follow(&page, ROTATION, &[])
            .await
            .expect(200);
        assert!(
            page.body
                .contains(&format!("Step {step} is complete. {confirmation}")),
            "{page:?}"
        );
        let trusted = "/console/certificate/download?name=/root&part=trusted";
        assert!(
            page.body
                .contains("/console/certificate/download?name=%2Froot&amp;part=trusted")
        );
        let leaf = server.current_versions("/leaf").await.remove(0);
        let now = deployed(leaf, browser.get(trusted).await);
        assert_eq!(
            now.1.matches("BEGIN CERTIFICATE").count(),
            trusted_count,
            "{step}"
        );
        let before = before.replace(now.clone()).unwrap_or_else(|| now.clone());
        for leaf in [&before.0, &now.0] {
            for trusted in [&before.1, &now.1] {
                assert!(connects(leaf, trusted), "step {step}");
            }
        }
    }
    assert_eq!(server.versions("/root").await.len(), 2);
    let actions = [
        "REGENERATE_CERTIFICATE",
        "UPDATE_TRANSITIONAL_VERSION",
        "BULK_REGENERATE",
    ];
    for (action, count) in actions.into_iter().zip([1, 2, 1]) {
        let of_ca = events(&server, action);
        let steps: Vec<_> = of_ca
            .iter()
            .filter(|event| event["operation"] == "write" && event["status"] == 303)
            .map(|event| event["request_id"].to_string())
            .collect();
        let mut steps = steps;
        steps.dedup();
        assert_eq!(steps.len(), count, "{action}: {of_ca:?}");
    }
    let views = events(&server, "VIEW");
    assert!(
        views
            .iter()
            .all(|event| event["resource_name"] != Value::Null),
        "{views:?}"
    );
}

#[tokio::test]
async fn a_rotation_is_continued_with_the_command_line_and_back() {
    let server = with_leaf().await;
    let mut browser = Browser::logged_in(&server, DEVELOPER).await;
    let shell = Shell::of(&server);
    let rotate = |option: &str| {
        let ran = shell.run(&["certificates", "rotate", "/root", option]);
        assert_eq!(ran.status, Some(0), "{ran:?}");
        serde_json::from_str::<Value>(&ran.output).unwrap()
    };
    for step in 1..=4 {
        assert_eq!(step_of(&opened(&mut browser).await), step);
        if step % 2 == 0 {
            rotate("--next");
        } else {
            let page = opened(&mut browser).await;
            browser
                .submit_and_follow(&page, ROTATION, &[])
                .await
                .expect(200);
        }
        let stage = ["introduced", "switched", "renewed", "not_begun"][step - 1];
        assert_eq!(rotate("--status")["stage"], stage);
    }
    assert_eq!(step_of(&opened(&mut browser).await), 1);
}

#[tokio::test]
async fn the_console_and_the_command_line_list_the_same_outstanding_credentials() {
    let server = with_leaf().await;
    server.generate_authority("/inner", Some("/root")).await;
    server.generate_leaf("/below", "/inner").await;
    server.generate_leaf("/moved", "/root").await;
    server.generate_authority("/elsewhere", None).await;
    let mut browser = Browser::logged_in(&server, DEVELOPER).await;
    let shell = Shell::of(&server);
    for _ in 0..2 {
        let page = opened(&mut browser).await;
        browser
            .submit_and_follow(&page, ROTATION, &[])
            .await
            .expect(200);
    }
    let mut seen = Vec::new();
    for change in [
        "",
        "/moved",
        "/leaf",
        "/inner",
        "/root",
        "/inner transitional",
        "/below",
        "/inner cleared",
    ] {
        match change {
            "" => {}
            "/moved" => {
                let parameters = json!({"common_name": "moved", "ca": "/elsewhere"});
                let moved = server.generate("/moved", "certificate", parameters);
                moved.await.expect(200);
            }
            // The same certificate in another version.
            "/root" => {
                let active = server.current_versions("/root").await.remove(0);
                let value = active["value"].clone();
                server.set("/root", "certificate", value).await.expect(200);
            }
            "/inner transitional" => {
                server
                    .regenerate_as_transitional("/inner")
                    .await
                    .expect(200);
            }
            "/inner cleared" => {
                let arguments = ["certificates", "transitional", "/inner", "--clear"];
                assert_eq!(shell.run(&arguments).status, Some(0));
            }
            name => {
                server.regenerate(name).await.expect(200);
            }
        }
        let ran = shell.run(&["certificates", "rotate", "/root", "--status"]);
        let status: Value = serde_json::from_str(&ran.output).unwrap();
        let page = opened(&mut browser).await;
        let outstanding = outstanding(&page.body);
        assert_eq!(
            json!(outstanding),
            status["outstanding"],
            "{change}: {page:?}"
        );
        let step = if outstanding.is_empty() { 4 } else { 3 };
        assert_eq!(step_of(&page), step, "{change}: {status}");
        seen.push(outstanding.join(" "));
    }
    assert_eq!(
        seen[..5],
        [
            "/inner /leaf /moved",
            "/inner /leaf",
            "/inner",
            "/below",
            "/below"
        ]
    );
    assert_eq!(seen[7], "/below");
}

#[tokio::test]
async fn a_form_of_an_earlier_stage_is_refused() {
    let server = with_leaf().await;
    let mut browser = Browser::logged_in(&server, DEVELOPER).await;
    let mut earlier = Vec::new();
    for step in 1..=4 {
        let page = opened(&mut browser).await;
        browser
            .submit_and_follow(&page, ROTATION, &[])
            .await
            .expect(200);
        earlier.push(page);
        let versions = server.versions("/root").await;
        for page in &earlier {
            let refused = browser.submit(page, ROTATION, &[]).await.expect(409);
            assert!(
                refused
                    .body
                    .contains("The rotation has been continued elsewhere; nothing was changed."),
                "{refused:?}"
            );
            assert!(
                refused
                    .body
                    .contains("href=\"/console/certificate/rotation?name=%2Froot\"")
            );
        }
        assert_eq!(server.versions("/root").await, versions, "{step}");
    }
    // A new rotation reaches the same stages with other versions.
    let page = opened(&mut browser).await;
    browser
        .submit_and_follow(&page, ROTATION, &[])
        .await
        .expect(200);
    browser.submit(&earlier[1], ROTATION, &[]).await.expect(409);
    let page = opened(&mut browser).await;
    for tampered in [("step", "5"), ("step", ""), ("signing", "none")] {
        browser
            .submit(&page, ROTATION, &[tampered])
            .await
            .expect(400);
    }
    for tampered in [("step", "4"), ("transitional", ""), ("name", "/leaf")] {
        browser
            .submit(&page, ROTATION, &[tampered])
            .await
            .expect(409);
    }
    browser
        .submit(&page, ROTATION, &[("name", "/absent")])
        .await
        .expect(404);
    assert_eq!(step_of(&opened(&mut browser).await), 2);
}

#[tokio::test]
async fn of_two_simultaneous_steps_only_one_is_taken() {
    let server = with_leaf().await;
    let mut browser = Browser::logged_in(&server, DEVELOPER).await;
    for step in [2, 4] {
        while step_of(&opened(&mut browser).await) < step {
            let page = opened(&mut browser).await;
            browser
                .submit_and_follow(&page, ROTATION, &[])
                .await
                .expect(200);
        }
        let page = opened(&mut browser).await;
        let (mut one, mut other) = (browser.clone(), browser.clone());
        let (one, other) = tokio::join!(
            one.submit(&page, ROTATION, &[]),
            other.submit(&page, ROTATION, &[])
        );
        let mut statuses = [one.status, other.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [303, 409]);
    }
}

#[tokio::test]
async fn no_step_is_taken_without_the_token_of_the_session() {
    let server = with_leaf().await;
    let mut browser = Browser::logged_in(&server, DEVELOPER).await;
    for step in 1..=4 {
        let page = opened(&mut browser).await;
        let mut without = fields(form(&page.body, ROTATION));
        without.retain(|(name, _)| name != "csrf_token");
        browser.send_form(ROTATION, &without).await.expect(403);
        let all = filled(form(&page.body, ROTATION), &[]);
        let elsewhere = browser.form_request(ROTATION, &all);
        let elsewhere = elsewhere.header("sec-fetch-site", "cross-site");
        server.send(elsewhere).await.expect(403);
        assert_eq!(step_of(&opened(&mut browser).await), step);
        browser
            .submit_and_follow(&page, ROTATION, &[])
            .await
            .expect(200);
    }
}

#[tokio::test]
async fn each_step_requires_its_permissions() {
    let server = with_leaf().await;
    server.grant("/root", GUEST_ACTOR, &["read"]).await;
    let mut developer = Browser::logged_in(&server, DEVELOPER).await;
    let mut guest = Browser::logged_in(&server, GUEST).await;
    for step in 1..=4 {
        let page = guest.get(&format!("{ROTATION}?name=/root")).await;
        if step == 3 {
            // Without reading a signed credential, it is unknown whether it was regenerated.
            let refused = page.expect(409).body;
            assert!(
                refused.contains("You may not read /leaf, which the CA signed"),
                "{refused}"
            );
            server.grant("/leaf", GUEST_ACTOR, &["read"]).await;
        }
        let page = opened(&mut guest).await;
        let refused = guest.submit(&page, ROTATION, &[]).await.expect(403).body;
        assert!(
            refused.contains("The caller may not write this credential."),
            "{refused}"
        );
        assert_eq!(step_of(&opened(&mut developer).await), step);
        let page = opened(&mut developer).await;
        developer
            .submit_and_follow(&page, ROTATION, &[])
            .await
            .expect(200);
    }
}

#[tokio::test]
async fn only_a_ca_with_a_signing_version_is_rotated() {
    let server = with_leaf().await;
    let mut browser = Browser::logged_in(&server, DEVELOPER).await;
    let only = json!({
        "name": "/only", "type": "certificate",
        "parameters": {"common_name": "only", "is_ca": true, "key_type": "ecdsa-p256"},
    });
    server.post("/api/v1/data", only).await.expect(200);
    let found = server.get("/api/v1/certificates?name=/only").await.json();
    let certificate = &found["certificates"][0];
    let path = format!(
        "/api/v1/certificates/{}/update_transitional_version",
        certificate["id"].as_str().unwrap()
    );
    let body = json!({"version": certificate["versions"][0]["id"]});
    server.put(&path, body).await.expect(200);
    for (name, message) in [
        ("/leaf", "/leaf is not a CA; regenerate it instead."),
        (
            "/only",
            "/only has only a transitional version, which does not sign;",
        ),
    ] {
        let refused = browser.get(&format!("{ROTATION}?name={name}")).await;
        let refused = refused.expect(409).body;
        assert!(refused.contains(message), "{refused}");
    }
    // A CA that was set without the information to regenerate it.
    let intermediate = Ca::root("root").authority("inner");
    let value = json!({"certificate": intermediate.certificate});
    server.set("/set", "certificate", value).await.expect(200);
    let page = browser
        .get(&format!("{ROTATION}?name=/set"))
        .await
        .expect(200);
    let refused = browser.submit(&page, ROTATION, &[]).await.expect(400).body;
    assert!(
        refused.contains("The credential can't be regenerated"),
        "{refused}"
    );
    assert!(refused.contains("Show the current state"), "{refused}");
}

#[tokio::test]
async fn long_lists_of_outstanding_credentials_are_cut_off_and_limited() {
    let server = server().await;
    let root = Ca::root("root");
    root.set(&server, "/root", None).await;
    let mut browser = Browser::logged_in(&server, DEVELOPER).await;
    for _ in 0..2 {
        let page = opened(&mut browser).await;
        browser
            .submit_and_follow(&page, ROTATION, &[])
            .await
            .expect(200);
    }
    let old = server.versions("/root").await.pop().unwrap();
    let leaf = root.leaf_with("leaf", |_| {});
    // Set with the old version: the flag is moved away and back.
    let found = server.get("/api/v1/certificates?name=/root").await.json();
    let path = format!(
        "/api/v1/certificates/{}/update_transitional_version",
        found["certificates"][0]["id"].as_str().unwrap()
    );
    let versions = server.versions("/root").await;
    let flag = |version: &Value| server.put(&path, json!({"version": version["id"]}));
    flag(&versions[0]).await.expect(200);
    for number in 0..101 {
        if number == 100 {
            flag(&old).await.expect(200);
            let page = opened(&mut browser).await.body;
            assert!(
                page.contains("Outstanding: 100 credentials") && !page.contains("not shown"),
                "{page}"
            );
            flag(&versions[0]).await.expect(200);
        }
        leaf.set(&server, &format!("/leaf/{number:03}"), Some("/root"))
            .await;
    }
    flag(&old).await.expect(200);
    let page = opened(&mut browser).await.body;
    assert!(page.contains("Outstanding: 101 credentials"), "{page}");
    assert!(
        page.contains("1 more are not shown.") && !page.contains("/leaf/100"),
        "{page}"
    );
    copies(&server, "/leaf/000", 9_900).await;
    let refused = browser.get(&format!("{ROTATION}?name=/root")).await;
    let refused = refused.expect(413).body;
    assert!(
        refused.contains("have signed more than 10,000 credentials"),
        "{refused}"
    );
}

/// Starts a server with a CA and a certificate that it signed.
async fn with_leaf() -> Server {
    let server = server().await;
    server.generate_authority("/root", None).await;
    server.generate_leaf("/leaf", "/root").await;
    server
}

async fn opened(browser: &mut Browser) -> Response {
    browser
        .get(&format!("{ROTATION}?name=/root"))
        .await
        .expect(200)
}

/// Returns the number of the step that a page offers.
fn step_of(page: &Response) -> usize {
    let (_, value) = fields(form(&page.body, ROTATION))
        .into_iter()
        .find(|(name, _)| name == "step")
        .unwrap();
    value.parse().unwrap()
}

/// Returns the names of the outstanding credentials on a page.
fn outstanding(page: &str) -> Vec<String> {
    let Some((_, list)) = page.split_once("Outstanding:") else {
        return Vec::new();
    };
    let list = &list[..list.find("</ul>").unwrap()];
    let names = list.split("\">").skip(1);
    names
        .map(|name| name[..name.find('<').unwrap()].to_owned())
        .collect()
}
