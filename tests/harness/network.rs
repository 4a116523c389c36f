//! Ports for servers, raw connections for handwritten requests, and TLS connections between a server with a
//! certificate and a client with trusted CAs.

use std::{
    fs,
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use rustls::{
    CertificateError, ClientConfig, ClientConnection, Error, RootCertStore, ServerConfig,
    ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use serde_json::Value;
use tokio::net::TcpSocket;

use crate::{Server, key_file};

/// A loopback port reserved for one server while this exists.
///
/// A merely free port could be assigned to another test before the server binds it, and that test's server, which has the
/// same keys, would respond instead. So this socket is bound, but never listens. Linux does not assign such a port to
/// others, but permits binding it explicitly if both sockets set `SO_REUSEADDR`. Servers set it so that they can be
/// restarted.
pub struct ReservedPort {
    number: u16,
    _bound: TcpSocket,
}

impl ReservedPort {
    /// Reserves any free port.
    pub fn any() -> Self {
        Self::reserve(0).unwrap()
    }

    /// Reserves this port if it is free.
    pub fn of(number: u16) -> Option<Self> {
        // With `SO_REUSEADDR`, binding an already reserved port would succeed. So bind it first without the option.
        let probe = TcpSocket::new_v4().unwrap();
        probe.bind(at(number)).ok()?;
        drop(probe);
        Self::reserve(number)
    }

    /// Returns the number of the port.
    pub fn number(&self) -> u16 {
        self.number
    }

    fn reserve(number: u16) -> Option<Self> {
        let bound = TcpSocket::new_v4().unwrap();
        bound.set_reuseaddr(true).unwrap();
        bound.bind(at(number)).ok()?;
        let number = bound.local_addr().unwrap().port();
        Some(Self {
            number,
            _bound: bound,
        })
    }
}

fn at(number: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, number).into()
}

/// A TLS connection with handwritten HTTP/1.1.
pub struct RawConnection(StreamOwned<ClientConnection, TcpStream>);

impl RawConnection {
    /// Sends raw bytes.
    pub fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
        self.0.flush().unwrap();
    }

    /// Receives until the received bytes end with this text.
    pub fn receive_until(&mut self, end: &str) -> String {
        let mut received = Vec::new();
        while !received.ends_with(end.as_bytes()) {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            received.extend(byte);
        }
        String::from_utf8(received).unwrap()
    }

    /// Receives everything until the server closes the connection.
    pub fn receive_to_end(mut self) -> Vec<u8> {
        let mut received = Vec::new();
        // The server may reset a connection that it has finished with.
        let _ = self.0.read_to_end(&mut received);
        received
    }

    /// Receives everything until the server closes the connection, and returns the status and body of the last response.
    pub fn receive_last(self) -> (u16, String) {
        let text = String::from_utf8(self.receive_to_end()).unwrap();
        let (head, body) = text.rsplit_once("\r\n\r\n").unwrap();
        let status = head.rsplit_once("HTTP/1.1 ").unwrap().1;
        (status[..3].parse().unwrap(), body.to_owned())
    }

    /// Sends bytes, closes the sending side, and returns the bytes that the server sends until it closes the connection or is
    /// silent for this long. An early close by the server is not a failure.
    pub fn exchange(mut self, bytes: &[u8], silence_max: Duration) -> Vec<u8> {
        self.0.sock.set_read_timeout(Some(silence_max)).unwrap();
        let sent = self.0.write_all(bytes).and_then(|()| self.0.flush());
        if sent.is_ok() {
            self.0.conn.send_close_notify();
            let _ = self.0.flush();
            let _ = self.0.sock.shutdown(Shutdown::Write);
        }
        let mut received = Vec::new();
        let _ = self.0.read_to_end(&mut received);
        received
    }
}

impl Server {
    /// Connects, without a client certificate.
    pub fn connect(&self) -> RawConnection {
        self.connect_with(tls_config())
    }

    /// Connects, and negotiates this protocol (`http/1.1` or `h2`).
    pub fn connect_by(&self, protocol: &str) -> RawConnection {
        let mut config = tls_config();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        self.connect_with(config)
    }

    fn connect_with(&self, config: ClientConfig) -> RawConnection {
        let address = self.base_url().trim_start_matches("https://");
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(READ_TIME_MAX)).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        RawConnection(StreamOwned::new(connection, stream))
    }
}

/// Returns the TLS configuration of clients of test servers.
pub fn tls_config() -> ClientConfig {
    client_configuration(&fs::read_to_string(key_file("ca.pem")).unwrap())
}

/// The timeout for reads from a server.
const READ_TIME_MAX: Duration = Duration::from_mins(10);

/// A name in the server's certificate.
pub const SERVER_NAME: &str = "leaf.example.org";

/// Returns whether a client with these trusted CAs (concatenated PEM) can connect to a server with this version of a certificate.
///
/// # Panics
/// Panics if the connection fails for another reason than the certificate's signature or issuer.
pub fn connects(leaf: &Value, trusted: &str) -> bool {
    match connect(leaf, trusted) {
        Ok(greeting) => {
            assert_eq!(greeting, GREETING);
            true
        }
        Err(Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => false,
        Err(other) => panic!("{other}"),
    }
}

/// Returns a field of a version's value.
pub fn field<'a>(version: &'a Value, name: &str) -> &'a str {
    version
        .pointer(&format!("/value/{name}"))
        .unwrap()
        .as_str()
        .unwrap()
}

/// Connects to a TLS server and reads its greeting.
fn connect(leaf: &Value, trusted: &str) -> Result<String, Error> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let configuration = Arc::new(server_configuration(leaf));
    let serving = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let connection = ServerConnection::new(configuration).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        // A client that does not trust the certificate disconnects; the client side reports it.
        let _ = stream.write_all(GREETING.as_bytes());
        stream.conn.send_close_notify();
        let _ = stream.flush();
    });
    let name = ServerName::try_from(SERVER_NAME).unwrap();
    let configuration = Arc::new(client_configuration(trusted));
    let connection = ClientConnection::new(configuration, name).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    let mut stream = StreamOwned::new(connection, stream);
    let mut greeting = String::new();
    let read = stream.read_to_string(&mut greeting);
    drop(stream);
    serving.join().unwrap();
    read.map(|_| greeting).map_err(|error| tls_error(&error))
}

fn server_configuration(leaf: &Value) -> ServerConfig {
    let certificate = field(leaf, "certificate").as_bytes();
    let certificate = CertificateDer::from_pem_slice(certificate).unwrap();
    let key = PrivateKeyDer::from_pem_slice(field(leaf, "private_key").as_bytes()).unwrap();
    ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap()
}

fn client_configuration(trusted: &str) -> ClientConfig {
    ClientConfig::builder()
        .with_root_certificates(trusted_authorities(trusted))
        .with_no_client_auth()
}

/// Returns the trusted CAs of a client, from concatenated PEM.
pub fn trusted_authorities(authorities: &str) -> RootCertStore {
    let mut trusted = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
        trusted.add(authority.unwrap()).unwrap();
    }
    trusted
}

/// Returns the TLS error within an I/O error.
///
/// # Panics
/// Panics if there is none.
pub fn tls_error(error: &io::Error) -> Error {
    match error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<Error>())
    {
        Some(cause) => cause.clone(),
        None => panic!("{error}"),
    }
}

/// The server's message to connected clients.
const GREETING: &str = "connected";
