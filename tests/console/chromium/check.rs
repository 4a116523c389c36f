//! The check of a page: no message in the console of the browser, no violation of the Web Content Accessibility Guidelines, and no
//! horizontal scrolling. Writes pictures of the page to `target/console-pictures/`, in light and dark and in a narrow window.

use std::{fs, path::PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD};
use keywright_harness::workspace;
use serde_json::{Value, json};

use super::{Chromium, HEIGHT, Look};

impl Chromium {
    /// Checks the page, and saves its pictures under this name.
    pub(super) async fn check(&self, name: &str) {
        self.check_log(name).await;
        self.driver.execute(self.axe.as_str(), []).await.unwrap();
        for look in [Look::NARROW, Look::DARK, Look::LIGHT] {
            self.show_as(look).await;
            self.check_look(name, look).await;
        }
        // The checker may have caused messages.
        self.log().await;
    }

    /// Checks that the browser has logged no error and no violation of the content security policy since the last check.
    pub(super) async fn check_log(&self, name: &str) {
        let messages = self.log().await;
        assert!(messages.is_empty(), "{name}: {messages:#?}");
    }

    /// Returns the messages since the last call, except for the expected status of an error page itself.
    pub(super) async fn log(&self) -> Vec<String> {
        let page = self.driver.current_url().await.unwrap();
        let failed =
            format!("{page} - Failed to load resource: the server responded with a status of 4");
        let entries = self.driver.browser_log().await.unwrap();
        let messages = entries.into_iter().map(|entry| entry.message);
        messages
            .filter(|message| !message.starts_with(&failed))
            .collect()
    }

    async fn check_look(&self, name: &str, look: Look) {
        let shown = format!("{name} ({})", look.name);
        let size = self.run(SIZE, json!([])).await;
        let width = size["width"].as_u64().unwrap();
        assert!(width <= look.width.into(), "{shown} is {width} wide");
        self.save_picture(&format!("{name}-{}", look.name), &size)
            .await;
        let rules = if look.is_dark() {
            // The other rules do not depend on colours.
            json!({"type": "rule", "values": ["color-contrast"]})
        } else {
            json!({"type": "tag", "values": RULES})
        };
        let violations = self.driver.execute_async(RUN_AXE, [rules]).await;
        assert_eq!(*violations.unwrap().json(), json!([]), "{shown}");
    }

    /// Writes a picture of the whole page.
    async fn save_picture(&self, name: &str, size: &Value) {
        let folder = pictures();
        fs::create_dir_all(&folder).unwrap();
        let height = size["height"].as_u64().unwrap().max(HEIGHT.into());
        let clip = json!({"x": 0, "y": 0, "width": size["window"], "height": height, "scale": 1});
        let picture = self.picture(clip, false).await;
        fs::write(folder.join(format!("{name}.png")), picture).unwrap();
    }

    /// Returns a picture of a part of the page, as PNG. A smaller file takes longer.
    pub(super) async fn picture(&self, clip: Value, is_small: bool) -> Vec<u8> {
        let parameters = json!({
            "format": "png", "captureBeyondViewport": true, "optimizeForSpeed": !is_small, "clip": clip,
        });
        let picture = self.command("Page.captureScreenshot", parameters).await;
        STANDARD.decode(picture["data"].as_str().unwrap()).unwrap()
    }
}

fn pictures() -> PathBuf {
    workspace().join("target/console-pictures")
}

const SIZE: &str = "const page = document.documentElement;
    return { width: page.scrollWidth, height: page.scrollHeight, window: window.innerWidth };";

/// Returns the violated rules with the elements.
const RUN_AXE: &str = "const [rules, done] = arguments;
    axe.run(document, { runOnly: rules, resultTypes: ['violations'] }).then(
      ({ violations }) => done(violations.map(({ id, nodes }) => [id, ...nodes.map(({ html, failureSummary }) => [html, failureSummary])])),
      (error) => done([String(error)]),
    );";

/// The levels A and AA of the guidelines 2.0 to 2.2, and the checker's other recommendations.
const RULES: [&str; 6] = [
    "wcag2a",
    "wcag2aa",
    "wcag21a",
    "wcag21aa",
    "wcag22aa",
    "best-practice",
];
