//! Raw clients: bytes over TCP and TLS, from any loopback address.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, OnceLock},
    time::Duration,
};

use keywright_harness::{Server, key_file};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::{sleep, timeout},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// The address of a test's ordinary client.
pub(super) const ORDINARY: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Another address.
pub(super) const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

pub(super) const HTTP1: &str = "http/1.1";

pub(super) const HTTP2: &str = "h2";

/// A connection over TCP.
pub(super) async fn tcp(server: &Server, source: Ipv4Addr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((source, 0)))?;
    // Keeps the kernel from buffering much for a client that reads nothing.
    socket.set_recv_buffer_size(16 * 1024)?;
    socket.connect(address(server)).await
}

/// A connection over TLS, with this version of HTTP agreed on.
pub(super) async fn tls(
    server: &Server,
    source: Ipv4Addr,
    protocol: &str,
) -> io::Result<TlsStream<TcpStream>> {
    let stream = tcp(server, source).await?;
    let mut config = client_config().clone();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await?;
    assert_eq!(
        stream.get_ref().1.alpn_protocol(),
        Some(protocol.as_bytes())
    );
    Ok(stream)
}

/// Reads until the server closes the connection, and returns the received bytes.
pub(super) async fn read_to_close(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut received = Vec::new();
    // A connection may be closed with or without a TLS closure alert, or be reset.
    let read = timeout(PATIENCE, stream.read_to_end(&mut received)).await;
    assert!(read.is_ok(), "the server leaves the connection open");
    received
}

/// Sends the same bytes slowly and repeatedly until the server closes the connection; returns the received bytes.
pub(super) async fn drip_to_close<S>(stream: S, drip: &[u8]) -> Vec<u8>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    drip_each_to_close(Duration::from_millis(100), stream, drip).await
}

/// Like [`drip_to_close`], with this interval.
pub(super) async fn drip_each_to_close<S>(pause: Duration, stream: S, drip: &[u8]) -> Vec<u8>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut incoming, mut outgoing) = tokio::io::split(stream);
    let dripping = async {
        loop {
            if outgoing.write_all(drip).await.is_err() || outgoing.flush().await.is_err() {
                // The reading half notices when the server has closed the connection.
                std::future::pending::<()>().await;
            }
            sleep(pause).await;
        }
    };
    tokio::select! {
        () = dripping => unreachable!("it has no end"),
        received = read_to_close(&mut incoming) => received,
    }
}

/// A response of HTTP/1.1: the status, the head, the body.
pub(super) struct Http1Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

/// Reads one response with a length.
pub(super) async fn read_answer(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Http1Answer> {
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
        Ok(Http1Answer {
            status: head[9..12].parse().unwrap(),
            head,
            body: String::from_utf8(body).unwrap(),
        })
    })
    .await
    .expect("the server does not answer")
}

/// Requests `/health` over an HTTP/1.1 connection, which stays open.
pub(super) async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<u16> {
    stream.write_all(HEALTH).await?;
    Ok(read_answer(stream).await?.status)
}

/// Connects from this address repeatedly until the server responds: it may refuse at first, or the client may be too
/// slow on a busy machine. Returns the connection.
pub(super) async fn until_answered(server: &Server, source: Ipv4Addr) -> TlsStream<TcpStream> {
    let asked = async || {
        let mut stream = tls(server, source, HTTP1).await?;
        let status = ask(&mut stream).await?;
        assert_eq!(status, 200);
        Ok(stream)
    };
    until_in_time(asked).await
}

/// Repeats a client's attempt until it completes before the server disconnects it.
pub(super) async fn until_in_time<T>(attempt: impl AsyncFn() -> io::Result<T>) -> T {
    let attempts = async {
        loop {
            if let Ok(done) = attempt().await {
                return done;
            }
        }
    };
    let done = timeout(PATIENCE, attempts).await;
    done.expect("the server refuses every attempt")
}

pub(super) const HEALTH: &[u8] = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn address(server: &Server) -> SocketAddr {
    let address = server.base_url().trim_start_matches("https://");
    address.parse().unwrap()
}

fn client_config() -> &'static ClientConfig {
    static CONFIG: OnceLock<ClientConfig> = OnceLock::new();
    CONFIG.get_or_init(|| {
        let mut authorities = RootCertStore::empty();
        let authority = CertificateDer::from_pem_file(key_file("ca.pem")).unwrap();
        authorities.add(authority).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(authorities)
            .with_no_client_auth()
    })
}

/// The timeout of a test, far longer than anything that it waits for.
pub(super) const PATIENCE: Duration = Duration::from_mins(4);
