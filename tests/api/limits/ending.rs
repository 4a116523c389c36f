//! Clients cannot prevent or delay shutdown.

use keywright_harness::{Options, Server, component};
use reqwest::Method;
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::{
    http2::{DATA, get, hello, read_until},
    patient,
    raw::{HTTP1, HTTP2, OTHER, ask, tcp, tls},
};
use crate::audit::events;

#[tokio::test]
async fn silent_clients_do_not_prevent_shutdown() {
    let server = Server::start_with(&patient("shutdown_seconds_max = 3600")).await;
    let mut open = Vec::new();
    for first in [&b""[..], &hello(), &hello()[..8]] {
        let mut stream = tls(&server, OTHER, HTTP2).await.unwrap();
        stream.write_all(first).await.unwrap();
        open.push(stream);
    }
    let mut asked = tls(&server, OTHER, HTTP2).await.unwrap();
    let request = [hello(), get("/health", 1)].concat();
    asked.write_all(&request).await.unwrap();
    read_until(&mut asked, DATA, 1).await.unwrap();
    let mut idle = tls(&server, OTHER, HTTP1).await.unwrap();
    assert_eq!(ask(&mut idle).await.unwrap(), 200);
    let mut begun = tls(&server, OTHER, HTTP1).await.unwrap();
    begun.write_all(b"GET /hea").await.unwrap();
    let silent = tcp(&server, OTHER).await.unwrap();

    server.stop().await;
    drop((open, asked, idle, begun, silent));
}

#[tokio::test]
async fn requests_cut_off_at_shutdown_leave_only_audit_events() {
    let server = Server::start_with(
        &patient("shutdown_seconds_max = 1")
            .generator("hostile", &endless())
            .watched(),
    )
    .await;
    let body = |name| json!({"name": name, "type": "hostile", "parameters": {}}).to_string();
    let over_http2 = server
        .authorized(Method::POST, "/api/v1/data")
        .body(body("/cut/2"));
    let over_http2 = tokio::spawn(over_http2.send());
    let mut over_http1 = tls(&server, OTHER, HTTP1).await.unwrap();
    let (token, body) = (server.token(), body("/cut/1"));
    let request = format!(
        "POST /api/v1/data HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    over_http1.write_all(request.as_bytes()).await.unwrap();
    server
        .scrape_until(|scrape| {
            let lane = [("lane", "generate")];
            let busy = scrape.sum("keywright_plugin_lane_threads_busy", &lane);
            let queued = scrape.sum("keywright_plugin_lane_queue_length", &lane);
            busy.unwrap_or_default() + queued.unwrap_or_default() >= 2.0
        })
        .await;

    let directory = server.stop().await;
    assert!(over_http2.await.unwrap().is_err());
    let restarted = Server::start_in(directory, &Options::default()).await;
    let mut cut: Vec<_> = events(&restarted)
        .into_iter()
        .filter(|event| event["status"] == 499)
        .map(|event| event["resource_name"].as_str().unwrap().to_owned())
        .collect();
    cut.sort();
    assert_eq!(cut, ["/cut/1", "/cut/2"]);
    for name in cut {
        let path = format!("/api/v1/data?name={name}");
        restarted.get(&path).await.expect(404);
    }
}

/// A generator that takes far longer than the shutdown timeout.
fn endless() -> String {
    format!(
        "component = \"{}\"\ngrants = [\"random\", \"signing\"]\nderived = true\n\
         limits = {{ deadline_ms = 60000 }}\nsettings = {{ generate = \"loop\" }}",
        component("hostile").display()
    )
}
