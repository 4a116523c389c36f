//! Real TLS connections between a server with a certificate and a client with trusted CAs.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
};

use rustls::{
    CertificateError, ClientConfig, ClientConnection, Error, RootCertStore, ServerConfig,
    ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use serde_json::Value;

/// A name in the server's certificate.
pub const SERVER_NAME: &str = "leaf.example.org";

/// Whether a client with these trusted CAs, concatenated PEM, connects to a server with this version of a certificate.
/// A failure must be due to the certificate's signature or issuer.
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

/// A field of a version's value.
pub fn member<'a>(version: &'a Value, name: &str) -> &'a str {
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
    let certificate = member(leaf, "certificate").as_bytes();
    let certificate = CertificateDer::from_pem_slice(certificate).unwrap();
    let key = PrivateKeyDer::from_pem_slice(member(leaf, "private_key").as_bytes()).unwrap();
    ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap()
}

fn client_configuration(trusted: &str) -> ClientConfig {
    let mut authorities = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(trusted.as_bytes()) {
        authorities.add(authority.unwrap()).unwrap();
    }
    ClientConfig::builder()
        .with_root_certificates(authorities)
        .with_no_client_auth()
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

/// The server's message to connected clients.
const GREETING: &str = "connected";
