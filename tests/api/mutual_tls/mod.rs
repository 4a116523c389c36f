//! Client certificates, failing handshakes, and the reload of TLS files.

mod authorities;
mod handshake;
mod identity;
mod issued;

use std::{
    fs,
    io::{self, Read, Write},
    net::TcpStream,
    sync::Arc,
};

use issued::Holder;
use keywright_harness::{
    Options, Response, Server, TestCertificate, key_file, tls_error, trusted_authorities,
};
use reqwest::{Client, Identity};
use rustls::{
    AlertDescription, ClientConfig, ClientConnection, Error, HandshakeKind, StreamOwned,
    SupportedProtocolVersion,
    crypto::aws_lc_rs::sign::any_supported_type,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    sign::{CertifiedKey, SingleCertAndKey},
    version::{TLS12, TLS13},
};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use issued::{Contents, Issuing};

use crate::given;

// A server that trusts client CAs, and the results that its clients get.

/// An organizational unit that is an identity.
const UNIT: &str = "app:0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55";

/// An organizational unit that is another identity.
const OTHER_UNIT: &str = "app:7b2f4c11-9a3e-4d60-a1c4-5e6f70819203";

/// The actor of a certificate with [`UNIT`].
const ACTOR: &str = "mtls-app:0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55";

/// The file with the trusted client CAs, in the server's folder.
const AUTHORITIES_FILE: &str = "client-authorities.pem";

