//! Limits on the resources of one client: sizes, times, connections, requests. The tests exceed each limit by one.

mod connections;
mod http2;
mod sizes;
mod slow_clients;
mod times;

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use keywright_harness::{Options, Server, tls_config, until_some};
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::{sleep, timeout},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// Returns options of a server with timeouts of an hour, except those in the given lines of settings.
fn patient(lines: &str) -> Options {
    let times = [
        "handshake_seconds_max",
        "header_seconds_max",
        "body_seconds_max",
        "write_seconds_max",
        "idle_seconds_max",
        "connection_seconds_max",
        "ping_interval_seconds",
        "ping_seconds_max",
    ];
    let long = times.iter().filter(|time| !lines.contains(*time));
    let options = Options::default().server_settings(lines);
    long.fold(options, |options, time| {
        options.server_settings(&format!("{time} = 3600"))
    })
}

#[tokio::test]
async fn the_open_file_limit_is_raised_to_the_hard_limit() {
    let (soft, hard) = open_files("self");
    let connections_max = soft.min(900_000) + 1;
    // Each of the four database readers needs three open files.
    let wanted = connections_max + 4 * 3 + 256;
    let options =
        Options::default().server_settings(&format!("connections_max = {connections_max}"));
    let server = Server::start_with(&options).await;
    let (raised, _) = open_files(&server.process_id().to_string());
    assert_eq!(raised, hard);
    let is_warned = server.log().contains("too few open files");
    assert_eq!(is_warned, hard < wanted, "{}", server.log());
}

/// Returns the soft and the hard limit of open files of a process.
fn open_files(process: &str) -> (u64, u64) {
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    let mut lines = limits.lines();
    let line = lines.find_map(|line| line.strip_prefix("Max open files"));
    let words = line.unwrap().split_whitespace();
    let mut numbers = words.map(|number| number.parse().unwrap_or(u64::MAX));
    (numbers.next().unwrap(), numbers.next().unwrap())
}

// Raw clients: bytes over TCP and TLS, from any loopback address.

/// The address of a test's ordinary client.
pub(crate) const ORDINARY: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Another address.
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

const HTTP1: &str = "http/1.1";

pub(crate) const HTTP2: &str = "h2";

/// Opens a connection over TCP.
async fn tcp(server: &Server, source: Ipv4Addr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((source, 0)))?;
    // Keeps the kernel from buffering much for a client that reads nothing.
    socket.set_recv_buffer_size(16 * 1024)?;
    socket.connect(address(server)).await
}

/// Opens a connection over TLS, and negotiates this version of HTTP.
pub(crate) async fn tls(
    server: &Server,
    source: Ipv4Addr,
    protocol: &str,
) -> io::Result<TlsStream<TcpStream>> {
    let stream = tcp(server, source).await?;
    let mut config = tls_config();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await?;
    let actual = stream.get_ref().1.alpn_protocol();
    assert_eq!(actual, Some(protocol.as_bytes()));
    Ok(stream)
}

/// Reads until the server closes the connection, and returns the received bytes.
async fn read_to_close(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut received = Vec::new();
    // A connection may be closed with or without a TLS closure alert, or be reset.
    let read = timeout(PATIENCE, stream.read_to_end(&mut received)).await;
    assert!(read.is_ok(), "the server leaves the connection open");
    received
}

/// Sends the same bytes slowly and repeatedly until the server closes the connection; returns the received bytes.
async fn drip_to_close<S>(stream: S, drip: &[u8]) -> Vec<u8>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    drip_each_to_close(Duration::from_millis(100), stream, drip).await
}

/// Like [`drip_to_close`], with this interval.
async fn drip_each_to_close<S>(pause: Duration, stream: S, drip: &[u8]) -> Vec<u8>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut incoming, mut outgoing) = tokio::io::split(stream);
    let dripping = async {
        loop {
            if outgoing.write_all(drip).await.is_err() || outgoing.flush().await.is_err() {
                // The reading half detects when the server has closed the connection.
                std::future::pending::<()>().await;
            }
            sleep(pause).await;
        }
    };
    tokio::select! {
        () = dripping => unreachable!("sending never ends"),
        received = read_to_close(&mut incoming) => received,
    }
}

struct Http1Response {
    status: u16,
    head: String,
    body: String,
}

/// Reads one response with a length.
async fn read_response(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Http1Response> {
    timeout(PATIENCE, async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8(head).unwrap();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.trim().parse::<usize>().unwrap())
        });
        let mut body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut body).await?;
        Ok(Http1Response {
            status: head[9..12].parse().unwrap(),
            head,
            body: String::from_utf8(body).unwrap(),
        })
    })
    .await
    .expect("the server does not respond")
}

/// Requests `/health` over an HTTP/1.1 connection, which stays open.
async fn get_health(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<u16> {
    stream.write_all(HEALTH).await?;
    Ok(read_response(stream).await?.status)
}

/// Connects from this address, and asserts that the server responds. Returns the connection, which stays open.
async fn connected(server: &Server, source: Ipv4Addr) -> TlsStream<TcpStream> {
    let mut stream = tls(server, source, HTTP1).await.unwrap();
    assert_eq!(get_health(&mut stream).await.unwrap(), 200);
    stream
}

/// Returns the head of a PUT request for a credential, with the server's token and these further fields.
fn put_head(server: &Server, fields: &str) -> String {
    format!(
        "PUT /api/v1/data HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\n{fields}\r\n\r\n",
        server.token()
    )
}

/// Connects from this address repeatedly until the server responds: it may refuse at first, or the client may be too
/// slow on a busy machine. Returns the connection.
async fn until_responded(server: &Server, source: Ipv4Addr) -> TlsStream<TcpStream> {
    let attempt = async || {
        let mut stream = tls(server, source, HTTP1).await?;
        let status = get_health(&mut stream).await?;
        assert_eq!(status, 200);
        Ok(stream)
    };
    until_in_time(attempt).await
}

/// Repeats a client's attempt until it completes before the server disconnects it.
async fn until_in_time<T>(attempt: impl AsyncFn() -> io::Result<T>) -> T {
    until_some("attempt in time", async || attempt().await.ok()).await
}

const HEALTH: &[u8] = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn address(server: &Server) -> SocketAddr {
    let address = server.base_url().trim_start_matches("https://");
    address.parse().unwrap()
}

/// The timeout of a test, far longer than anything that it waits for.
const PATIENCE: Duration = Duration::from_mins(4);
