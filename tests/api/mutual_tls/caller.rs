//! A client that opens its own connection, so that tests see the result of its handshake.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use std::{
    fs,
    io::{self, Read, Write},
    net::TcpStream,
    sync::Arc,
};

use keywright_harness::{Answer, Server, key_file};
use reqwest::{Certificate, Client, Identity};
use rustls::{
    ClientConfig, ClientConnection, Error, HandshakeKind, RootCertStore, StreamOwned,
    SupportedProtocolVersion,
    crypto::aws_lc_rs::sign::any_supported_type,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
    sign::{CertifiedKey, SingleCertAndKey},
    version::{TLS12, TLS13},
};

use super::issued::Holder;

/// The versions of TLS that the server supports.
pub(super) static VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

/// A client with trusted CAs and an optional certificate.
#[derive(Clone)]
pub(super) struct Caller(Arc<ClientConfig>);

/// An open connection for successive requests.
pub(super) struct Connection(StreamOwned<ClientConnection, TcpStream>);

impl Caller {
    /// A client that presents this certificate, if any.
    pub(super) fn new(holder: Option<&Holder>, version: &'static SupportedProtocolVersion) -> Self {
        let authority = fs::read_to_string(key_file("ca.pem")).unwrap();
        Self::trusting(&authority, holder, version)
    }

    /// A client that trusts servers of these CAs, PEM.
    pub(super) fn trusting(
        authorities: &str,
        holder: Option<&Holder>,
        version: &'static SupportedProtocolVersion,
    ) -> Self {
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
            roots.add(authority.unwrap()).unwrap();
        }
        let config =
            ClientConfig::builder_with_protocol_versions(&[version]).with_root_certificates(roots);
        Self(Arc::new(match holder {
            Some(holder) => config.with_client_cert_resolver(Arc::new(presenting(holder))),
            None => config.with_no_client_auth(),
        }))
    }

    /// Connects; the first request performs the handshake.
    pub(super) fn connect(&self, server: &Server) -> Connection {
        let address = server.base_url().trim_start_matches("https://");
        let name = ServerName::try_from("127.0.0.1").unwrap();
        Connection(StreamOwned::new(
            ClientConnection::new(Arc::clone(&self.0), name).unwrap(),
            TcpStream::connect(address).unwrap(),
        ))
    }

    /// Sends a GET request over its own connection.
    pub(super) fn get(
        &self,
        server: &Server,
        path: &str,
        token: Option<&str>,
    ) -> Result<Answer, Error> {
        self.connect(server).get(path, token)
    }
}

/// A client with another implementation, which speaks HTTP/2.
pub(super) fn another_client(holder: &Holder) -> Client {
    let authority = fs::read(key_file("ca.pem")).unwrap();
    let identity = holder.chain_pem() + &holder.key_pem();
    Client::builder()
        .tls_certs_only([Certificate::from_pem(&authority).unwrap()])
        .identity(Identity::from_pem(identity.as_bytes()).unwrap())
        .no_proxy()
        .build()
        .unwrap()
}

impl Connection {
    /// Sends a GET request, with or without a token; returns the error if the handshake failed.
    pub(super) fn get(&mut self, path: &str, token: Option<&str>) -> Result<Answer, Error> {
        let authorization = token.map_or(String::new(), |token| {
            format!("Authorization: Bearer {token}\r\n")
        });
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{authorization}\r\n"
        );
        // A server that refuses the handshake closes the connection during the write; its alert can still be read.
        let _ = self.0.write_all(request.as_bytes());
        let head = self.read_head().map_err(|cause| tls_error(&cause))?;
        Ok(self.read_body(&head))
    }

    /// Performs the handshake without reading the server's verdict on the certificate, waits until the server has sent
    /// it, and sends this many requests regardless.
    pub(super) fn send_regardless(&mut self, requests: usize) -> io::Result<()> {
        self.0.conn.complete_io(&mut self.0.sock)?;
        self.0.sock.peek(&mut [0])?;
        for _ in 0..requests {
            self.0
                .write_all(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")?;
        }
        Ok(())
    }

    /// Whether the session was resumed.
    pub(super) fn is_resumed(&self) -> bool {
        self.0.conn.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// The certificate that the server has presented.
    pub(super) fn server_certificate(&self) -> CertificateDer<'static> {
        self.0.conn.peer_certificates().unwrap()[0]
            .clone()
            .into_owned()
    }

    fn read_head(&mut self) -> io::Result<String> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte)?;
            head.extend(byte);
        }
        Ok(String::from_utf8(head).unwrap())
    }

    fn read_body(&mut self, head: &str) -> Answer {
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let mut answer = Answer {
            status: status.parse().unwrap(),
            headers: lines
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
                .collect(),
            body: String::new(),
        };
        let length = answer.header("content-length").unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        self.0.read_exact(&mut body).unwrap();
        answer.body = String::from_utf8(body).unwrap();
        answer
    }
}

/// Presents the holder's certificate and key unchecked: rustls itself would check that they match.
fn presenting(holder: &Holder) -> SingleCertAndKey {
    let key = any_supported_type(&holder.key()).unwrap();
    SingleCertAndKey::from(CertifiedKey::new(holder.chain.clone(), key))
}

/// The TLS error within an I/O error.
fn tls_error(error: &io::Error) -> Error {
    match error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<Error>())
    {
        Some(cause) => cause.clone(),
        None => panic!("{error}"),
    }
}
