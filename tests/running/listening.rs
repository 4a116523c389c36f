//! The addresses that a server listens on.

use std::{
    collections::BTreeSet,
    io,
    net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs},
    process::Command,
};

use keywright_harness::{Options, ReservedPort, Server, Text, server_program};
use tempfile::TempDir;

use crate::{
    layout::Layout,
    service::{Service, address_in, health, opened_by_the_server, with_compiled_plugins},
};

#[test]
fn a_busy_port_is_reported_before_plugins_are_compiled() {
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = busy.local_addr().unwrap().to_string();
    let folder = TempDir::new().unwrap();
    let cache = folder.path().join("cache");
    let options = Options::default().environment(
        "KEYWRIGHT_PLUGINS__CACHE_DIRECTORY",
        cache.to_str().unwrap(),
    );
    for (variable, setting) in [
        ("KEYWRIGHT_SERVER__LISTEN", "server.listen"),
        ("KEYWRIGHT_MANAGEMENT__LISTEN", "management.listen"),
    ] {
        let refusal = Server::refusal(&options.clone().environment(variable, &address));
        let expected = format!("listening on {address} ({setting}): Address already in use");
        refusal.assert_contains(&expected);
        assert!(!cache.exists());
    }
}

#[test]
fn a_server_refuses_connections_while_it_loads_plugins() {
    let layout = Layout::new();
    let port = ReservedPort::any();
    let address = format!("127.0.0.1:{}", port.number());
    let unfinished = layout.path("run/unfinished.wasm");
    let made = Command::new("mkfifo").arg(&unfinished).status().unwrap();
    assert!(made.success());
    let generator = format!(
        "[generators.unfinished]\ncomponent = \"{}\"\n[plugins]",
        unfinished.display()
    );
    let text = with_compiled_plugins(&layout).replacen("[plugins]", &generator, 1);
    let listen = format!("listen = \"{address}\"");
    layout.write_configuration(&text.replacen("listen = \"127.0.0.1:0\"", &listen, 1));
    let _server = Service::start(&layout, Command::new(server_program()));
    let _written = opened_by_the_server(unfinished);
    let refused = TcpStream::connect(&address).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_listens_on_all_addresses_of_a_host_name() {
    let layout = Layout::new();
    let text = with_compiled_plugins(&layout);
    layout.write_configuration(&text.replace("127.0.0.1:0", "localhost:0"));
    let mut service = Service::start(&layout, Command::new(server_program()));
    let addresses = address_in(&service.notified("READY=1"));
    let addresses: Vec<SocketAddr> = addresses
        .split(", ")
        .map(|address| address.parse().unwrap())
        .collect();
    let ips: BTreeSet<_> = addresses.iter().map(SocketAddr::ip).collect();
    let resolved = ("localhost", 0).to_socket_addrs().unwrap();
    let local = resolved.filter(|address| TcpListener::bind(address).is_ok());
    assert_eq!(ips, local.map(|address| address.ip()).collect());
    for address in addresses {
        assert_eq!(health(&address.to_string()).await, "{\"status\":\"UP\"}");
    }
    service.signal("TERM");
    assert!(service.end().success());
}
