//! The overview and the lists of expiring credentials.

use serde_json::json;

use crate::{
    browser::{Browser, DEVELOPER},
    events,
    external::Ca,
    server,
};

#[tokio::test]
async fn a_certificate_is_due_when_its_ca_expires() {
    let server = server().await;
    let root =
        json!({"common_name": "root", "is_ca": true, "duration": 20, "key_type": "ecdsa-p256"});
    server
        .generate("/root", "certificate", root)
        .await
        .expect(200);
    server.generate_leaf("/web", "/root").await;
    server.generate_authority("/other", None).await;
    Ca::expired().set(&server, "/old", None).await;
    let mut browser = Browser::logged_in(&server, DEVELOPER).await;
    let overview = browser.get("/console/overview").await.expect(200).body;
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
        assert!(overview.contains(&expected), "{expected}: {overview}");
    }
    let within = browser
        .get("/console/expiring?within-days=30")
        .await
        .expect(200)
        .body;
    assert!(
        within.contains("/root</a>") && within.contains("itself"),
        "{within}"
    );
    assert!(
        within.contains("/web</a>") && within.contains("a CA above it"),
        "{within}"
    );
    assert!(
        !within.contains("/other") && !within.contains("/old"),
        "{within}"
    );
    let expired = browser
        .get("/console/expiring?within-days=0")
        .await
        .expect(200)
        .body;
    assert!(
        expired.contains("/old</a>") && !expired.contains("/web"),
        "{expired}"
    );
    let nothing = browser
        .get("/console/expiring?within-days=7")
        .await
        .expect(200)
        .body;
    assert!(
        nothing.contains("No credential that you may read"),
        "{nothing}"
    );
    browser
        .get("/console/expiring?within-days=366")
        .await
        .expect(200);
    for days in ["-1", "367", "x"] {
        browser
            .get(&format!("/console/expiring?within-days={days}"))
            .await
            .expect(400);
    }
    let finds = events(&server, "FIND");
    let details = json!({"path": "/", "expires-within-days": 30});
    assert!(
        finds.iter().any(|find| find["request_details"] == details),
        "{finds:?}"
    );
}

#[tokio::test]
async fn a_list_of_expiring_credentials_has_pages() {
    let server = server().await;
    let root = Ca::expired();
    let mut browser = Browser::logged_in(&server, DEVELOPER).await;
    for number in 0..101 {
        if number == 100 {
            let page = browser.get("/console/expiring?within-days=0").await.body;
            assert!(!page.contains("Next page"), "{page}");
        }
        root.set(&server, &format!("/old/{number:03}"), None).await;
    }
    let page = browser.get("/console/expiring?within-days=0").await.body;
    assert!(
        page.contains("/old/099</a>") && !page.contains("/old/100</a>"),
        "{page}"
    );
    let page = browser
        .get("/console/expiring?within-days=0&page=2")
        .await
        .body;
    assert!(
        page.contains("/old/100</a>") && page.contains("Page 2 of 2"),
        "{page}"
    );
    // 1,000 in total, and then one more.
    server.copy_certificate("/old/000", 899).await;
    let page = browser.get("/console/expiring?within-days=0&page=10").await;
    let page = page.expect(200).body;
    assert!(
        page.contains("Page 10 of 10") && !page.contains("Not shown"),
        "{page}"
    );
    root.set(&server, "/old/last", None).await;
    let page = browser.get("/console/expiring?within-days=0").await.body;
    assert!(page.contains("Not shown: 1 more."), "{page}");
    let overview = browser.get("/console/overview").await.expect(200).body;
    assert!(
        overview.contains("Expired</a></dt><dd>1001</dd>"),
        "{overview}"
    );
}
