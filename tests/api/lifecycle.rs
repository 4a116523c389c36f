//! Behavior across requests: simultaneous writers, restarts, and shutdown.

use std::{collections::HashSet, fs, sync::Arc, thread, time::Duration};

use keywright_harness::{Options, RawConnection, Response, Server};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::given;

// Simultaneous writers.

const CALLERS: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_simultaneous_generates_share_one_version_in_any_casing() {
    let server = Arc::new(Server::start_with(&patient()).await);
    for (mode, names) in [
        ("no-overwrite", ["/one/Name", "/ONE/name"]),
        ("converge", ["/two", "/Two"]),
    ] {
        let versions = generate_all_at_once(&server, |caller| {
            let parameters = json!({"length": 20});
            json!({"name": names[caller % 2], "type": "user", "mode": mode, "parameters": parameters})
        })
        .await;
        let first = &versions[0];
        assert!(versions.iter().all(|version| version == first), "{mode}");
        assert_eq!(server.versions(names[0]).await, std::slice::from_ref(first));
    }
    assert_eq!(server.found_names("path=").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_simultaneous_overwrite_adds_its_version() {
    let server = Arc::new(Server::start_with(&patient()).await);
    let body = json!({"name": "/a", "type": "password", "mode": "overwrite"});
    let versions = generate_all_at_once(&server, |_| body.clone()).await;
    let ids: HashSet<String> = versions.iter().map(given::id).collect();
    assert_eq!(ids.len(), CALLERS);
    let stored = server.versions("/a").await;
    assert_eq!(stored.iter().map(given::id).collect::<HashSet<_>>(), ids);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_writers_of_two_types_create_only_one_type() {
    let server = Arc::new(Server::start_with(&patient()).await);
    let responses = send_at_once(&server, |caller| {
        let credential_type = if caller % 2 == 0 { "password" } else { "user" };
        json!({"name": "/new", "type": credential_type, "mode": "no-overwrite"})
    })
    .await;
    let winners: Vec<&Response> = responses
        .iter()
        .filter(|response| response.status == 200)
        .collect();
    let losers = responses
        .iter()
        .filter(|response| response.status == 400)
        .count();
    assert_eq!((winners.len(), losers), (CALLERS / 2, CALLERS / 2));
    assert!(winners.iter().all(|winner| winner.body == winners[0].body));
    assert_eq!(server.versions("/new").await.len(), 1);
}

/// Returns options of a server whose queue refuses no request, even on a slow machine.
fn patient() -> Options {
    Options::default().environment("KEYWRIGHT_STORAGE__WAIT_SECONDS_MAX", "600")
}

/// Returns the versions that simultaneous generate requests get.
async fn generate_all_at_once(server: &Arc<Server>, body: impl Fn(usize) -> Value) -> Vec<Value> {
    let responses = send_at_once(server, body).await;
    responses
        .into_iter()
        .map(|response| response.expect(200).json())
        .collect()
}

async fn send_at_once(server: &Arc<Server>, body: impl Fn(usize) -> Value) -> Vec<Response> {
    let mut calls = JoinSet::new();
    for caller in 0..CALLERS {
        let (server, body) = (Arc::clone(server), body(caller));
        calls.spawn(async move { server.post("/api/v1/data", body).await });
    }
    calls.join_all().await
}

// State that survives a restart.

#[tokio::test]
async fn everything_survives_a_restart() {
    let server = Server::start().await;
    let stored = store_every_type(&server).await;
    let directory = server.stop().await;
    let restarted = Server::start_in(directory, &Options::default()).await;
    assert_eq!(restarted.all_versions().await, stored);
}

#[tokio::test]
async fn a_restarted_server_continues_with_the_stored_state() {
    let server = Server::start().await;
    let parameters = json!({"length": 17});
    let generated = server.generated("/p", "password", parameters.clone()).await;
    let restarted = Server::start_in(server.stop().await, &Options::default()).await;
    let converged = restarted.generated("/p", "password", parameters).await;
    assert_eq!(converged["id"], generated["id"]);
    let body = json!({"name": "/p"});
    let response = restarted.post("/api/v1/regenerate", body).await;
    let regenerated = response.expect(200).json();
    assert_eq!(regenerated["value"].as_str().unwrap().len(), 17);
    let ids: Vec<String> = restarted
        .versions("/p")
        .await
        .iter()
        .map(given::id)
        .collect();
    assert_eq!(ids, [given::id(&regenerated), given::id(&generated)]);
}

/// Stores credentials of every type, and returns all stored versions.
async fn store_every_type(server: &Server) -> Vec<Value> {
    given::every_type(server, "").await;
    server.set_value("/value", "new").await;
    server.all_versions().await
}

// Shutdown of a server.

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
        while !fs::read_to_string(&log).is_ok_and(|log| log.contains(SHUTTING_DOWN)) {
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
    let (directory, responses) = tokio::join!(server.stop(), finishing);

    let mut made = Vec::new();
    for (status, body) in responses.unwrap() {
        assert_eq!(status, 200, "{body}");
        made.push(serde_json::from_str::<Value>(&body).unwrap());
    }
    let restarted = Server::start_in(directory, &Options::default()).await;
    for version in made {
        let name = version["name"].as_str().unwrap();
        let actual = restarted.versions(name).await;
        assert_eq!(actual, std::slice::from_ref(&version));
    }
}

/// The server does not wait for the shutdown timeout of an hour.
#[tokio::test]
async fn a_server_without_requests_stops_at_once() {
    let patient = Options::default().server_settings("shutdown_seconds_max = 3600");
    let server = Server::start_with(&patient).await;
    server.set_value("/a", "v").await;
    server.stop().await;
}

/// Sends the first half of a request, and returns the connection and the other half.
fn half(server: &Server, number: u8) -> (RawConnection, String) {
    let name = format!("/rsa/{number}");
    let body = json!({"name": name, "type": "rsa"}).to_string();
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
const SHUTTING_DOWN: &str = "shutting down: completing requests in progress";

const POLL: Duration = Duration::from_millis(5);
