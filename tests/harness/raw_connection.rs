//! A raw connection, on which a test writes each byte itself.

use std::{
    fs,
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    sync::Arc,
    time::Duration,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};

use crate::{Server, key_file};

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

    /// Receives everything until the server closes the connection: the status and the body of the last response.
    pub fn receive_last(self) -> (u16, String) {
        let text = String::from_utf8(self.receive_to_end()).unwrap();
        let (head, body) = text.rsplit_once("\r\n\r\n").unwrap();
        let status = head.rsplit_once("HTTP/1.1 ").unwrap().1;
        (status[..3].parse().unwrap(), body.to_owned())
    }
}

impl RawConnection {
    /// Sends bytes, closes the sending side, and returns what the server sends until it closes the connection or is
    /// silent for this long. A server that closes the connection early is no failure.
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

    /// Connects, and agrees on this protocol (`http/1.1` or `h2`).
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

/// The TLS configuration of clients of test servers.
pub fn tls_config() -> ClientConfig {
    let mut authorities = RootCertStore::empty();
    let authority = fs::read(key_file("ca.pem")).unwrap();
    authorities
        .add(CertificateDer::from_pem_slice(&authority).unwrap())
        .unwrap();
    ClientConfig::builder()
        .with_root_certificates(authorities)
        .with_no_client_auth()
}

/// The timeout for reads from a server.
const READ_TIME_MAX: Duration = Duration::from_mins(10);
