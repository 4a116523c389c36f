//! The script: copying, refreshing, and the policy that allows no other script.

use std::{fs, path::Path};

use keywright_harness::{Options, Server, Text, key_file};
use serde_json::json;
use tempfile::TempDir;

use super::Chromium;
use crate::{events, server};

const SECRET: &str = "\n two  lines\r\nand ünïcode\t";

#[tokio::test]
async fn a_secret_is_copied_exactly_and_not_shown() {
    let server = server().await;
    let user = json!({"username": "ada", "password": SECRET});
    server.stored("/a", "user", user).await;
    let Some(chromium) = Chromium::logged_in(&server).await else {
        return;
    };
    chromium.allow_reading_the_clipboard().await;
    chromium.open("/console/credential?name=/a").await;
    chromium.click("[aria-label='Copy password']").await;
    chromium.find_text("Copied.").await;
    assert_eq!(chromium.clipboard().await, SECRET);
    let reads = events(&server, "GET");
    assert_eq!(reads.len(), 1, "{reads:?}");
    assert_eq!(reads[0]["resource_name"], "/a");
    assert_eq!(chromium.location().await, "/console/credential?name=/a");
    let page = chromium.driver.source().await.unwrap();
    let stored = chromium.run(STORED, json!([])).await;
    for place in [
        &page,
        &stored.to_string(),
        &server.log(),
        &server.audit_trail(),
    ] {
        place.assert_lacks("two  lines");
    }
    chromium.click("[aria-label='Copy username']").await;
    chromium
        .wait_for("copied name", async || chromium.clipboard().await == "ada")
        .await;
    chromium.submit("[aria-label='Reveal password']").await;
    chromium.click("[aria-label='Copy password']").await;
    chromium
        .wait_for("copied secret", async || {
            chromium.clipboard().await == SECRET
        })
        .await;
    chromium.check_log("copy").await;

    chromium.open("/console/credential?name=/a").await;
    server.delete("/api/v1/data?name=/a").await.expect(204);
    chromium.click("[aria-label='Copy password_hash']").await;
    chromium
        .find_text("Copying failed. Open the page again.")
        .await;
    assert_eq!(chromium.clipboard().await, SECRET);
}

#[tokio::test]
async fn without_scripts_there_are_no_copy_buttons() {
    let server = server().await;
    server.stored("/a", "password", json!("v")).await;
    let Some(chromium) = Chromium::logged_in(&server).await else {
        return;
    };
    for is_disabled in [false, true] {
        let command = "Emulation.setScriptExecutionDisabled";
        chromium
            .command(command, json!({"value": is_disabled}))
            .await;
        chromium.open("/console/credential?name=/a").await;
        chromium.find("[aria-label='Reveal value']").await;
        let actual = chromium.has("[aria-label='Copy value']").await;
        assert_eq!(actual, !is_disabled);
    }
}

#[tokio::test]
async fn a_running_rotation_is_refreshed_until_it_is_complete() {
    let keys = TempDir::new().unwrap();
    let server = Server::start_with(&Options::default().console("")).await;
    server.stored("/old", "value", json!("v")).await;
    let options = Options::default()
        .console("")
        .encryption(&rotated_keys(&keys));
    let server = Server::start_in(server.stop().await, &options).await;
    let Some(chromium) = Chromium::logged_in(&server).await else {
        return;
    };
    chromium.open("/console/keys-and-plugins").await;
    chromium.check("keys-in-rotation").await;
    chromium.find("[data-live]").await;
    chromium.run("window.isSamePage = true", json!([])).await;
    server.delete("/api/v1/data?name=/old").await.expect(204);
    let is_complete = async || !chromium.has("[data-live]").await;
    chromium
        .wait_for("end of the refreshing", is_complete)
        .await;
    let is_same_page = chromium.run("return window.isSamePage", json!([])).await;
    assert_eq!(is_same_page, json!(true));
    let text = chromium.text().await;
    text.assert_lacks("Rotation of the encryption key");
    chromium.check_log("keys-after-rotation").await;
}

