//! The console in Chromium, driven by Debian's `chromium-driver`: each page is checked by `check.rs`.
//!
//! Each test starts its own browser. To test a page, open it, and call [`Chromium::check`] in each of its states.

mod changes;
mod check;
mod keyboard;
mod pictures;
mod reading;
mod script;

use std::{
    fs,
    io::{BufRead, BufReader},
    iter,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use keywright_harness::{Server, is_available, npm_package};
use serde_json::{Value, json};
use tempfile::TempDir;
use thirtyfour::{
    By, CapabilitiesHelper, ChromiumLikeCapabilities, DesiredCapabilities, LoggingPrefsLogLevel,
    WebDriver, WebElement,
};

use crate::browser::DEVELOPER;

/// A browser with one window. Dropping it ends all of its processes.
pub(crate) struct Chromium {
    driver: WebDriver,
    base_url: String,
    /// The program that checks the accessibility of pages.
    axe: String,
    _process: DriverProcess,
}

impl Chromium {
    /// Starts a browser. If no browser is installed, prints a message, or fails in CI.
    async fn start(server: &Server) -> Option<Self> {
        if !is_available("chromium") || !is_available("chromedriver") {
            return None;
        }
        let axe = fs::read_to_string(npm_package("axe-core")?.join("axe.min.js")).unwrap();
        let (process, address) = DriverProcess::start();
        let mut capabilities = DesiredCapabilities::chrome();
        for argument in ARGUMENTS {
            capabilities.add_arg(argument).unwrap();
        }
        capabilities.accept_insecure_certs(true).unwrap();
        let all = LoggingPrefsLogLevel::All;
        capabilities.set_browser_log_level(all).unwrap();
        let driver = WebDriver::new(&address, capabilities).await.unwrap();
        // The process ends the session.
        driver.clone().leak().unwrap();
        let chromium = Self {
            driver,
            base_url: server.base_url().to_owned(),
            axe,
            _process: process,
        };
        chromium.show_as(Look::LIGHT).await;
        Some(chromium)
    }

    /// Starts a browser, and logs a user with all permissions in on the first page.
    async fn logged_in(server: &Server) -> Option<Self> {
        let chromium = Self::start(server).await?;
        chromium.open("/console").await;
        chromium.log_in(DEVELOPER).await;
        Some(chromium)
    }

    /// Logs a user in on the provider's page, and waits for the page that follows.
    async fn log_in(&self, (name, password): (&str, &str)) {
        self.fill("username", name).await;
        self.fill("password", password).await;
        self.submit("button").await;
        self.find("nav[aria-label=Console]").await;
    }

    /// Opens a page.
    async fn open(&self, path: &str) {
        let url = format!("{}{path}", self.base_url);
        self.driver.goto(url).await.unwrap();
    }

    /// Returns the path and the query of the page.
    async fn location(&self) -> String {
        let url = self.driver.current_url().await.unwrap();
        let location = url.as_str().strip_prefix(&self.base_url);
        location
            .unwrap_or_else(|| panic!("not a page of the server: {url}"))
            .to_owned()
    }

    /// Waits for an element, and returns it.
    async fn find(&self, selector: &str) -> WebElement {
        self.find_by(By::Css(selector)).await
    }

    async fn find_by(&self, by: By) -> WebElement {
        let mut found = None;
        self.wait_for(&format!("{by:?}"), async || {
            found = self.driver.find(by.clone()).await.ok();
            found.is_some()
        })
        .await;
        found.unwrap()
    }

    /// Returns whether the page has an element.
    async fn has(&self, selector: &str) -> bool {
        !self
            .driver
            .find_all(By::Css(selector))
            .await
            .unwrap()
            .is_empty()
    }

    /// Waits for a text on the page.
    async fn find_text(&self, text: &str) {
        self.wait_for(text, async || self.text().await.contains(text))
            .await;
    }

    /// Returns the text of the page.
    async fn text(&self) -> String {
        let text = self
            .run("return document.body?.innerText ?? ''", json!([]))
            .await;
        text.as_str().unwrap().to_owned()
    }

    async fn wait_for(&self, awaited: &str, mut is_fulfilled: impl AsyncFnMut() -> bool) {
        let begun = Instant::now();
        while !is_fulfilled().await {
            let is_late = begun.elapsed() > PATIENCE;
            assert!(!is_late, "no {awaited} in {}", self.text().await);
            tokio::time::sleep(POLL).await;
        }
    }

    /// Clicks an element.
    async fn click(&self, selector: &str) {
        self.find(selector).await.click().await.unwrap();
    }

    /// Clicks the link with this text, and waits for the next page.
    async fn follow(&self, text: &str) {
        let link = self.find_by(By::LinkText(text)).await;
        self.leave_by(&link).await;
    }

    /// Clicks a button that submits a form, and waits for the next page.
    async fn submit(&self, selector: &str) {
        let button = self.find(selector).await;
        self.leave_by(&button).await;
    }

    async fn leave_by(&self, element: &WebElement) {
        self.run("window.isLeft = true", json!([])).await;
        element.click().await.unwrap();
        let is_loaded = "return !window.isLeft && document.readyState === 'complete'";
        self.wait_for("next page", async || {
            let loaded = self.driver.execute(is_loaded, []).await;
            loaded.is_ok_and(|loaded| *loaded.json() == json!(true))
        })
        .await;
    }

    /// Fills in the field of a form: enters a text, chooses an option, or checks the box with this value.
    async fn fill(&self, name: &str, value: &str) {
        let field = self.find(&format!("[name='{name}']")).await;
        if field.tag_name().await.unwrap() == "select" {
            self.click(&format!("[name='{name}'] option[value='{value}']"))
                .await;
        } else if field.attr("type").await.unwrap().as_deref() == Some("checkbox") {
            self.click(&format!("[name='{name}'][value='{value}']"))
                .await;
        } else {
            field.clear().await.unwrap();
            field.send_keys(value).await.unwrap();
        }
    }

    /// Runs a script in the page, as the body of a function, and returns its result.
    async fn run(&self, script: &str, arguments: Value) -> Value {
        let arguments = arguments.as_array().unwrap().clone();
        let result = self.driver.execute(script, arguments).await;
        result.unwrap().json().clone()
    }

    /// Sends a command of the Chrome `DevTools` Protocol.
    async fn command(&self, name: &str, parameters: Value) -> Value {
        self.driver.cdp().send_raw(name, parameters).await.unwrap()
    }

    /// Changes the window and the user's preferred colours.
    async fn show_as(&self, look: Look) {
        let features = json!([{"name": "prefers-color-scheme", "value": look.colours}]);
        self.command("Emulation.setEmulatedMedia", json!({"features": features}))
            .await;
        let size =
            json!({"width": look.width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": false});
        self.command("Emulation.setDeviceMetricsOverride", size)
            .await;
    }
}

/// The width of a window, and the user's preferred colours.
#[derive(Clone, Copy)]
struct Look {
    name: &'static str,
    colours: &'static str,
    width: u32,
}

impl Look {
    const LIGHT: Self = Self {
        name: "light",
        colours: "light",
        width: 1_200,
    };
    const DARK: Self = Self {
        name: "dark",
        colours: "dark",
        width: 1_200,
    };
    const NARROW: Self = Self {
        name: "narrow",
        colours: "light",
        width: 380,
    };

    fn is_dark(self) -> bool {
        self.colours == Self::DARK.colours
    }
}

/// The height of windows.
const HEIGHT: u32 = 800;

/// A process of `chromedriver`, which starts the browser. Their files are in a folder of their own.
struct DriverProcess {
    shell: Child,
    _folder: TempDir,
}

impl DriverProcess {
    /// Starts the process on a free port, and returns its address. The process exits if another one takes the port that it has chosen.
    fn start() -> (Self, String) {
        let attempts = iter::repeat_with(Self::attempt).take(5);
        attempts.flatten().next().expect("chromedriver starts")
    }

    fn attempt() -> Option<(Self, String)> {
        let folder = TempDir::new().unwrap();
        let mut shell = Command::new("sh")
            // Ends all processes once standard input ends, at the latest when the test process exits.
            .args([
                "-c",
                "chromedriver --port=0 & exec >&-; read -r _; kill -9 0",
            ])
            .process_group(0)
            .env("HOME", folder.path())
            .env("TMPDIR", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(shell.stdout.take().unwrap());
        let mut lines = output.lines().map(Result::unwrap);
        let port = lines.find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        });
        let process = Self {
            shell,
            _folder: folder,
        };
        Some((process, format!("http://127.0.0.1:{}", port?)))
    }
}

impl Drop for DriverProcess {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

const ARGUMENTS: [&str; 6] = [
    "--headless=new",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--hide-scrollbars",
    // Only the tests' own pages are opened, and the tests may run as root.
    "--no-sandbox",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/// Maximum time to wait for a condition, sufficient for a slow and busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

const POLL: Duration = Duration::from_millis(20);
