//! Login, browsing, the page of a credential, the overview, and logout.

use keywright_harness::Options;

use super::Chromium;
use crate::{browser::GUEST, given, server};

#[tokio::test]
async fn pages_that_only_read_are_accessible() {
    let server = server().await;
    given::credentials(&server).await;
    let Some(chromium) = Chromium::start(&server).await else {
        return;
    };
    chromium
        .open("/console/credential?name=/shop/database/user")
        .await;
    chromium.log_in(crate::browser::DEVELOPER).await;
    // The page that the user requested before the login.
    let actual = chromium.location().await;
    assert_eq!(actual, "/console/credential?name=/shop/database/user");
    chromium.check("credential").await;
    chromium.submit("[aria-label='Reveal password']").await;
    chromium.find_text("correct horse battery staple").await;
    chromium.check("revealed").await;
    chromium.follow("Hide").await;
    assert!(!chromium.text().await.contains("correct horse"));

    chromium.follow("Credentials").await;
    chromium.check("credentials").await;
    chromium.follow("shop/").await;
    chromium.follow("database/").await;
    chromium.check("credentials-below-path").await;
    chromium.follow("root-password").await;
    chromium.find_text("Active version").await;
    chromium.open("/console/credential?name=/pki/root").await;
    chromium.find_text("Transitional version").await;
    chromium.check("certificate").await;
    chromium.follow("Overview").await;
    chromium.check("overview").await;

    chromium.open("/console").await;
    chromium.fill("name-like", "password").await;
    chromium.submit(".search button").await;
    chromium.find_text("/shop/database/root-password").await;
    chromium.check("search").await;
    chromium.click("summary").await;
    chromium.fill("type", "certificate").await;
    chromium.fill("expires-within-days", "365").await;
    chromium.submit(".search button").await;
    chromium
        .find_text("There is no matching credential below / that you may read.")
        .await;
    chromium.fill("name-like", "").await;
    chromium.submit(".search button").await;
    chromium.find_text("/pki/root").await;
    chromium.check("filters").await;

    chromium.open("/console/credential?name=/absent").await;
    chromium.find_text("Back to the credentials").await;
    chromium.check("absent").await;
    chromium.open("/console").await;
    chromium.submit(".session button").await;
    chromium
        .find_text("You are logged out of the console.")
        .await;
    chromium.check("logged-out").await;
    chromium.open("/console").await;
    chromium.find_text("Development login").await;
}

#[tokio::test]
async fn pages_without_entries_are_accessible() {
    let server =
        keywright_harness::Server::start_with(&Options::default().without_plugins().console(""))
            .await;
    let Some(chromium) = Chromium::start(&server).await else {
        return;
    };
    chromium.open("/console").await;
    chromium.log_in(GUEST).await;
    for (path, page) in [
        ("/console", "no-credentials"),
        ("/console?name-like=absent", "no-results"),
        ("/console/overview", "empty-overview"),
        ("/console/generate", "no-generators"),
        ("/console/callback", "refused-login"),
    ] {
        chromium.open(path).await;
        chromium.check(page).await;
    }
}
