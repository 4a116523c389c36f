//! Retries while the server is unavailable, and proxies from the environment.

use std::{
    io::{BufRead, BufReader, Write, copy},
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use keywright_harness::{Reply, ReservedPort, Server, Shell, Stub, Text, key_file};
use serde_json::json;

use crate::fixtures::{VERSION, versions};

const GET: &str = "GET /api/v1/data?current=true&name=%2Fa";

fn unavailable(seconds: &str) -> Reply {
    Reply::new(503, "{\"error\":\"the database is not available\"}").header("retry-after", seconds)
}

#[test]
fn requests_are_retried_until_the_server_is_available() {
    let stub = Stub::start(|_, before, _| match before {
        0..=1 => unavailable("0"),
        _ => Reply::new(200, VERSION),
    });
    let arguments = "set /a -t value --value v";
    let run = stub.shell().run(arguments).expect(0);
    let bodies: Vec<_> = stub
        .requests()
        .into_iter()
        .map(|request| request.body)
        .collect();
    assert_eq!(bodies, [r#"{"name":"/a","type":"value","value":"v"}"#; 3]);
    assert_eq!(run.errors.matches("retrying in ").count(), 2, "{run:?}");
}

#[test]
fn commands_exit_with_status_6_if_the_server_is_unavailable() {
    for (retries, requests) in [("0", 1), ("1", 2), ("3", 4)] {
        let stub = Stub::start(|_, _, _| unavailable("0"));
        let shell = stub.shell().variable("KEYWRIGHT_CLIENT_RETRIES", retries);
        let run = shell.run("get /a").expect(6);
        assert_eq!(stub.lines(), vec![GET; requests]);
        run.errors.assert_contains("the database is not available");
    }
}

#[test]
fn other_error_statuses_are_not_retried() {
    for status in [400, 409, 429, 500, 502, 504] {
        let stub = Stub::start(move |_, _, _| {
            Reply::new(status, "{\"error\":\"no\"}").header("retry-after", "0")
        });
        stub.shell().run("get /a").expect(1);
        assert_eq!(stub.lines(), [GET], "{status}");
    }
}

#[test]
fn a_503_without_retry_after_is_retried() {
    let stub = Stub::start(|_, before, _| match before {
        0 => Reply::new(503, "{\"error\":\"read-only\"}"),
        _ => Reply::new(200, &versions()),
    });
    let run = stub.shell().run("get /a").expect(0);
    run.errors.assert_contains("retrying in 0.");
}

#[tokio::test]
async fn writes_fail_at_once_in_read_only_mode() {
    let server = Server::reused().await;
    server.set_read_only(true).await;
    let run = Shell::of(&server).run("delete /a").expect(6);
    run.errors
        .assert_contains("the server is in read-only mode");
    run.errors.assert_lacks("retrying");
}

#[test]
fn reads_are_retried_after_a_lost_connection() {
    let stub = Stub::start(|_, before, _| match before {
        0..=1 => Reply::lost(),
        _ => Reply::new(200, &versions()),
    });
    let run = stub.shell().run("get /a").expect(0);
    assert_eq!(stub.lines(), [GET; 3]);
    assert_eq!(run.errors.matches("retrying in ").count(), 2, "{run:?}");
}

#[test]
fn reads_are_not_retried_after_a_malformed_response() {
    let stub = Stub::start(|_, _, _| Reply::new(200, "").header("large", &"a".repeat(1_000_000)));
    let run = stub.shell().run("get /a").expect(6);
    assert_eq!(stub.lines(), [GET]);
    run.errors.assert_contains("message head is too large");
}

#[test]
fn writes_are_not_retried_after_a_lost_connection() {
    let cases: [&[&str]; 4] = [
        &["set", "/a", "-t", "value", "--value", "v"],
        &["generate", "/a", "-t", "password"],
        &["regenerate", "/a"],
        &["delete", "/a"],
    ];
    for arguments in cases {
        let stub = Stub::start(|request, _, _| {
            if request.line.starts_with("GET") {
                Reply::new(404, "{\"error\":\"no\"}")
            } else {
                Reply::lost()
            }
        });
        let run = stub.shell().run(arguments).expect(6);
        let lines = stub.lines();
        let writes = lines.iter().filter(|line| !line.starts_with("GET"));
        assert_eq!(writes.count(), 1, "{lines:?}");
        run.errors.assert_contains("could not reach ");
    }
}

#[test]
fn all_requests_are_retried_after_a_failed_connection() {
    let set: &[&str] = &["set", "/a", "-t", "value", "--value", "v"];
    for (arguments, response) in [(set, VERSION.to_owned()), (&["get", "/a"], versions())] {
        let stub = Stub::after_dropping(2, move |_, _, _| Reply::new(200, &response));
        let run = stub.shell().run(arguments).expect(0);
        assert_eq!(stub.lines().len(), 1);
        assert_eq!(run.errors.matches("retrying in ").count(), 2, "{run:?}");
    }
    let stub = Stub::after_dropping(2, |_, _, _| Reply::new(200, VERSION));
    let shell = stub.shell().variable("KEYWRIGHT_CLIENT_RETRIES", "1");
    shell.run(set).expect(6);
}

#[test]
fn a_login_has_as_many_retries_as_a_request() {
    // The port is reserved, so no server listens there.
    let port = ReservedPort::any();
    let url = format!("https://127.0.0.1:{}", port.number());
    let caller = |variables: &[(&str, &str)]| {
        let shell = Shell::new()
            .variable("KEYWRIGHT_CLIENT_SERVER", &url)
            .variable("KEYWRIGHT_CLIENT_RETRIES", "2");
        variables
            .iter()
            .fold(shell, |shell, (name, value)| shell.variable(name, value))
    };
    let client = [
        ("KEYWRIGHT_CLIENT_ID", "app"),
        ("KEYWRIGHT_CLIENT_SECRET", "secret"),
    ];
    for identity in [&[("KEYWRIGHT_CLIENT_TOKEN", "token")][..], &client] {
        let run = caller(identity).run("get /a").expect(6);
        run.errors
            .assert_contains(&format!("could not reach {url}: Connection refused"));
        assert_eq!(run.errors.matches("retrying in ").count(), 2, "{run:?}");
    }
}

#[test]
fn an_untrusted_server_is_not_retried() {
    let stub = Stub::start(|_, _, _| Reply::new(200, &versions()));
    let other = key_file("server.pem").display().to_string();
    let shell = stub.shell().variable("KEYWRIGHT_CLIENT_CA_CERT", &other);
    let run = shell.run("get /a").expect(6);
    run.errors.assert_lacks("retrying");
    run.errors.assert_contains("a CA that is not trusted");
    run.errors.assert_contains("--ca-cert");
}

#[test]
fn a_server_without_tls_is_not_retried() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let shell = Shell::new()
        .variable("KEYWRIGHT_CLIENT_SERVER", &url)
        .variable("KEYWRIGHT_TOKEN", "token");
    let run = shell.run("get /a").expect(6);
    let reason = format!("could not reach {url}: it does not speak TLS; check the port");
    run.errors.assert_contains(&reason);
    run.errors.assert_lacks("retrying");
}

#[tokio::test]
async fn requests_use_the_proxy_in_the_environment() {
    let server = Server::reused().await;
    server.stored("/a", "value", json!("v")).await;
    let proxy = Proxy::start();
    let shell = || Shell::of(&server).variable("HTTPS_PROXY", &proxy.url());
    let address = server.base_url().trim_start_matches("https://").to_owned();
    shell().run("get /a").expect(0);
    let requests = proxy.requests();
    assert!(!requests.is_empty());
    assert!(
        requests
            .iter()
            .all(|line| *line == format!("CONNECT {address} HTTP/1.1")),
        "{requests:?}"
    );
    let shell = shell().variable("NO_PROXY", "127.0.0.1");
    shell.run("get /a").expect(0);
    assert_eq!(proxy.requests(), requests);
}

#[tokio::test]
async fn an_unreachable_proxy_makes_the_server_unreachable() {
    let server = Server::reused().await;
    let shell = Shell::of(&server)
        .variable("HTTPS_PROXY", "http://127.0.0.1:1")
        .variable("KEYWRIGHT_CLIENT_RETRIES", "0");
    let run = shell.run("get /a").expect(6);
    run.errors.assert_contains("HTTPS_PROXY");
}

/// A proxy that opens tunnels and records their addresses.
struct Proxy {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let received = Arc::clone(&received);
                thread::spawn(move || tunnel(stream, &received));
            }
        });
        Self { port, requests }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn tunnel(mut client: TcpStream, received: &Mutex<Vec<String>>) -> Option<()> {
    let mut head = BufReader::new(client.try_clone().ok()?);
    let mut first = String::new();
    head.read_line(&mut first).ok()?;
    let mut line = String::new();
    while head.read_line(&mut line).ok()? > 2 {
        line.clear();
    }
    let first = first.trim().to_owned();
    let address = first.split(' ').nth(1)?.to_owned();
    received.lock().unwrap().push(first);
    let mut server = TcpStream::connect(address).ok()?;
    write!(client, "HTTP/1.1 200 OK\r\n\r\n").ok()?;
    let (mut responses, mut back) = (server.try_clone().ok()?, client.try_clone().ok()?);
    thread::spawn(move || {
        let _ = copy(&mut responses, &mut back);
        let _ = back.shutdown(Shutdown::Write);
    });
    copy(&mut client, &mut server).ok()?;
    server.shutdown(Shutdown::Write).ok()
}
