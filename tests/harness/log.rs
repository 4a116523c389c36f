//! Reading a server's log.

use std::{thread, time::Duration};

use reqwest::Method;

use crate::{Answer, Server};

impl Server {
    /// The access log line of a request. It is written shortly after the response is sent.
    pub fn access_log_line(&self, answer: &Answer) -> String {
        let request_id = answer.header("x-request-id").unwrap();
        for _ in 0..POLLS_MAX {
            let log = self.log();
            let mut lines = log.lines().filter(|line| line.contains("\"responded\""));
            if let Some(line) = lines.find(|line| line.contains(request_id)) {
                return line.to_owned();
            }
            thread::sleep(POLL);
        }
        panic!("the access log has no line about the request {request_id}");
    }

    /// The log so far, with the access log of all completed requests.
    pub async fn whole_log(&self) -> String {
        let answer = self.send(self.request(Method::GET, "/info")).await;
        self.access_log_line(&answer);
        self.log()
    }
}

const POLL: Duration = Duration::from_millis(5);

/// Far more than the log is delayed.
const POLLS_MAX: usize = 12_000;