#[tokio::test]
async fn refreshing_ends_with_the_session() {
    let keys = TempDir::new().unwrap();
    let server = Server::start_with(&Options::default().console("")).await;
    server.stored("/old", "value", json!("v")).await;
    let options = Options::default()
        .console("idle_seconds_max = 12")
        .encryption(&rotated_keys(&keys));
    let server = Server::start_in(server.stop().await, &options).await;
    let Some(chromium) = Chromium::logged_in(&server).await else {
        return;
    };
    chromium.open("/console/keys-and-plugins").await;
    chromium.find("[data-live]").await;
    chromium
        .find_text("You are logged out of the console")
        .await;
}

/// Returns the sections of a new active key and of the tests' key, without automatic rotation.
fn rotated_keys(folder: &TempDir) -> String {
    let new = folder.path().join("new.key");
    fs::write(&new, "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=").unwrap();
    let section = |file: &Path, is_active: bool| {
        let file = file.display();
        format!(
            "[[encryption.keys]]\nprovider = \"raw\"\nfile = \"{file}\"\nactive = {is_active}\n"
        )
    };
    let keys = [
        section(&new, true),
        section(&key_file("encryption.key"), false),
    ]
    .concat();
    format!("{keys}[encryption.rotation]\nenabled = false\n")
}

#[tokio::test]
async fn the_policy_forbids_other_scripts_and_other_sites() {
    let server = server().await;
    let Some(chromium) = Chromium::logged_in(&server).await else {
        return;
    };
    let attempted = chromium.driver.execute_async(ATTEMPTS, []).await.unwrap();
    let attempted = attempted.json();
    assert_eq!(attempted["ran"], json!([]));
    assert_eq!(attempted["blocked"], json!(10));
    let messages = chromium.log().await;
    let is_violation = |message: &&String| message.contains("Content Security Policy");
    assert!(
        messages.iter().filter(is_violation).count() >= 10,
        "{messages:#?}"
    );
}

impl Chromium {
    async fn allow_reading_the_clipboard(&self) {
        let permissions = json!({"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]});
        self.command("Browser.grantPermissions", permissions).await;
    }

    async fn clipboard(&self) -> String {
        let read = "const [done] = arguments; navigator.clipboard.readText().then(done, (error) => done(String(error)));";
        let text = self.driver.execute_async(read, []).await.unwrap();
        text.json().as_str().unwrap().to_owned()
    }
}

/// Returns everything that the page stores and shows.
const STORED: &str = "return [
    { ...localStorage }, { ...sessionStorage }, history.state, location.href, document.documentElement.outerHTML,
    performance.getEntries().map(({ name }) => name),
];";

/// Waits after each attempt until the policy blocks it.
const ATTEMPTS: &str = "const [done] = arguments;
window.ran = [];
const other = 'https://localhost:1/a';
const append = (name, attributes) => {
  const element = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
  document.body.append(element);
  return element;
};
const attempts = [
  () => document.body.append(Object.assign(document.createElement('script'), { textContent: 'ran.push(1)' })),
  () => append('script', { src: other }),
  () => append('script', { src: 'data:text/javascript,ran.push(2)' }),
  () => append('button', { onclick: 'ran.push(3)' }).click(),
  () => append('a', { href: 'javascript:ran.push(4)' }).click(),
  () => setTimeout(() => eval('ran.push(5)')),
  () => fetch(other).catch(() => {}),
  () => append('img', { src: other }),
  () => append('iframe', { src: other }),
  () => append('form', { action: other, method: 'post' }).submit(),
];
(async () => {
  let blocked = 0;
  for (const attempt of attempts) {
    const violation = new Promise((resolve) => addEventListener('securitypolicyviolation', resolve, { once: true }));
    attempt();
    await violation;
    blocked += 1;
  }
  done({ ran: window.ran, blocked });
})();";
