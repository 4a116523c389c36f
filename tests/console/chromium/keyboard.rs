//! Uses the console with only the keyboard.

use serde_json::json;
use thirtyfour::{Key, TypingData};

use super::Chromium;
use crate::server;

#[tokio::test]
async fn a_credential_is_generated_and_revealed_with_the_keyboard() {
    let server = server().await;
    let Some(chromium) = Chromium::logged_in(&server).await else {
        return;
    };
    chromium.tab_to("Skip to the content").await;
    chromium.type_keys(Key::Enter).await;
    chromium.tab_to("Part of the name").await;

    chromium.open("/console").await;
    chromium.tab_to("Generate").await;
    chromium.type_keys(Key::Enter).await;
    chromium.find_text("Choose a type.").await;
    chromium.tab_to("password").await;
    chromium.type_keys(Key::Enter).await;
    chromium
        .find_text("Generate a credential of type password")
        .await;
    chromium.tab_to("Name (required)").await;
    chromium.type_keys("/keyboard/password").await;
    chromium.tab_to("length").await;
    chromium.type_keys("12").await;
    chromium.tab_to("exclude_upper").await;
    chromium.type_keys(" ").await;
    chromium.tab_to("Metadata").await;
    chromium.tab_to("If the credential exists").await;
    chromium.type_keys("K").await;
    chromium.tab_to("Generate").await;
    chromium.type_keys(Key::Enter).await;
    chromium.find_text("The credential was generated.").await;
    let value = server.versions("/keyboard/password").await[0]["value"].clone();
    let value = value.as_str().unwrap();
    assert_eq!(value.len(), 12);
    assert_eq!(value.to_lowercase(), value);
    chromium.tab_to("Reveal value").await;
    chromium.type_keys(" ").await;
    chromium.find_text(value).await;
    chromium.tab_to("Hide").await;
    chromium.check_log("keyboard").await;
}

impl Chromium {
    /// Presses the Tab key until the element with this label has the focus, whose outline must be visible.
    async fn tab_to(&self, label: &str) {
        let mut passed = Vec::new();
        for _ in 0..TABS_MAX {
            self.type_keys(Key::Tab).await;
            let focused = self.run(FOCUSED, json!([])).await;
            if focused["label"] == label {
                assert_ne!(focused["outline"], "none", "{label}");
                return;
            }
            passed.push(focused["label"].clone());
        }
        panic!("no {label} among {passed:?}");
    }

    /// Presses keys in the element that has the focus.
    async fn type_keys(&self, keys: impl Into<TypingData>) {
        let typing = self.driver.action_chain_with_delay(None, None);
        typing.send_keys(keys).perform().await.unwrap();
    }
}

const FOCUSED: &str = "const element = document.activeElement;
    const label = element.ariaLabel ?? element.labels?.[0]?.innerText ?? element.innerText;
    return { label: label.trim(), outline: getComputedStyle(element).outlineStyle };";

/// The number of elements of a page that can have the focus.
const TABS_MAX: usize = 60;
