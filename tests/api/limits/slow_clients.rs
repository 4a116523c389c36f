//! A thousand simultaneous clients that send as little as possible.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use keywright_harness::{Options, Server};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    HTTP1, HTTP2, OTHER, PATIENCE, drip_each_to_close,
    http2::{PREFACE, hello, unfinished_headers},
    patient, put_head, tcp, tls, until_responded,
};

#[tokio::test(flavor = "multi_thread")]
async fn ordinary_requests_succeed_despite_a_thousand_slow_clients() {
    let clients = clients();
    let limit = format!("connections_per_address_max = {clients}");
    let server = Arc::new(Server::start_with(&patient(&limit)).await);
    let slow = SlowClients::start(&server, OTHER, clients).await;

    // All are connected: the limit is reached.
    assert!(tls(&server, OTHER, HTTP1).await.is_err());
    send_ordinary_requests(&server).await;
    assert_eq!(slow.closed.load(Ordering::Relaxed), 0);

    drop(slow);
    until_responded(&server, OTHER).await;
    let again = SlowClients::start(&server, OTHER, clients / 10).await;
    send_ordinary_requests(&server).await;
    drop(again);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_slow_clients_are_disconnected() {
    let clients = clients();
    let options = Options::default().server_settings(&format!(
        "connections_per_address_max = {clients}\nhandshake_seconds_max = 5\nheader_seconds_max = 1\n\
         body_seconds_max = 1"
    ));
    let server = Arc::new(Server::start_with(&options).await);
    let slow = SlowClients::start(&server, OTHER, clients).await;
    send_ordinary_requests(&server).await;
    slow.wait_until_all_are_closed().await;
    until_responded(&server, OTHER).await;
    send_ordinary_requests(&server).await;
}

/// Clients that each send a byte a second, or nothing.
struct SlowClients {
    running: JoinSet<()>,
    /// The number of connections that the server has closed.
    closed: Arc<AtomicUsize>,
}

impl SlowClients {
    /// Returns once every client has connected and sent its first bytes.
    async fn start(server: &Arc<Server>, source: Ipv4Addr, count: usize) -> Self {
        let mut this = Self {
            running: JoinSet::new(),
            closed: Arc::default(),
        };
        // The kernel drops connections that it can't queue; a silent client would never detect this.
        for batch in (0..count).collect::<Vec<_>>().chunks(STARTING_AT_ONCE) {
            let mut starting = JoinSet::new();
            for number in batch.iter().copied() {
                let server = Arc::clone(server);
                starting.spawn(async move { slow_client(&server, source, number).await });
            }
            while let Some(client) = starting.join_next().await {
                let (stream, drip) = client.unwrap();
                let closed = Arc::clone(&this.closed);
                this.running.spawn(async move {
                    drip_each_to_close(A_SECOND, stream, drip).await;
                    closed.fetch_add(1, Ordering::Relaxed);
                });
            }
        }
        this
    }

    async fn wait_until_all_are_closed(mut self) {
        while let Some(client) = self.running.join_next().await {
            client.unwrap();
        }
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Returns one kind of slow client: the connection, and the bytes to send on it repeatedly. The server may have closed
/// it already.
async fn slow_client(
    server: &Server,
    source: Ipv4Addr,
    number: usize,
) -> (Box<dyn Stream>, &'static [u8]) {
    let protocol = if number % 8 < 5 { HTTP1 } else { HTTP2 };
    let body = put_head(server, "Content-Length: 1000000") + "{";
    let (first, drip): (Vec<u8>, &[u8]) = match number % 8 {
        0 => return (Box::new(tcp(server, source).await.unwrap()), b""),
        1 => {
            let mut stream = tcp(server, source).await.unwrap();
            let _ = stream.write_all(&[22, 3, 1, 64, 0]).await;
            return (Box::new(stream), &[1]);
        }
        2 | 5 => (Vec::new(), b""),
        3 => (b"GET /health HTTP/1.1\r\nX-Slow: ".to_vec(), b"a"),
        4 => (body.into_bytes(), b" "),
        6 => (PREFACE[..3].to_vec(), b""),
        _ => ([hello(), unfinished_headers(1)].concat(), &[0]),
    };
    // On a busy machine a handshake may take too long.
    let connected = async {
        loop {
            if let Ok(stream) = tls(server, source, protocol).await {
                return stream;
            }
            sleep(Duration::from_millis(2)).await;
        }
    };
    let mut stream = timeout(PATIENCE, connected).await.unwrap();
    let _ = stream.write_all(&first).await;
    let _ = stream.flush().await;
    (Box::new(stream), drip)
}

async fn send_ordinary_requests(server: &Server) {
    for number in 0..10 {
        let name = format!("/ordinary/{number}");
        server.set_value(&name, "v").await;
        assert_eq!(server.newest(&name).await["value"], "v");
    }
    let password = server.generated("/ordinary/password", "password", json!({}));
    password.await;
    server.get("/health").await.expect(200);
}

/// Returns a thousand, or as many clients as the open file limit permits. A client uses one file descriptor here and one in the
/// server, and other tests need some, too.
fn clients() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let allowed = maximum.map_or(WANTED_FILES, |maximum| maximum.min(WANTED_FILES));
    if current.is_some_and(|current| current < allowed) {
        let limit = Rlimit {
            current: Some(allowed),
            maximum,
        };
        setrlimit(Resource::Nofile, limit).unwrap();
    }
    let allowed = usize::try_from(current.map_or(allowed, |current| current.max(allowed))).unwrap();
    let clients = allowed.saturating_sub(OTHER_FILES).min(CLIENTS);
    if clients < CLIENTS {
        println!(
            "{clients} clients instead of {CLIENTS}: this process may have {allowed} files open"
        );
    }
    clients
}

const A_SECOND: Duration = Duration::from_secs(1);
const CLIENTS: usize = 1_000;
const STARTING_AT_ONCE: usize = 50;
const OTHER_FILES: usize = 512;
const WANTED_FILES: u64 = 4_096;
