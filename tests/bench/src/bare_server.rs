//! What reads are compared with: one axum handler that returns fixed bytes, on the TLS stack of the real server.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use axum::{Router, http::header, routing::get};
use bytes::Bytes;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use keywright_harness::key_file;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::{Outcome, client::ServerAddress};

/// The argument that makes this program the bare server; the file with the bytes to return comes after it.
pub(crate) const COMMAND: &str = "bare-server";

/// A bare server in a process of its own, which ends when it is dropped.
pub(crate) struct BareServer {
    child: Child,
    address: ServerAddress,
}

impl BareServer {
    /// Starts a server that answers every read of credentials with the bytes in a file.
    ///
    /// # Errors
    /// When the process can't be started, or does not say where it listens.
    pub(crate) fn start(body: &Path, token: &str) -> Outcome<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(COMMAND)
            .arg(body)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let address = ServerAddress::new(line.trim().parse()?, token);
        Ok(Self { child, address })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// Its process.
    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for BareServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Is the bare server, until standard input ends.
pub(crate) fn run(body: &Path) -> Outcome<()> {
    let body = Bytes::from(fs::read(body)?);
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
            println!("{}", listener.local_addr()?);
            std::io::stdout().flush()?;
            std::thread::spawn(end_with_input);
            let answer = move || {
                let body = body.clone();
                async move {
                    (
                        [(header::CONTENT_TYPE, "application/json;charset=UTF-8")],
                        body,
                    )
                }
            };
            accept(listener, Router::new().route("/api/v1/data", get(answer))).await
        })
}

/// Ends the process when whoever started it has closed its standard input, or has itself ended.
fn end_with_input() {
    let _ = std::io::stdin().read(&mut [0]);
    std::process::exit(0);
}

/// As the real server's listener, with the same settings.
async fn accept(listener: TcpListener, router: Router) -> Outcome<()> {
    let acceptor = TlsAcceptor::from(Arc::new(tls()?));
    let mut protocol = auto::Builder::new(TokioExecutor::new());
    protocol
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME_MAX);
    protocol
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX);
    let protocol = Arc::new(protocol);
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(serve(
            acceptor.clone(),
            Arc::clone(&protocol),
            router.clone(),
            stream,
        ));
    }
}

async fn serve(
    acceptor: TlsAcceptor,
    protocol: Arc<auto::Builder<TokioExecutor>>,
    router: Router,
    stream: TcpStream,
) -> Outcome<()> {
    stream.set_nodelay(true)?;
    let stream = acceptor.accept(stream).await?;
    protocol
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await
}

fn tls() -> Outcome<ServerConfig> {
    let chain = vec![CertificateDer::from_pem_file(key_file("server.pem"))?];
    let key = PrivateKeyDer::from_pem_file(key_file("server-key.pem"))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(server)
}

const HEADER_TIME_MAX: Duration = Duration::from_secs(15);
const STREAMS_PER_CONNECTION_MAX: u32 = 128;
