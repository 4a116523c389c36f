//! The management listener of a server.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::Value;

use crate::{Answer, Scrape, Server};

impl Server {
    /// The management address, with its scheme, from the log.
    pub fn management_url(&self) -> String {
        let log = self.log();
        let address = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find_map(|line| line["management.address"].as_str().map(str::to_owned));
        format!("http://{}", address.expect("a management address"))
    }

    /// Sends a request to the management address.
    pub async fn ask_management(&self, method: Method, path: &str) -> Answer {
        let url = format!("{}{path}", self.management_url());
        self.send(self.request_to(method, &url)).await
    }

    /// Scrapes the server's metrics.
    pub async fn scrape(&self) -> Scrape {
        let answer = self.ask_management(Method::GET, "/metrics").await;
        Scrape::parse(&answer.expect(200).body)
    }

    /// Scrapes the server's metrics until the condition holds.
    pub async fn scrape_until(&self, is_met: impl Fn(&Scrape) -> bool) -> Scrape {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let scrape = self.scrape().await;
            if is_met(&scrape) {
                return scrape;
            }
            tokio::time::sleep(POLL).await;
        }
        panic!("it was not met:\n{}", self.scrape().await.text());
    }
}

const POLL: Duration = Duration::from_millis(2);
const PATIENCE: Duration = Duration::from_mins(10);
