//! Reading a server's log.

use std::{thread, time::Duration};

use reqwest::Method;

use crate::{Answer, Server};

impl Server {
    /// The line of the access log about an answered request. It is written a little later than the answer is sent.
    pub fn access_log_line(&self, answer: &Answer) -> String {
        let request_id = answer.header("x-request-id").unwrap();
        for _ in 0..POLLS_MAX {
            let log = self.log();
            let mut lines = log.lines().filter(|line| line.contains("\"answered\""));
            if let Some(line) = lines.find(|line| line.contains(request_id)) {
                return line.to_owned();
            }
            thread::sleep(POLL);
        }
        panic!("the access log has no line about the request {request_id}");
    }

    /// Everything that the server has logged until now, with the access log about all requests that are answered.
    pub async fn whole_log(&self) -> String {
        let answer = self.send(self.request(Method::GET, "/info")).await;
        self.access_log_line(&answer);
        self.log()
    }
}

const POLL: Duration = Duration::from_millis(5);

/// Far more than the log is delayed.
const POLLS_MAX: usize = 12_000;
