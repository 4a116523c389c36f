//! Refused steps of a rotation, and its limits.

use keywright_harness::{TestCertificate, Text};
use serde_json::Value;

use crate::{
    browser::{Browser, GUEST, GUEST_ACTOR, fields, filled, form},
    rotation::{ROTATION, opened, step_of, take_step, with_leaf},
    session,
};

#[tokio::test]
async fn a_form_of_an_earlier_stage_is_refused() {
    let (server, mut browser) = with_leaf().await;
    let mut earlier = Vec::new();
    for step in 1..=4 {
        earlier.push(take_step(&mut browser).await);
        let versions = server.versions("/root").await;
        for page in &earlier {
            let refused = browser.submit(page, ROTATION, &[]).await.expect(409);
            let message = "Another client has continued the rotation; nothing was changed.";
            refused.assert_contains(message);
            refused.assert_contains("href=\"/console/certificate/rotation?name=%2Froot\"");
        }
        assert_eq!(server.versions("/root").await, versions, "{step}");
    }
    // A new rotation reaches the same stages with other versions.
    take_step(&mut browser).await;
    browser.submit(&earlier[1], ROTATION, &[]).await.expect(409);
    let page = opened(&mut browser).await;
    for (tampered, status) in [
        (("step", "5"), 400),
        (("step", ""), 400),
        (("signing", "none"), 400),
        (("step", "4"), 409),
        (("transitional", ""), 409),
        (("name", "/leaf"), 409),
        (("name", "/absent"), 404),
    ] {
        let refused = browser.submit(&page, ROTATION, &[tampered]).await;
        refused.expect(status);
    }
    assert_eq!(step_of(&opened(&mut browser).await), 2);
}

#[tokio::test]
async fn only_one_of_two_simultaneous_steps_is_taken() {
    let (_server, mut browser) = with_leaf().await;
    for step in [2, 4] {
        while step_of(&opened(&mut browser).await) < step {
            take_step(&mut browser).await;
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
    let (server, mut browser) = with_leaf().await;
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
        browser.submit_and_follow(&page, ROTATION, &[]).await;
    }
}

#[tokio::test]
async fn each_step_requires_its_permissions() {
    let (server, mut developer) = with_leaf().await;
    server.grant("/root", GUEST_ACTOR, &["read"]).await;
    let mut guest = Browser::logged_in(&server, GUEST).await;
    for step in 1..=4 {
        let page = guest.get(&format!("{ROTATION}?name=/root")).await;
        if step == 3 {
            // Without reading a signed credential, it is unknown whether it was regenerated.
            let refused = page.expect(409).body;
            refused.assert_contains("You may not read /leaf, which the CA signed");
            server.grant("/leaf", GUEST_ACTOR, &["read"]).await;
        }
        if step == 4 {
            // The memory of a response does not suffice for these.
            let elsewhere = format!("/{}", "e".repeat(200));
            server.grant_many(&elsewhere, GUEST_ACTOR).await;
        }
        let page = opened(&mut guest).await;
        let refused = guest.submit(&page, ROTATION, &[]).await.expect(403).body;
        refused.assert_contains("The caller may not write this credential.");
        assert_eq!(step_of(&opened(&mut developer).await), step);
        take_step(&mut developer).await;
    }
}

#[tokio::test]
async fn only_a_ca_with_a_signing_version_is_rotated() {
    let (server, mut browser) = with_leaf().await;
    let only = server.generate_authority("/only", None).await;
    let moved = server.move_transitional("/only", &only["id"]);
    moved.await.expect(200);
    for (name, message) in [
        ("/leaf", "/leaf is not a CA; regenerate it instead."),
        (
            "/only",
            "/only has only a transitional version, which does not sign;",
        ),
    ] {
        let path = format!("{ROTATION}?name={name}");
        browser.refused(409, &path).await.assert_contains(message);
    }
    // A CA that was set without the information to regenerate it.
    let intermediate = TestCertificate::root("root").authority("inner");
    let set = server.stored("/set", "certificate", intermediate.public());
    set.await;
    let page = browser.page(&format!("{ROTATION}?name=/set")).await;
    let refused = browser.submit(&page, ROTATION, &[]).await.expect(400).body;
    refused.assert_contains("The credential can't be regenerated");
    refused.assert_contains("Show the current state");
}

#[tokio::test]
async fn long_lists_of_outstanding_names_are_cut_off_and_limited() {
    let (server, mut browser) = session().await;
    let root = TestCertificate::root("root");
    root.set(&server, "/root", None).await;
    for _ in 0..2 {
        take_step(&mut browser).await;
    }
    let old = server.versions("/root").await.pop().unwrap();
    let leaf = root.leaf_with("leaf", |_| {});
    // Sets certificates that the old version signed. Meanwhile, the flag is on the new version.
    let newest = server.newest("/root").await;
    let flag = async |version: &Value| {
        let moved = server.move_transitional("/root", &version["id"]);
        moved.await.expect(200);
    };
    flag(&newest).await;
    for number in 0..101 {
        if number == 100 {
            flag(&old).await;
            let page = opened(&mut browser).await;
            page.assert_contains("Outstanding: 100 credentials");
            page.assert_lacks("Not shown");
            flag(&newest).await;
        }
        let name = format!("/leaf/{number:03}");
        leaf.set(&server, &name, Some("/root")).await;
    }
    flag(&old).await;
    let page = opened(&mut browser).await;
    page.assert_contains("Outstanding: 101 credentials");
    page.assert_contains("Not shown: 1 more.");
    page.assert_lacks("/leaf/100");
    server.copy_certificate("/leaf/000", 9_900).await;
    let path = format!("{ROTATION}?name=/root");
    let refused = browser.refused(413, &path).await;
    refused.assert_contains("have signed more than 10000 credentials");
}
