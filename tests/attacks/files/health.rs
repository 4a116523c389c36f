//! `/health` when a dependency of the server fails, and when other clients occupy its connections.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use keywright_harness::{Options, Server, is_on_postgres};
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::{assert_stored, become_healthy, get, health, is_healthy, options, set};

#[tokio::test]
async fn health_is_down_until_a_full_disk_has_room_again() {
    if is_on_postgres() {
        return;
    }
    let server = Server::start_with(&options().audit("[audit]\nsink = \"off\"")).await;
    let mut stored = Vec::new();
    let sizes = fs::read_dir(server.directory()).unwrap();
    let largest = sizes.map(|entry| entry.unwrap().metadata().unwrap().len());
    let before = limit_files(&server, Some(largest.max().unwrap() + 200_000));
    let filler = "x".repeat(50_000);
    let mut is_full = false;
    for number in 0..200 {
        let name = format!("/stored/{number}");
        match set(&server, &name, &name).await {
            200 => stored.push(name),
            status => {
                assert_eq!(status, 503);
                is_full = true;
                break;
            }
        }
        set(&server, &format!("/filler/{number}"), &filler).await;
    }
    assert!(is_full, "the disk was not full");
    become_healthy(&server, 503).await;
    assert!(!is_healthy(&server, "database_writes").await);
    assert_eq!(get(&server, &stored[0]).await, 200);
    limit_files(&server, before);
    // Without a write request.
    become_healthy(&server, 200).await;
    assert_eq!(set(&server, "/after", "/after").await, 200);
    assert_stored(&server, &stored).await;
    let server = Server::start_in(server.kill(), &options()).await;
    assert_stored(&server, &stored).await;
}

#[tokio::test]
async fn health_is_down_until_the_audit_trail_can_be_written() {
    let server = Server::start_with(&options()).await;
    assert_eq!(set(&server, "/a", "v").await, 200);
    let trail = server.directory().join("audit.log");
    fs::remove_file(&trail).unwrap();
    fs::create_dir(&trail).unwrap();
    // The first request detects the failure; the others are rejected before they access anything.
    assert_eq!(set(&server, "/b", "v").await, 500);
    assert_eq!(set(&server, "/c", "v").await, 503);
    assert_eq!(health(&server).await, [503; 2]);
    assert!(!is_healthy(&server, "audit_trail").await);
    fs::remove_dir(&trail).unwrap();
    // Without any other request.
    become_healthy(&server, 200).await;
    assert!(server.audit_trail().contains("\"/b\""));
    assert_eq!(get(&server, "/c").await, 404);
}

#[tokio::test]
async fn a_nonblocking_audit_failure_leaves_the_server_up() {
    let audit = "[audit]\nsink = \"file\"\nfile = \"/dev/full\"\non_failure = \"continue\"";
    let server = Server::start_with(&options().audit(audit)).await;
    assert_eq!(set(&server, "/a", "v").await, 200);
    assert!(!is_healthy(&server, "audit_trail").await);
    assert_eq!(health(&server).await, [200; 2]);
}

#[tokio::test]
async fn idle_connections_do_not_block_health_and_metrics() {
    let server = Server::start_with(&Options::default().without_plugins().watched()).await;
    let address = server.management_url();
    let address = address.trim_start_matches("http://");
    let beginnings: [&[u8]; 4] = [b"", b"G", b"GET /health HTTP/1.1\r\nHost:", b"\r\n\r\n"];
    let mut idle = Vec::new();
    for number in 0..70 {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .write_all(beginnings[number % beginnings.len()])
            .unwrap();
        idle.push(stream);
    }
    for round in 0..3 {
        for path in ["/health", "/metrics"] {
            // With a timeout: idle connections lose their slots after five seconds in any case.
            let answer = ask(address, path, Duration::from_secs(3));
            assert!(
                answer.starts_with("HTTP/1.1 200 OK"),
                "{round} {path} {answer}"
            );
        }
        for _ in 0..70 {
            idle.push(TcpStream::connect(address).unwrap());
        }
    }
}

/// Returns the response to a client with this timeout.
fn ask(address: &str, path: &str, time_max: Duration) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(time_max)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    match stream.read_to_string(&mut answer) {
        Ok(_) => answer,
        Err(cause) => cause.to_string(),
    }
}

/// Sets the server's file size limit, and returns the previous one.
fn limit_files(server: &Server, bytes_max: Option<u64>) -> Option<u64> {
    let process = i32::try_from(server.process_id()).unwrap();
    let process = Pid::from_raw(process);
    let limit = Rlimit {
        current: bytes_max,
        maximum: None,
    };
    let before = prlimit(process, Resource::Fsize, limit).unwrap();
    assert_eq!(before.maximum, None, "the limit can't be lifted again");
    before.current
}
