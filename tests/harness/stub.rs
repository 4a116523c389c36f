//! A stub server with given responses, which records its requests.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::{Shell, key_file};

/// A server on a port of the loopback address, with the certificate of test servers. It serves for as long as the tests run.
pub struct Stub {
    port: u16,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

/// A request.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// The method and the path, separated by a space.
    pub line: String,
    /// The head, in lower case.
    pub head: String,
    /// The body.
    pub body: String,
}

/// A response of the stub.
pub struct Reply {
    status: u16,
    headers: String,
    body: Vec<u8>,
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The reply is complete.
    Whole,
    /// The body is repeated without end, and has no length.
    Endless,
    /// Nothing follows the head.
    Hanging,
    /// The connection closes without a response.
    Lost,
}

impl Reply {
    /// Returns a reply with this status and JSON body.
    pub fn new(status: u16, body: &str) -> Self {
        Self {
            status,
            headers: String::new(),
            body: body.as_bytes().to_owned(),
            end: End::Whole,
        }
    }

    /// Returns a reply with the status 200 and this body.
    pub fn bytes(body: &[u8]) -> Self {
        Self {
            body: body.to_owned(),
            ..Self::new(200, "")
        }
    }

    /// Returns a reply whose body endlessly repeats this text, without a length, until the client disconnects.
    pub fn endless(body: &str) -> Self {
        Self {
            end: End::Endless,
            ..Self::new(200, body)
        }
    }

    /// Returns a reply that is only a head, with nothing after it until the client disconnects.
    pub fn hanging() -> Self {
        Self {
            end: End::Hanging,
            ..Self::new(200, "")
        }
    }

    /// Returns a reply that closes the connection without a response.
    pub fn lost() -> Self {
        Self {
            end: End::Lost,
            ..Self::new(200, "")
        }
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.extend([name, ": ", value, "\r\n"]);
        self
    }
}

impl Stub {
    /// Starts a server that responds with the result of this function. Its arguments are the request, the number of previous
    /// requests for the same method and path, and the address of the server.
    pub fn start(
        response: impl Fn(&ReceivedRequest, usize, &str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::after_dropping(0, response)
    }

    /// Like [`Self::start`], but closes this many connections without reading a request first.
    pub fn after_dropping(
        connections: usize,
        response: impl Fn(&ReceivedRequest, usize, &str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (tls, received, response) = (tls(), Arc::clone(&requests), Arc::new(response));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok).skip(connections) {
                let (tls, received, response) = (
                    Arc::clone(&tls),
                    Arc::clone(&received),
                    Arc::clone(&response),
                );
                thread::spawn(move || serve(stream, tls, port, &received, &*response));
            }
        });
        Self { port, requests }
    }

    /// Returns the stub's address: scheme, host and port.
    pub fn url(&self) -> String {
        url(self.port)
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the methods and paths of the requests so far.
    pub fn lines(&self) -> Vec<String> {
        self.requests()
            .into_iter()
            .map(|request| request.line)
            .collect()
    }

    /// Returns a shell that has an access token for it.
    pub fn shell(&self) -> Shell {
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

/// Responds to one request; the client may close the connection early.
fn serve(
    stream: TcpStream,
    tls: Arc<ServerConfig>,
    port: u16,
    received: &Mutex<Vec<ReceivedRequest>>,
    response: &dyn Fn(&ReceivedRequest, usize, &str) -> Reply,
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
    let request = ReceivedRequest {
        line: request_line.rsplit_once(' ')?.0.to_owned(),
        head,
        body: String::from_utf8(body).unwrap(),
    };
    let before = {
        let mut received = received.lock().unwrap();
        received.push(request.clone());
        received
            .iter()
            .filter(|one| one.line == request.line)
            .count()
            - 1
    };
    let Reply {
        status,
        headers,
        body,
        end,
    } = response(&request, before, &url(port));
    if end == End::Lost {
        return None;
    }
    let length = match end {
        End::Whole => format!("content-length: {}\r\n", body.len()),
        _ => String::new(),
    };
    let stream = stream.get_mut();
    write!(
        stream,
        "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\nconnection: close\r\n{headers}{length}\r\n",
    )
    .ok()?;
    stream.write_all(&body).ok()?;
    match end {
        End::Endless => while stream.write_all(&body).is_ok() {},
        End::Hanging => {
            stream.flush().ok()?;
            // Reading ends when the client closes the connection.
            stream.read_to_end(&mut Vec::new()).ok()?;
        }
        End::Whole | End::Lost => {}
    }
    stream.conn.send_close_notify();
    stream.flush().ok()
}
