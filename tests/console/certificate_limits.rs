//! The limits of the pages of CAs and certificates, and hostile certificates.

use keywright_harness::{TestCertificate, Text};

use crate::{certificates::CERTIFICATES, external::alternative_names, session};

#[tokio::test]
async fn a_page_of_the_forest_shows_at_most_fifty_cas() {
    let (server, mut browser) = session().await;
    for number in 0..51 {
        let page = browser.page(CERTIFICATES).await.body;
        assert_eq!(nodes(&page), number, "{page}");
        page.assert_lacks("Next page");
        let root = TestCertificate::root("root");
        root.set(&server, &format!("/{number:02}"), None).await;
    }
    let page = browser.page(CERTIFICATES).await.body;
    assert_eq!(nodes(&page), 50);
    page.assert_contains("href=\"/console/certificates?from=%2F50\"");
    let page = browser.page("/console/certificates?from=/50").await.body;
    assert_eq!(nodes(&page), 1);
    page.assert_contains(">/50</a>");
    page.assert_contains("First page");
}

#[tokio::test]
async fn a_deep_chain_is_cut_off_and_its_download_refused() {
    let (server, mut browser) = session().await;
    let mut above = TestCertificate::root("0");
    above.set(&server, "/00", None).await;
    for number in 1..51 {
        let next = above.authority(&number.to_string());
        let signer = format!("/{:02}", number - 1);
        let name = format!("/{number:02}");
        next.set(&server, &name, Some(&signer)).await;
        above = next;
    }
    let page = browser.page(CERTIFICATES).await.body;
    assert_eq!(nodes(&page), 50);
    page.assert_contains("Show everything that /49 signed");
    page.assert_lacks("Next page");
    let download = |name| format!("/console/certificate/download?name={name}&part=chain");
    let chain = browser.page(&download("/19")).await.body;
    assert_eq!(chain.matches("BEGIN").count(), 20);
    let refused = browser.refused(413, &download("/20")).await;
    refused.assert_contains("A chain must have at most 20 certificates.");
}

#[tokio::test]
async fn cas_that_signed_each_other_are_shown_once() {
    let (server, mut browser) = session().await;
    let one = TestCertificate::root("one");
    one.set(&server, "/one", None).await;
    let two = one.authority("two");
    two.set(&server, "/two", Some("/one")).await;
    let one = two.authority("one");
    one.set(&server, "/one", Some("/two")).await;
    let page = browser.page(CERTIFICATES).await.body;
    assert_eq!(nodes(&page), 2);
    for name in ["one", "two"] {
        let path = format!("/console/certificate?name=/{name}");
        let page = browser.page(&path).await;
        page.assert_contains("Signed credentials");
    }
}

#[tokio::test]
async fn long_lists_of_names_are_cut_off() {
    let (server, mut browser) = session().await;
    let root = TestCertificate::root("root");
    root.set(&server, "/root", None).await;
    let all = "Show everything that /root signed";
    for number in 0..101 {
        let page = if [10, 11].contains(&number) {
            browser.page(CERTIFICATES).await.body
        } else {
            String::new()
        };
        assert_eq!(page.contains(all), number == 11, "{number}: {page}");
        if number == 100 {
            let page = browser.get("/console/certificate?name=/root").await.body;
            page.assert_lacks("Next page");
        }
        let leaf = root.leaf_with("leaf", |_| {});
        let name = format!("/leaf/{number:03}");
        leaf.set(&server, &name, Some("/root")).await;
    }
    let page = browser.get("/console/certificate?name=/root").await.body;
    page.assert_contains("/leaf/099</a>");
    page.assert_lacks("/leaf/100</a>");
    let page = browser
        .page("/console/certificate?name=/root&page=2")
        .await
        .body;
    page.assert_contains("/leaf/100</a>");
    page.assert_contains("Page 2 of 2");
    // 1,000 in total, and then one more.
    server.copy_certificate("/leaf/000", 899).await;
    let limit = "Only the first 1000 are shown.";
    let page = browser.get("/console/certificate?name=/root").await.body;
    page.assert_contains("Page 1 of 10");
    page.assert_lacks(limit);
    for (count, more) in [(100, false), (101, true)] {
        let leaf = root.leaf_with("leaf", |parameters| {
            parameters.subject_alt_names = alternative_names("a.example", count);
        });
        leaf.set(&server, "/names", Some("/root")).await;
        let page = browser.get("/console/certificate?name=/names").await.body;
        assert_eq!(page.matches("DNS: ").count(), 100);
        assert_eq!(page.contains("Not shown: 1 more."), more, "{count}: {page}");
    }
    let page = browser.get("/console/certificate?name=/root").await.body;
    page.assert_contains("Page 1 of 10");
    page.assert_contains(limit);
    let subject = |length: usize| TestCertificate::root(&"ä".repeat(length - "CN=".len()));
    for (length, is_cut) in [(200, false), (201, true)] {
        subject(length).set(&server, "/long", None).await;
        let page = browser.get("/console/certificate?name=/long").await.body;
        assert_eq!(page.contains("ä…</bdi>"), is_cut, "{length}: {page}");
    }
}

#[tokio::test]
async fn the_forest_has_at_most_ten_thousand_cas() {
    let (server, mut browser) = session().await;
    let root = TestCertificate::root("root");
    root.set(&server, "/ca", None).await;
    server.copy_certificate("/ca", 9_998).await;
    let last = TestCertificate::root("last");
    last.set(&server, "/zz", None).await;
    // Values that can't be decrypted don't hide the other CAs.
    let page = browser.page(CERTIFICATES).await.body;
    assert_eq!(nodes(&page), 50);
    page.assert_contains("its certificate can't be read");
    page.assert_contains("CN=root");
    let limit = "Only the newest 10000 CAs are shown.";
    let page = browser.page("/console/certificates?from=/zz").await.body;
    assert!(!page.contains(limit) && nodes(&page) == 1, "{page}");
    last.set(&server, "/zzz", None).await;
    let page = browser.page("/console/certificates?from=/zz").await.body;
    assert!(page.contains(limit) && nodes(&page) == 2, "{page}");
}

/// Returns the number of CAs in the tree of a page.
fn nodes(page: &str) -> usize {
    page.matches("class=\"node\"").count()
}
