//! The overview and the lists of expiring credentials.

use keywright_harness::Text;
use serde_json::json;

use crate::{events, external::expired_authority, session};

#[tokio::test]
async fn a_certificate_is_due_when_its_ca_expires() {
    let (server, mut browser) = session().await;
    let root = json!({"is_ca": true, "duration": 20});
    server.issued("/root", root).await;
    server.generate_leaf("/web", "/root").await;
    server.generate_authority("/other", None).await;
    expired_authority().set(&server, "/old", None).await;
    let overview = browser.page("/console/overview").await.body;
    let link = |days: u32, label: &str, count: u32| {
        format!(
            "<dt><a href=\"/console/expiring?within-days={days}\">{label}</a></dt><dd>{count}</dd>"
        )
    };
    for expected in [
        link(0, "Expired", 1),
        link(7, "Within 7 days", 0),
        link(30, "Within 30 days", 2),
        link(90, "Within 90 days", 2),
    ] {
        overview.assert_contains(&expected);
    }
    let within = browser.page("/console/expiring?within-days=30").await.body;
    within.assert_contains("/root</a>");
    within.assert_contains("itself");
    within.assert_contains("/web</a>");
    within.assert_contains("a CA above it");
    within.assert_lacks("/other");
    within.assert_lacks("/old");
    let expired = browser.page("/console/expiring?within-days=0").await.body;
    expired.assert_contains("/old</a>");
    expired.assert_lacks("/web");
    let nothing = browser.page("/console/expiring?within-days=7").await.body;
    nothing.assert_contains("No credential that you may read");
    browser.page("/console/expiring?within-days=366").await;
    for days in ["-1", "367", "x"] {
        browser
            .refused(400, &format!("/console/expiring?within-days={days}"))
            .await;
    }
    let finds = events(&server, "FIND");
    let details = json!({"path": "/", "expires-within-days": 30});
    let mut finds = finds.iter().map(|find| &find["request_details"]);
    assert!(finds.any(|found| *found == details));
}

#[tokio::test]
async fn a_list_of_expiring_credentials_has_pages() {
    let (server, mut browser) = session().await;
    let root = expired_authority();
    for number in 0..101 {
        if number == 100 {
            let page = browser.get("/console/expiring?within-days=0").await.body;
            page.assert_lacks("Next page");
        }
        root.set(&server, &format!("/old/{number:03}"), None).await;
    }
    let page = browser.get("/console/expiring?within-days=0").await.body;
    page.assert_contains("/old/099</a>");
    page.assert_lacks("/old/100</a>");
    let page = browser
        .page("/console/expiring?within-days=0&page=2")
        .await
        .body;
    page.assert_contains("/old/100</a>");
    page.assert_contains("Page 2 of 2");
    // 1,000 in total, and then one more.
    server.copy_certificate("/old/000", 899).await;
    let page = browser
        .page("/console/expiring?within-days=0&page=10")
        .await
        .body;
    page.assert_contains("Page 10 of 10");
    page.assert_lacks("Not shown");
    root.set(&server, "/old/last", None).await;
    let page = browser.get("/console/expiring?within-days=0").await.body;
    page.assert_contains("Not shown: 1 more.");
    let overview = browser.page("/console/overview").await.body;
    overview.assert_contains("Expired</a></dt><dd>1001</dd>");
}
