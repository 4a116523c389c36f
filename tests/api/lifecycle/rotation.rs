//! An authority is replaced while a TLS server goes on using a certificate that it signed. Real connections show which
//! clients can reach that server at each step.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
};

use keywright_harness::Server;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Error, RootCertStore, ServerConfig,
    ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use serde_json::{Value, json};

use crate::{certificates::Certificate, given};

#[tokio::test]
async fn an_authority_is_replaced_and_who_trusts_both_versions_connects_at_every_step() {
    let server = Server::start().await;
    let root = Certificate::generate_root(&server, "/root").await;
    let leaf = json!({"common_name": "leaf", "ca": "/root", "alternative_names": [SERVER_NAME]});
    let leaf = Certificate::generate(&server, "/leaf", leaf).await;
    let before = root.current().await;
    let old = [before.first().unwrap().clone()];
    assert!(connects(&leaf, &old).await);

    // (a) The authority gets a new version, which is transitional: the old one goes on signing.
    let body = json!({"set_as_transitional": true});
    let next = root.regenerate(body).await.expect(200).json();
    let new = [next];
    let reached = async || reached(&root, &leaf, &old, &new).await;
    let by_old = ["old", "both", "current"];
    assert_eq!(reached().await, by_old);
    leaf.regenerate(json!({})).await.expect(200);
    assert_eq!(reached().await, by_old);

    // (b) The flag moves to the old version: the new one signs from now on. The server still has its old certificate.
    let [old_root] = &old;
    root.move_transitional(json!(given::id(old_root)))
        .await
        .expect(200);
    assert_eq!(reached().await, by_old);
    // The server gets one that the new version signed: who trusts only the old one is shut out.
    leaf.regenerate(json!({})).await.expect(200);
    let by_new = ["new", "both", "current"];
    assert_eq!(reached().await, by_new);

    // (c) The flag goes: the old version is no longer handed out.
    root.move_transitional(Value::Null).await.expect(200);
    assert_eq!(root.current().await.len(), 1);
    assert_eq!(reached().await, by_new);
    leaf.regenerate(json!({})).await.expect(200);
    assert_eq!(reached().await, by_new);
}

#[tokio::test]
async fn leaves_that_are_renewed_before_the_flag_moves_shut_out_who_trusts_only_the_new_version() {
    let server = Server::start().await;
    let root = Certificate::generate_root(&server, "/root").await;
    let leaf = json!({"common_name": "leaf", "ca": "/root", "alternative_names": [SERVER_NAME]});
    let leaf = Certificate::generate(&server, "/leaf", leaf).await;
    let body = json!({"set_as_transitional": true});
    let new = [root.regenerate(body).await.expect(200).json()];
    let allowed = json!({"allow_transitional_parent_to_sign": true});
    for (body, is_reached) in [(json!({}), false), (allowed, true)] {
        leaf.regenerate(body.clone()).await.expect(200);
        assert_eq!(connects(&leaf, &new).await, is_reached, "{body}");
    }
}

/// Which clients reach the server with the certificate in use.
///
/// The first trusts nothing but the old version of the authority, the second nothing but the new one. The third trusts
/// both: it was given them when there were both, and keeps them. The last is given at every step what the authority's
/// versions in use and in transition are just then.
async fn reached(
    root: &Certificate<'_>,
    leaf: &Certificate<'_>,
    old: &[Value],
    new: &[Value],
) -> Vec<&'static str> {
    let mut reached = Vec::new();
    for (client, trusted) in [
        ("old", old.to_vec()),
        ("new", new.to_vec()),
        ("both", [old, new].concat()),
        ("current", root.current().await),
    ] {
        if connects(leaf, &trusted).await {
            reached.push(client);
        }
    }
    reached
}

/// Whether a client that trusts these authorities connects to a server with the newest version of this certificate. A
/// client that does not must say that it is for the certificate's signature or issuer.
async fn connects(leaf: &Certificate<'_>, trusted: &[Value]) -> bool {
    let versions = leaf.versions().await;
    match connect(versions.first().unwrap(), trusted) {
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

/// Connects to a TLS server and reads what it says.
fn connect(leaf: &Value, trusted: &[Value]) -> Result<String, Error> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let configuration = Arc::new(server_configuration(leaf));
    let serving = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let connection = ServerConnection::new(configuration).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        // A client that does not trust the certificate hangs up: that is told by the client.
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
    let key = PrivateKeyDer::from_pem_slice(member(leaf, "private_key").as_bytes()).unwrap();
    ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate(leaf)], key)
        .unwrap()
}

fn client_configuration(trusted: &[Value]) -> ClientConfig {
    let mut authorities = RootCertStore::empty();
    for authority in trusted {
        authorities.add(certificate(authority)).unwrap();
    }
    ClientConfig::builder()
        .with_root_certificates(authorities)
        .with_no_client_auth()
}

fn certificate(version: &Value) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(member(version, "certificate").as_bytes()).unwrap()
}

fn member<'a>(version: &'a Value, name: &str) -> &'a str {
    version
        .pointer(&format!("/value/{name}"))
        .unwrap()
        .as_str()
        .unwrap()
}

/// The error of TLS within one of a stream.
fn tls_error(error: &io::Error) -> Error {
    match error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<Error>())
    {
        Some(cause) => cause.clone(),
        None => panic!("{error}"),
    }
}

/// A name in the server's certificate.
const SERVER_NAME: &str = "leaf.example.org";

/// What the server says to who connects.
const GREETING: &str = "connected";
