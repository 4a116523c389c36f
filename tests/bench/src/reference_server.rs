//! Servers that reads by name are compared with, on the same TLS stack as the real server: a bare handler that returns fixed bytes,
//! and the [floor](crate::floor).

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
use keywright_harness::{Server, key_file};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::{
    Outcome,
    client::ServerAddress,
    floor::Floor,
    load::Side,
    server::{self, READ},
};

/// The argument that starts this program as a reference server; the server's name and a folder follow it.
pub(crate) const COMMAND: &str = "reference-server";

/// A reference server in its own process. Dropping it ends the process.
pub(crate) struct ReferenceServer {
    name: &'static str,
    child: Child,
    address: ServerAddress,
}

/// Starts all reference servers, with the credential and the token of a server. The bare one is the last.
pub(crate) async fn start_all(server: &Server) -> Outcome<Vec<ReferenceServer>> {
    let body = server::connect(server).await?.get(READ).await?;
    fs::write(server.directory().join(BODY), &body)?;
    fs::write(server.directory().join(TOKEN), server.token())?;
    [FLOOR, BARE]
        .into_iter()
        .map(|name| ReferenceServer::start(name, server.directory(), server.token()))
        .collect()
}

impl ReferenceServer {
    fn start(name: &'static str, folder: &Path, token: &str) -> Outcome<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([COMMAND, name])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        Ok(Self {
            name,
            child,
            address: ServerAddress::new(line.trim().parse()?, token),
        })
    }

    pub(crate) fn side(&self) -> Side {
        Side {
            name: self.name,
            address: self.address.clone(),
            process_id: self.child.id(),
        }
    }
}

impl Drop for ReferenceServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Runs the reference server with this name until standard input ends.
pub(crate) fn run(name: &str, folder: &Path) -> Outcome<()> {
    let body = fs::read(folder.join(BODY))?;
    let router = if name == FLOOR {
        let token = fs::read_to_string(folder.join(TOKEN))?;
        Floor::open(folder, &token, &body)?.router()
    } else {
        bare(Bytes::from(body))
    };
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
            println!("{}", listener.local_addr()?);
            std::io::stdout().flush()?;
            std::thread::spawn(end_with_input);
            accept(listener, router).await
        })
}

/// Responds to every read with these bytes.
fn bare(body: Bytes) -> Router {
    let handler = move || {
        let body = body.clone();
        async move { ([(header::CONTENT_TYPE, CONTENT_TYPE)], body) }
    };
    Router::new().route(ROUTE, get(handler))
}

/// Ends the process when its parent closes standard input or exits.
fn end_with_input() {
    let _ = std::io::stdin().read(&mut [0]);
    std::process::exit(0);
}

/// Accepts connections with the settings of the real server's listener.
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

pub(crate) const ROUTE: &str = "/api/v1/data";
pub(crate) const CONTENT_TYPE: &str = "application/json;charset=UTF-8";
const FLOOR: &str = "floor";
const BARE: &str = "bare";
const BODY: &str = "body.json";
const TOKEN: &str = "token";
