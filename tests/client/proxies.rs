//! Proxies from the environment.

use std::{
    io::{BufRead, BufReader, Write, copy},
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use keywright_harness::{Server, Shell};
use serde_json::json;

#[tokio::test]
async fn requests_use_the_proxy_in_the_environment() {
    let server = Server::start().await;
    server.set("/a", "value", json!("v")).await.expect(200);
    let proxy = Proxy::start();
    let shell = || Shell::of(&server).variable("HTTPS_PROXY", &proxy.url());
    let address = server.base_url().trim_start_matches("https://").to_owned();
    shell().run(&["get", "/a"]).expect(0);
    let asked = proxy.asked();
    assert!(!asked.is_empty());
    assert!(
        asked
            .iter()
            .all(|line| *line == format!("CONNECT {address} HTTP/1.1")),
        "{asked:?}"
    );
    let shell = shell().variable("NO_PROXY", "127.0.0.1");
    shell.run(&["get", "/a"]).expect(0);
    assert_eq!(proxy.asked(), asked);
}

#[tokio::test]
async fn an_unreachable_proxy_makes_the_server_unreachable() {
    let server = Server::start().await;
    let shell = Shell::of(&server)
        .variable("HTTPS_PROXY", "http://127.0.0.1:1")
        .variable("KEYWRIGHT_CLIENT_RETRIES", "0");
    shell.run(&["get", "/a"]).expect(6);
}

/// A proxy that opens tunnels and records their addresses.
struct Proxy {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kept = Arc::clone(&kept);
                thread::spawn(move || tunnel(stream, &kept));
            }
        });
        Self { port, asked }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn tunnel(mut client: TcpStream, kept: &Mutex<Vec<String>>) -> Option<()> {
    let mut head = BufReader::new(client.try_clone().ok()?);
    let mut first = String::new();
    head.read_line(&mut first).ok()?;
    let mut line = String::new();
    while head.read_line(&mut line).ok()? > 2 {
        line.clear();
    }
    let first = first.trim().to_owned();
    let address = first.split(' ').nth(1)?.to_owned();
    kept.lock().unwrap().push(first);
    let mut server = TcpStream::connect(address).ok()?;
    write!(client, "HTTP/1.1 200 OK\r\n\r\n").ok()?;
    let (mut answers, mut back) = (server.try_clone().ok()?, client.try_clone().ok()?);
    thread::spawn(move || {
        let _ = copy(&mut answers, &mut back);
        let _ = back.shutdown(Shutdown::Write);
    });
    copy(&mut client, &mut server).ok()?;
    server.shutdown(Shutdown::Write).ok()
}
