//! The provider `kms`: a key management plugin on a Unix socket.

use std::{
    fs,
    io::{self, Read},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use keywright_harness::{
    KeyManagementPlugin, Options, Server, Text, key_file, shared_storage, until,
};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use super::{active_key_id, usage, used, with_keys, with_secrets};

#[tokio::test]
async fn the_plugin_is_needed_at_start_only() {
    let folder = TempDir::new().unwrap();
    let storage = shared_storage(folder.path());
    let plugin = KeyManagementPlugin::start(folder.path(), "key");
    let socket = plugin.socket().display().to_string();
    let options = with_keys(&[&socket]).storage(&storage);
    let server = Server::start_with(&options).await;
    server.set_value("/a", "1").await;
    drop(plugin);
    assert_eq!(server.newest("/a").await["value"], "1");
    server.set_value("/a", "2").await;
    server.stop().await;

    let message = Server::refusal(&options);
    message.assert_contains("could not report its version");
    message.assert_contains(&socket);
    let _plugin = KeyManagementPlugin::start(folder.path(), "key");
    let server = Server::start_with(&options).await;
    assert_eq!(server.newest("/a").await["value"], "2");
}

#[tokio::test]
async fn a_plugin_with_another_key_is_refused() {
    let folder = TempDir::new().unwrap();
    let storage = shared_storage(folder.path());
    let plugin = KeyManagementPlugin::start(folder.path(), "key");
    let other = KeyManagementPlugin::start(folder.path(), "other");
    let [socket, other_socket] =
        [&plugin, &other].map(|plugin| plugin.socket().display().to_string());
    let server = Server::start_with(&with_keys(&[&socket]).storage(&storage)).await;
    server.set_value("/a", "1").await;
    let key_id = active_key_id(&server);
    server.stop().await;
    let message = Server::refusal(&with_keys(&[&other_socket]).storage(&storage));
    message.assert_contains(&key_id);

    // If the right key is configured, too, the other key becomes the active key, and each key has its own record.
    let both = with_keys(&[&other_socket, &socket]).storage(&storage);
    let server = Server::start_with(&both).await;
    server.set_value("/b", "2").await;
    assert_eq!(usage(&server).await, used(1, 1, 0));
    assert_eq!(server.newest("/a").await["value"], "1");
    assert_ne!(active_key_id(&server), key_id);
}

#[tokio::test]
async fn two_plugins_that_unwrap_the_same_key_are_refused() {
    let folder = TempDir::new().unwrap();
    let storage = shared_storage(folder.path());
    let old = KeyManagementPlugin::start(folder.path(), "old");
    fs::copy(folder.path().join("old"), folder.path().join("new")).unwrap();
    let new = KeyManagementPlugin::start(folder.path(), "new");
    let [old, new] = [&old, &new].map(|plugin| plugin.socket().display().to_string());
    let server = Server::start_with(&with_keys(&[&old]).storage(&storage)).await;
    server.stop().await;
    let message = Server::refusal(&with_keys(&[&new, &old]).storage(&storage));
    message.assert_contains("encryption.keys[0] and encryption.keys[1] unwrap the same key");
}

#[tokio::test]
async fn with_trusted_cas_the_plugin_must_prove_its_host_name() {
    let folder = TempDir::new().unwrap();
    let (certificate, private_key) = (key_file("server.pem"), key_file("server-key.pem"));
    let plugin =
        KeyManagementPlugin::start_with_tls(folder.path(), "key", &certificate, &private_key);
    let options = |host: &str| {
        let section = format!(
            "[[encryption.keys]]\nprovider = \"kms\"\nactive = true\nsocket = \"{}\"\nhost = \"{host}\"\n\
             trusted_authorities = \"{}\"\n",
            plugin.socket().display(),
            key_file("ca.pem").display()
        );
        with_secrets(Options::default().encryption(&section))
    };
    let server = Server::start_with(&options("localhost")).await;
    server.set_value("/a", "1").await;
    let server = Server::start_in(server.stop().await, &options("localhost")).await;
    assert_eq!(server.newest("/a").await["value"], "1");

    let message = Server::refusal(&options("elsewhere.example"));
    message.assert_contains("could not report its version");
    let without_tls = with_keys(&[&plugin.socket().display().to_string()]);
    let message = Server::refusal(&without_tls);
    message.assert_contains("could not report its version");
}

#[tokio::test]
async fn a_running_server_unwraps_a_key_that_another_activates() {
    let folder = TempDir::new().unwrap();
    let storage = shared_storage(folder.path());
    let plugin = KeyManagementPlugin::start(folder.path(), "key");
    let socket = plugin.socket().display().to_string();
    let old = with_keys(&["KEY_A", &socket]).storage(&storage);
    let old = Server::start_with(&old).await;
    old.set_value("/old", "1").await;
    let new = with_keys(&[&socket, "KEY_A"]).storage(&storage);
    let new = Server::start_with(&new).await;
    new.set_value("/new", "2").await;
    assert_eq!(old.newest("/new").await["value"], "2");
    assert_eq!(usage(&old).await, used(1, 1, 0));
}

#[tokio::test]
async fn reads_are_503_until_an_unavailable_plugin_returns() {
    let folder = TempDir::new().unwrap();
    let (old, new) = activated_without_plugin(folder.path()).await;
    // Cancelled requests do not occupy a thread each.
    let tasks = format!("/proc/{}/task", old.process_id());
    let threads = || fs::read_dir(&tasks).unwrap().count();
    let before = threads();
    for _ in 0..60 {
        let _ = timeout(CANCELLED_AFTER, old.get("/api/v1/data?name=/new")).await;
    }
    assert!(threads() < before + 10, "{before} {}", threads());
    let refused = old.get("/api/v1/data?name=/new").await.expect(503).error();
    refused.assert_contains(&active_key_id(&new));
    assert_eq!(old.newest("/old").await["value"], "1");

    let _plugin = KeyManagementPlugin::start(folder.path(), "key");
    let is_served = async || old.get("/api/v1/data?name=/new").await.status != 503;
    until("key", is_served).await;
    assert_eq!(old.newest("/new").await["value"], "2");
}

#[tokio::test]
async fn a_hanging_plugin_delays_neither_usage_nor_shutdown() {
    let folder = TempDir::new().unwrap();
    let (old, _new) = activated_without_plugin(folder.path()).await;
    let socket = folder.path().join("key.sock");
    fs::remove_file(&socket).unwrap();
    let calls = hanging_plugin(&socket);
    assert_eq!(usage(&old).await, used(1, 0, 1));
    // The time for one call is the time for all attempts.
    assert!(calls.load(Ordering::Relaxed) <= 1);

    // The server stops during a comparison.
    sleep(Duration::from_millis(1_100)).await;
    assert!(timeout(CANCELLED_AFTER, usage(&old)).await.is_err());
    let folder = old.stop().await;
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    log.assert_lacks("panicked");
}

/// Accepts connections on a socket, and returns no responses. Returns the number of calls so far.
fn hanging_plugin(socket: &Path) -> Arc<AtomicUsize> {
    let listener = UnixListener::bind(socket).unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    thread::spawn(move || {
        for connection in listener.incoming() {
            let calls = Arc::clone(&counted);
            thread::spawn(move || count_calls(&connection.unwrap(), &calls));
        }
    });
    calls
}

/// Counts the calls on an HTTP/2 connection until it ends: each begins with a frame of the type HEADERS.
fn count_calls(mut connection: &UnixStream, calls: &AtomicUsize) -> io::Result<()> {
    const PREFACE_BYTES: usize = 24;
    const HEADERS: u8 = 1;
    connection.read_exact(&mut [0; PREFACE_BYTES])?;
    loop {
        let mut header = [0; 9];
        connection.read_exact(&mut header)?;
        let [length @ .., kind, _, _, _, _, _] = header;
        if kind == HEADERS {
            calls.fetch_add(1, Ordering::Relaxed);
        }
        let [high, middle, low] = length;
        let mut payload = connection.take(u32::from_be_bytes([0, high, middle, low]).into());
        io::copy(&mut payload, &mut io::sink())?;
    }
}

/// Starts two servers with one database. The first server has lost the plugin, in this folder, when the second activates its key.
async fn activated_without_plugin(folder: &Path) -> (Server, Server) {
    let storage = shared_storage(folder);
    let plugin = KeyManagementPlugin::start(folder, "key");
    let socket = plugin.socket().display().to_string();
    let old = with_keys(&["KEY_A", &socket]).storage(&storage);
    let old = Server::start_with(&old).await;
    old.set_value("/old", "1").await;
    let other_folder = TempDir::new().unwrap();
    fs::copy(folder.join("key"), other_folder.path().join("key")).unwrap();
    drop(plugin);
    let other_plugin = KeyManagementPlugin::start(other_folder.path(), "key");
    let other_socket = other_plugin.socket().display().to_string();
    let new = with_keys(&[&other_socket, "KEY_A"]).storage(&storage);
    let new = Server::start_with(&new).await;
    new.set_value("/new", "2").await;
    (old, new)
}

/// The time after which a request is cancelled, while a comparison with an unavailable plugin takes seconds.
const CANCELLED_AFTER: Duration = Duration::from_millis(30);
