//! The server as a service.

use std::process::Command;

use keywright_harness::{key_file, server_program, workspace};
use reqwest::{Certificate, ClientBuilder};

use crate::{layout::Layout, manager::Service};

#[tokio::test(flavor = "multi_thread")]
async fn the_service_manager_is_told_that_the_server_is_ready_alive_and_ending() {
    let layout = Layout::new();
    let cache = workspace().join("target/test-plugin-cache");
    let cache = format!("cache_directory = \"{}\" #", cache.display());
    let text = on_free_ports(&layout.example()).replacen("cache_directory =", &cache, 1);
    layout.write_configuration(&text);

    let mut service = Service::start(&layout, Command::new(server_program()));
    let address = address_in(&service.told("READY=1"));
    assert_eq!(health(&address).await, "{\"status\":\"UP\"}");
    service.told("WATCHDOG=1");
    service.told("WATCHDOG=1");
    service.signal("HUP");
    service.told("WATCHDOG=1");
    assert_eq!(health(&address).await, "{\"status\":\"UP\"}");
    service.signal("TERM");
    service.told("STOPPING=1");
    assert!(service.end().success());
}

/// A configuration whose addresses are loopback ones, with ports that the system chooses.
pub(crate) fn on_free_ports(text: &str) -> String {
    let text = text.replacen("0.0.0.0:8844", "127.0.0.1:0", 1);
    text.replacen("127.0.0.1:9001", "127.0.0.1:0", 1)
}

/// The address in what a service manager is told when the server is ready.
pub(crate) fn address_in(message: &str) -> String {
    let status = message
        .lines()
        .find_map(|line| line.strip_prefix("STATUS=listening on "));
    status
        .unwrap_or_else(|| panic!("no address in {message}"))
        .to_owned()
}

/// What the server says of its health.
pub(crate) async fn health(address: &str) -> String {
    let authority = std::fs::read(key_file("ca.pem")).unwrap();
    // A second installation changes nothing.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let client = ClientBuilder::new()
        .tls_certs_only([Certificate::from_pem(&authority).unwrap()])
        .build()
        .unwrap();
    let request = client.get(format!("https://{address}/health"));
    request.send().await.unwrap().text().await.unwrap()
}
