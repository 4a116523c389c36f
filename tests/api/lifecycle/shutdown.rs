//! Shutdown of a server.

use std::{fs, thread, time::Duration};

use keywright_harness::{Options, RawConnection, Server};
use serde_json::{Value, json};

use crate::given;

#[tokio::test]
async fn requests_in_progress_finish_before_shutdown() {
    let patient = Options::default()
        .server_settings("shutdown_seconds_max = 3600\nbody_seconds_max = 3600")
        .watched();
    let server = Server::start_with(&patient).await;
    let mut calls: Vec<_> = (0..REQUESTS).map(|number| half(&server, number)).collect();
    server
        .scrape_until(|scrape| {
            let requests = scrape.sum("keywright_http_requests_in_progress", &[]);
            requests.unwrap_or_default() >= f64::from(REQUESTS)
        })
        .await;
    let log = server.directory().join("log");
    let finishing = tokio::task::spawn_blocking(move || {
        while !fs::read_to_string(&log).is_ok_and(|log| log.contains(ENDING)) {
            thread::sleep(POLL);
        }
        for (connection, rest) in &mut calls {
            connection.send(rest.as_bytes());
        }
        calls
            .into_iter()
            .map(|(connection, _)| connection.receive_last())
            .collect::<Vec<_>>()
    });
    let (directory, answers) = tokio::join!(server.stop(), finishing);

    let mut made = Vec::new();
    for (status, body) in answers.unwrap() {
        assert_eq!(status, 200, "{body}");
        made.push(serde_json::from_str::<Value>(&body).unwrap());
    }
    let restarted = Server::start_in(directory, &Options::default()).await;
    for version in made {
        let name = version["name"].as_str().unwrap();
        assert_eq!(
            given::versions(&restarted, name).await,
            std::slice::from_ref(&version)
        );
    }
}

/// It does not wait for the hour that requests may take.
#[tokio::test]
async fn a_server_without_requests_stops_at_once() {
    let patient = Options::default().server_settings("shutdown_seconds_max = 3600");
    let server = Server::start_with(&patient).await;
    given::set_value(&server, "/a", "v").await;
    server.stop().await;
}

/// A request that is half sent, and its other half.
fn half(server: &Server, number: u8) -> (RawConnection, String) {
    let name = format!("/rsa/{number}");
    let body = json!({"name": name, "type": "rsa", "parameters": {"key_length": 3072}}).to_string();
    let (first, rest) = body.split_at(body.len() / 2);
    let head = format!(
        "POST /api/v1/data HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{first}",
        server.token(),
        body.len()
    );
    let mut connection = server.connect();
    connection.send(head.as_bytes());
    (connection, rest.to_owned())
}

/// More keys than are generated simultaneously, so that some still wait.
const REQUESTS: u8 = 5;

/// The log message at the beginning of a shutdown.
const ENDING: &str = "shutting down: completing requests in progress";

const POLL: Duration = Duration::from_millis(5);