/// The result that a client gets.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// The client is authenticated as this actor.
    Actor(&'static str),
    /// The handshake fails, with this alert.
    Alert(AlertDescription),
    /// 401, with a message that contains these words.
    Unauthenticated(&'static str),
}

const ACCEPTED: Expected = Expected::Actor(ACTOR);
const UNKNOWN_AUTHORITY: Expected = Expected::Alert(AlertDescription::UnknownCA);

/// Starts a server that trusts one client CA.
async fn authority_and_server() -> (TestCertificate, Server) {
    let authority = TestCertificate::root("clients");
    let server = server_trusting(&[&authority]).await;
    (authority, server)
}

/// Starts a server that trusts these client CAs.
async fn server_trusting(authorities: &[&TestCertificate]) -> Server {
    server_trusting_with(authorities, Options::default()).await
}

/// Starts a server that trusts these client CAs, with these additional options.
pub(crate) async fn server_trusting_with(
    authorities: &[&TestCertificate],
    options: Options,
) -> Server {
    let directory = TempDir::new().unwrap();
    trust(directory.path(), authorities);
    let setting = format!("client_authorities = \"{AUTHORITIES_FILE}\"");
    Server::start_in(directory, &options.tls_settings(&setting)).await
}

/// Writes the file with the trusted client CAs.
fn trust(directory: &std::path::Path, authorities: &[&TestCertificate]) {
    let authorities = authorities.iter();
    let bundle: String = authorities
        .map(|authority| &*authority.certificate)
        .collect();
    fs::write(directory.join(AUTHORITIES_FILE), bundle).unwrap();
}

/// Asserts the result for a client with this certificate and no token, over each version of TLS.
#[track_caller]
fn assert_result(server: &Server, what: &str, holder: &Holder, expected: Expected) {
    for version in VERSIONS {
        let what = format!("{what}, {:?}", version.version);
        let result = Caller::new(Some(holder), version).get(server, "/version", None);
        match (result, expected) {
            (Ok(response), Expected::Actor(actor)) => {
                assert_eq!(response.status, 200, "{what}: {response:?}");
                assert_eq!(logged_actor(server, &response), actor, "{what}");
            }
            (Ok(response), Expected::Unauthenticated(words)) => {
                assert_eq!(response.status, 401, "{what}: {response:?}");
                let error = response.error();
                assert!(error.contains(words), "{what}: {error}");
            }
            (Err(error), Expected::Alert(alert)) => {
                assert_eq!(error, Error::AlertReceived(alert), "{what}");
            }
            (result, _) => unreachable!("{what}: {result:?}, not {expected:?}"),
        }
    }
}

/// Returns the actor of a request in the access log.
fn logged_actor(server: &Server, response: &Response) -> String {
    let line: Value = serde_json::from_str(&server.access_log_line(response)).unwrap();
    line["actor"].as_str().unwrap_or_default().to_owned()
}

// A client that opens its own connection, so that tests see the result of its handshake.

/// The versions of TLS that the server supports.
static VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

/// A client with trusted CAs and an optional certificate.
#[derive(Clone)]
struct Caller(Arc<ClientConfig>);

/// An open connection for successive requests.
struct Connection(StreamOwned<ClientConnection, TcpStream>);

impl Caller {
    /// Returns a client that presents this certificate, if any.
    fn new(holder: Option<&Holder>, version: &'static SupportedProtocolVersion) -> Self {
        let authority = fs::read_to_string(key_file("ca.pem")).unwrap();
        Self::trusting(&authority, holder, version)
    }

    /// Returns a client that trusts servers of these CAs, in PEM.
    fn trusting(
        authorities: &str,
        holder: Option<&Holder>,
        version: &'static SupportedProtocolVersion,
    ) -> Self {
        let config = ClientConfig::builder_with_protocol_versions(&[version])
            .with_root_certificates(trusted_authorities(authorities));
        Self(Arc::new(match holder {
            Some(holder) => config.with_client_cert_resolver(Arc::new(presenting(holder))),
            None => config.with_no_client_auth(),
        }))
    }

    /// Connects; the first request performs the handshake.
    fn connect(&self, server: &Server) -> Connection {
        let address = server.base_url().trim_start_matches("https://");
        let name = ServerName::try_from("127.0.0.1").unwrap();
        Connection(StreamOwned::new(
            ClientConnection::new(Arc::clone(&self.0), name).unwrap(),
            TcpStream::connect(address).unwrap(),
        ))
    }

    /// Sends a GET request over a new connection.
    fn get(&self, server: &Server, path: &str, token: Option<&str>) -> Result<Response, Error> {
        self.connect(server).get(path, token)
    }
}

/// Returns a `reqwest` client, which uses HTTP/2.
fn another_client(holder: &Holder) -> Client {
    let identity = holder.chain.clone() + &holder.key;
    let identity = Identity::from_pem(identity.as_bytes()).unwrap();
    given::client(|builder| builder.identity(identity))
}

impl Connection {
    /// Sends a GET request, with or without a token; returns the error if the handshake failed.
    fn get(&mut self, path: &str, token: Option<&str>) -> Result<Response, Error> {
        let head = self.send(path, token).map_err(|cause| tls_error(&cause))?;
        Ok(self.read_body(&head))
    }

    /// Sends a GET request, and returns the head of the response.
    fn send(&mut self, path: &str, token: Option<&str>) -> io::Result<String> {
        let authorization = token.map_or(String::new(), |token| {
            format!("Authorization: Bearer {token}\r\n")
        });
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{authorization}\r\n"
        );
        // A server that refuses the handshake closes the connection during the write; its alert can still be read.
        let _ = self.0.write_all(request.as_bytes());
        self.read_head()
    }

    /// Performs the handshake without reading the server's alert about the certificate, waits until the server has sent
    /// the alert, and sends this many requests regardless.
    fn send_regardless(&mut self, requests: usize) -> io::Result<()> {
        self.0.conn.complete_io(&mut self.0.sock)?;
        self.0.sock.peek(&mut [0])?;
        for _ in 0..requests {
            self.0
                .write_all(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")?;
        }
        Ok(())
    }

    /// Returns whether the session was resumed.
    fn is_resumed(&self) -> bool {
        self.0.conn.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Returns the certificate that the server has presented.
    fn server_certificate(&self) -> CertificateDer<'static> {
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

    fn read_body(&mut self, head: &str) -> Response {
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let mut response = Response {
            request: String::new(),
            status: status.parse().unwrap(),
            headers: lines
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
                .collect(),
            body: String::new(),
        };
        let length = response.header("content-length").unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        self.0.read_exact(&mut body).unwrap();
        response.body = String::from_utf8(body).unwrap();
        response
    }
}

/// Presents the holder's certificate and key unchecked: rustls itself would check that they match.
fn presenting(holder: &Holder) -> SingleCertAndKey {
    let key = PrivateKeyDer::from_pem_slice(holder.key.as_bytes()).unwrap();
    let key = any_supported_type(&key).unwrap();
    let chain = CertificateDer::pem_slice_iter(holder.chain.as_bytes());
    SingleCertAndKey::from(CertifiedKey::new(chain.map(Result::unwrap).collect(), key))
}
