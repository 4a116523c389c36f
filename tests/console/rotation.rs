//! Complete rotations of a CA in the console, also alternating with the command line.

use std::collections::BTreeSet;

use keywright_harness::{Response, ReusedServer, Shell, connects};
use serde_json::{Value, json};

use crate::{
    browser::{Browser, fields, form},
    events, session,
};

pub(crate) const ROTATION: &str = "/console/certificate/rotation";

#[tokio::test]
async fn a_rotation_in_four_steps_interrupts_no_connection() {
    let (server, mut browser) = with_leaf().await;
    let deployed = |leaf: Value, trusted: Response| (leaf, trusted.expect(200).body);
    let forged = format!("{ROTATION}?name=/root&taken=4");
    browser.page(&forged).await.assert_lacks("is complete.");
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
        page.assert_contains(&format!("<button>Take step {step}</button>"));
        let actual = page.body.matches("(complete)").count();
        assert_eq!(actual, step - 1, "{page:?}");
        let actual = page.body.contains("Outstanding: 1 credential<");
        assert_eq!(actual, step == 3, "{page:?}");
        let page = browser.submit_and_follow(&page, ROTATION, &[]).await;
        page.assert_contains(&format!("Step {step} is complete. {confirmation}"));
        let trusted = "/console/certificate/download?name=/root&part=trusted";
        page.assert_contains("/console/certificate/download?name=%2Froot&amp;part=trusted");
        let leaf = server.current_versions("/leaf").await.remove(0);
        let now = deployed(leaf, browser.get(trusted).await);
        let actual = now.1.matches("BEGIN CERTIFICATE").count();
        assert_eq!(actual, trusted_count, "{step}");
        let before = before.replace(now.clone()).unwrap_or_else(|| now.clone());
        for leaf in [&before.0, &now.0] {
            for trusted in [&before.1, &now.1] {
                assert!(connects(leaf, trusted), "step {step}");
            }
        }
    }
    assert_eq!(server.versions("/root").await.len(), 2);
    for (action, count) in [
        ("REGENERATE_CERTIFICATE", 1),
        ("UPDATE_TRANSITIONAL_VERSION", 2),
        ("BULK_REGENERATE", 1),
    ] {
        let events = events(&server, action);
        let writes = events.iter().filter(|event| event["operation"] == "write");
        let requests: BTreeSet<_> = writes
            .map(|event| event["request_id"].to_string())
            .collect();
        assert_eq!(requests.len(), count, "{action}: {events:?}");
    }
    let views = events(&server, "VIEW");
    let is_of_ca = |event: &&Value| event["resource_name"] == "/root";
    assert!(views.iter().filter(is_of_ca).count() >= 8, "{views:?}");
}

#[tokio::test]
async fn a_rotation_alternates_between_console_and_command_line() {
    let (server, mut browser) = with_leaf().await;
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
            take_step(&mut browser).await;
        }
        let stage = ["introduced", "switched", "renewed", "not_begun"][step - 1];
        assert_eq!(rotate("--status")["stage"], stage);
    }
    assert_eq!(step_of(&opened(&mut browser).await), 1);
}

#[tokio::test]
async fn console_and_cli_list_the_same_outstanding_credentials() {
    let (server, mut browser) = with_leaf().await;
    server.generate_authority("/inner", Some("/root")).await;
    for ca in ["/root", "/inner"] {
        server.generate_leaf("/below", ca).await;
    }
    server.generate_leaf("/moved", "/root").await;
    server.generate_authority("/elsewhere", None).await;
    // The transitional version of /moved was signed by /elsewhere.
    let other = server.generate_leaf("/other", "/elsewhere").await;
    let path = server.certificate_path("/moved").await + "/versions";
    let body = json!({"value": {
        "ca_name": "/elsewhere", "certificate": other["value"]["certificate"],
    }, "transitional": true});
    server.post(&path, body).await.expect(200);
    // The transitional version of /returned was signed by /root, but /elsewhere signed the active one.
    server.generate_leaf("/returned", "/elsewhere").await;
    let path = server.certificate_path("/returned").await + "/versions";
    let leaf = server.newest("/leaf").await;
    let body = json!({"value": {
        "ca_name": "/root", "certificate": leaf["value"]["certificate"],
    }, "transitional": true});
    server.post(&path, body).await.expect(200);
    let shell = Shell::of(&server);
    for _ in 0..2 {
        take_step(&mut browser).await;
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
        "/below",
        "/inner without CA",
    ] {
        match change {
            "" => {}
            "/moved" => {
                let parameters = json!({"common_name": "moved", "ca": "/elsewhere"});
                let moved = server.generate("/moved", "certificate", parameters);
                moved.await.expect(200);
            }
            // Another version with the same certificate.
            "/root" => {
                let active = server.current_versions("/root").await.remove(0);
                let value = active["value"].clone();
                server.stored("/root", "certificate", value).await;
            }
            "/inner transitional" => {
                server.regenerate_as_transitional("/inner").await;
            }
            "/inner cleared" => {
                let arguments = "certificates transitional /inner --clear";
                assert_eq!(shell.run(arguments).status, Some(0));
            }
            "/inner without CA" => {
                server.generate_leaf("/inner", "/root").await;
            }
            name => {
                server.regenerated(name).await;
            }
        }
        let ran = shell.run("certificates rotate /root --status");
        let status: Value = serde_json::from_str(&ran.output).unwrap();
        let page = opened(&mut browser).await;
        let outstanding = outstanding(&page.body);
        let actual = json!(outstanding);
        assert_eq!(actual, status["outstanding"], "{change}: {page:?}");
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
    assert_eq!(seen[7..], ["/below", "", "/below"]);
}

#[tokio::test]
async fn a_certificate_of_a_deleted_ca_version_is_compared_by_its_ca() {
    let (server, mut browser) = with_leaf().await;
    for _ in 0..2 {
        take_step(&mut browser).await;
    }
    server.regenerated("/leaf").await;
    let signer = server.current_versions("/root").await.remove(0);
    let same = signer["value"].clone();
    server.stored("/root", "certificate", same).await;
    let summary = server.get_json("/api/v1/certificates?name=/root").await;
    let certificate_id = summary["certificates"][0]["id"].as_str().unwrap();
    let version_id = signer["id"].as_str().unwrap();
    let path = format!("/api/v1/certificates/{certificate_id}/versions/{version_id}");
    server.delete(&path).await.expect(200);
    let page = opened(&mut browser).await;
    assert!(outstanding(&page.body).is_empty(), "{page:?}");
    assert_eq!(step_of(&page), 4);

    server.regenerated("/root").await;
    let page = opened(&mut browser).await;
    assert_eq!(outstanding(&page.body), ["/leaf"]);
    assert_eq!(step_of(&page), 3);
}

/// Starts a session, and generates a CA and a certificate that it signs.
pub(crate) async fn with_leaf() -> (ReusedServer, Browser) {
    let (server, browser) = session().await;
    server.generate_authority("/root", None).await;
    server.generate_leaf("/leaf", "/root").await;
    (server, browser)
}

pub(crate) async fn opened(browser: &mut Browser) -> Response {
    browser.page(&format!("{ROTATION}?name=/root")).await
}

/// Takes the next step. Returns the page that offered it.
pub(crate) async fn take_step(browser: &mut Browser) -> Response {
    let page = opened(browser).await;
    browser.submit_and_follow(&page, ROTATION, &[]).await;
    page
}

/// Returns the number of the step that a page offers.
pub(crate) fn step_of(page: &Response) -> usize {
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
