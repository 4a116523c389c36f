//! The server as a service.

use std::{fs::File, path::PathBuf, process::Command, sync::mpsc, thread, time::Duration};

use keywright_harness::{key_file, server_program, workspace};
use reqwest::{Certificate, ClientBuilder};

use crate::{layout::Layout, manager::Service};

#[tokio::test(flavor = "multi_thread")]
async fn the_service_manager_is_notified_of_each_state() {
    let layout = Layout::new();
    layout.write_configuration(&with_compiled_plugins(&layout));
    let mut service = Service::start(&layout, Command::new(server_program()));
    let address = address_in(&service.notified("READY=1"));
    assert_eq!(health(&address).await, "{\"status\":\"UP\"}");
    service.notified("WATCHDOG=1");
    service.notified("WATCHDOG=1");
    service.signal("HUP");
    service.notified("WATCHDOG=1");
    assert_eq!(health(&address).await, "{\"status\":\"UP\"}");
    service.signal("TERM");
    service.notified("STOPPING=1");
    assert!(service.end().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_does_not_wait_for_plugins_being_reloaded() {
    let layout = Layout::new();
    let text = with_compiled_plugins(&layout);
    layout.write_configuration(&text);
    let mut service = Service::start(&layout, Command::new(server_program()));
    service.notified("READY=1");

    // A component whose read blocks while the test can write to it.
    let unfinished = layout.path("run/unfinished.wasm");
    let made = Command::new("mkfifo").arg(&unfinished).status().unwrap();
    assert!(made.success());
    let generator = format!(
        "[generators.unfinished]\ncomponent = \"{}\"\n[plugins]",
        unfinished.display()
    );
    layout.write_configuration(&text.replacen("[plugins]", &generator, 1));
    service.signal("HUP");
    let written = opened_by_the_server(unfinished);
    service.signal("TERM");
    service.notified("STOPPING=1");
    assert!(service.end().success());
    drop(written);

    let database = layout.path("var/lib/keywright/keywright.db");
    assert!(database.is_file());
    // SQLite removes the other files of a database when it is closed.
    assert!(!database.with_extension("db-wal").exists());
}

/// Opens the write end of a pipe, once the server has opened the read end.
pub(crate) fn opened_by_the_server(pipe: PathBuf) -> File {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(File::options().write(true).open(pipe)));
    let opened = receiver.recv_timeout(OPENED_WITHIN);
    opened.unwrap().unwrap()
}

/// Adapts the example to this machine, with plugins compiled by other tests.
pub(crate) fn with_compiled_plugins(layout: &Layout) -> String {
    let cache = workspace().join("target/test-plugin-cache");
    let cache = format!("cache_directory = \"{}\" #", cache.display());
    on_free_ports(&layout.example()).replacen("cache_directory =", &cache, 1)
}

/// Replaces the addresses with loopback ones, with ports chosen by the system.
pub(crate) fn on_free_ports(text: &str) -> String {
    let text = text.replacen("0.0.0.0:8844", "127.0.0.1:0", 1);
    text.replacen("127.0.0.1:9001", "127.0.0.1:0", 1)
}

/// Returns the address in the notification of readiness.
pub(crate) fn address_in(message: &str) -> String {
    let status = message
        .lines()
        .find_map(|line| line.strip_prefix("STATUS=listening on "));
    status
        .unwrap_or_else(|| panic!("no address in {message}"))
        .to_owned()
}

/// Returns the health of the server.
pub(crate) async fn health(address: &str) -> String {
    let authority = std::fs::read(key_file("ca.pem")).unwrap();
    // Installing the provider again has no effect.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let client = ClientBuilder::new()
        .tls_certs_only([Certificate::from_pem(&authority).unwrap()])
        .build()
        .unwrap();
    let request = client.get(format!("https://{address}/health"));
    request.send().await.unwrap().text().await.unwrap()
}

/// Maximum time for the server to read a component.
const OPENED_WITHIN: Duration = Duration::from_mins(10);
