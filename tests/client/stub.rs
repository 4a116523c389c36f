//! A server that a test makes up: it answers as it is told to, and keeps what it was asked.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use keywright_harness::{Shell, key_file};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

/// A server on a port of the loopback address, with the certificate of test servers. It serves for as long as the tests run.
pub(crate) struct Stub {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Its method and its path, with a blank between them.
    pub(crate) line: String,
    /// Its head, in lower case.
    pub(crate) head: String,
    /// Its body.
    pub(crate) body: String,
}

/// What it is answered with.
pub(crate) struct Reply {
    status: u16,
    headers: String,
    body: String,
}

impl Reply {
    pub(crate) fn new(status: u16, body: &str) -> Self {
        Self {
            status,
            headers: String::new(),
            body: body.to_owned(),
        }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.extend([name, ": ", value, "\r\n"]);
        self
    }
}

impl Stub {
    /// Starts a server that answers by this function, which is told how many requests for the same method and path came
    /// before, and the address of the server. Where it makes none, the connection is closed without an answer.
    pub(crate) fn start<R: Into<Option<Reply>>>(
        answer: impl Fn(&Asked, usize, &str) -> R + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (tls, kept) = (tls(), Arc::clone(&asked));
        let answer = Arc::new(move |asked: &Asked, before: usize, url: &str| {
            answer(asked, before, url).into()
        });
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (tls, kept, answer) =
                    (Arc::clone(&tls), Arc::clone(&kept), Arc::clone(&answer));
                thread::spawn(move || serve(stream, tls, port, &kept, &*answer));
            }
        });
        Self { port, asked }
    }

    pub(crate) fn url(&self) -> String {
        url(self.port)
    }

    /// What it was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The methods and paths that it was asked for so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }

    /// A shell that has an access token for it.
    pub(crate) fn shell(&self) -> Shell {
        let authority = key_file("ca.pem").display().to_string();
        Shell::new()
            .variable("KEYWRIGHT_CLIENT_SERVER", &self.url())
            .variable("KEYWRIGHT_CLIENT_CA_CERT", &authority)
            .variable("KEYWRIGHT_CLIENT_TOKEN", "token")
    }
}

fn url(port: u16) -> String {
    format!("https://127.0.0.1:{port}")
}

fn tls() -> Arc<ServerConfig> {
    // Another test of the same process may have installed it already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let certificate = CertificateDer::from_pem_file(key_file("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(key_file("server-key.pem")).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    Arc::new(config)
}

/// Answers one request; a client that is not content ends the connection, which is no failure of the test.
fn serve(
    stream: TcpStream,
    tls: Arc<ServerConfig>,
    port: u16,
    kept: &Mutex<Vec<Asked>>,
    answer: &dyn Fn(&Asked, usize, &str) -> Option<Reply>,
) -> Option<()> {
    let session = ServerConnection::new(tls).unwrap();
    let mut stream = BufReader::new(StreamOwned::new(session, stream));
    let mut request_line = String::new();
    stream.read_line(&mut request_line).ok()?;
    let mut head = String::new();
    while stream.read_line(&mut head).ok()? > 2 {}
    let head = head.to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    let asked = Asked {
        line: request_line.rsplit_once(' ')?.0.to_owned(),
        head,
        body: String::from_utf8(body).unwrap(),
    };
    let before = {
        let mut kept = kept.lock().unwrap();
        kept.push(asked.clone());
        kept.iter().filter(|one| one.line == asked.line).count() - 1
    };
    let Reply {
        status,
        headers,
        body,
    } = answer(&asked, before, &url(port))?;
    let stream = stream.get_mut();
    write!(
        stream,
        "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .ok()?;
    stream.conn.send_close_notify();
    stream.flush().ok()
}

/// A credential as a server answers with it.
pub(crate) const VERSION: &str = r#"{"type":"value","version_created_at":"2026-01-01T00:00:00Z","id":"8563075f-ca25-4adf-9acb-a4be6a9077fd","name":"/a","metadata":null,"value":"v"}"#;

/// The same as the only version in use.
pub(crate) fn versions() -> String {
    format!("{{\"data\":[{VERSION}]}}")
}
