//! Starts the real server for the measurements, and provides their client: HTTP/1.1 over TLS with keep-alive.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, StatusCode,
    client::conn::http1::{SendRequest, handshake},
    header,
};
use hyper_util::rt::TokioIo;
use keywright_harness::{Options, Server, tls_config, workspace};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::statistics::Outcome;

/// Starts a server with an empty database and the log level that operators use.
pub(crate) async fn start() -> Outcome<Server> {
    Ok(Server::start_in(directory()?, &options()).await)
}

/// Returns the configuration of a measured server.
pub(crate) fn options() -> Options {
    Options::default().environment("KEYWRIGHT_LOG", "info")
}

/// Returns an empty folder in the file system of the build, because the system's temporary folder may be in memory.
pub(crate) fn directory() -> Outcome<TempDir> {
    Ok(TempDir::new_in(workspace().join("target"))?)
}

/// Returns the address of a server, with a token for it.
pub(crate) fn address(server: &Server) -> Outcome<ServerAddress> {
    Ok(ServerAddress::new(socket(server)?, server.token()))
}

pub(crate) fn socket(server: &Server) -> Outcome<SocketAddr> {
    Ok(server.base_url().trim_start_matches("https://").parse()?)
}

/// Opens a connection to a server.
pub(crate) async fn connect(server: &Server) -> Outcome<Connection> {
    Connection::open(&address(server)?).await
}

/// Returns the request body that sets a JSON credential of about 1 KiB.
pub(crate) fn set_body(name: &str) -> Value {
    json!({"name": name, "type": "json", "value": {"text": "v".repeat(VALUE_BYTES)}})
}

/// The size of the values that are written and read, in bytes.
pub(crate) const VALUE_BYTES: usize = 1_024;

/// The name of the credential that is read.
pub(crate) const READ_NAME: &str = "/bench/read";

/// The path that reads this credential.
pub(crate) const READ: &str = "/api/v1/data?name=/bench/read&current=true";

/// The address of a server, and a token for it.
#[derive(Clone)]
pub(crate) struct ServerAddress {
    socket: SocketAddr,
    authorization: String,
}

impl ServerAddress {
    /// Returns a server on this socket that accepts this bearer token.
    pub(crate) fn new(socket: SocketAddr, token: &str) -> Self {
        Self {
            socket,
            authorization: format!("Bearer {token}"),
        }
    }
}

pub(crate) struct Request {
    method: Method,
    path: String,
    body: Bytes,
}

impl Request {
    /// Returns a GET request for a path.
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            body: Bytes::new(),
        }
    }

    /// Sets a credential.
    pub(crate) fn set(body: &Value) -> Self {
        Self {
            method: Method::PUT,
            ..Self::post("/api/v1/data", body)
        }
    }

    /// Generates a credential.
    pub(crate) fn generate(body: &Value) -> Self {
        Self::post("/api/v1/data", body)
    }

    /// Returns a POST request with a JSON body.
    pub(crate) fn post(path: &str, body: &Value) -> Self {
        Self {
            method: Method::POST,
            path: path.to_owned(),
            body: Bytes::from(body.to_string()),
        }
    }
}

/// A persistent connection.
pub(crate) struct Connection {
    address: ServerAddress,
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    /// Opens a connection, driven by a task that ends when the connection closes.
    ///
    /// # Errors
    /// Returns an error if no server listens, or if its certificate is not from the CA of the tests.
    pub(crate) async fn open(address: &ServerAddress) -> Outcome<Self> {
        let stream = TcpStream::connect(address.socket).await?;
        stream.set_nodelay(true)?;
        let server = ServerName::IpAddress(address.socket.ip().into());
        let stream = connector().connect(server, stream).await?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self {
            address: address.clone(),
            sender,
        })
    }

    /// Sends a GET request for a path, and returns the body of the response.
    ///
    /// # Errors
    /// Returns an error if the connection closes, or on a status other than 200.
    pub(crate) async fn get(&mut self, path: &str) -> Outcome<Bytes> {
        self.send(Request::get(path)).await
    }

    /// Sends a request and returns the body of the response.
    ///
    /// # Errors
    /// Returns an error if the connection closes, or on a status other than 200.
    pub(crate) async fn send(&mut self, request: Request) -> Outcome<Bytes> {
        let path = request.path.clone();
        let (status, body) = self.response(request).await?;
        if status != StatusCode::OK {
            return Err(format!("the response to {path} has the status {status}").into());
        }
        Ok(body)
    }

    /// Sends a request that the caller has no permission for.
    ///
    /// # Errors
    /// Returns an error if the connection closes, or on a status other than 404.
    pub(crate) async fn refusal(&mut self, method: &Method, path: &str) -> Outcome<()> {
        let request = Request {
            method: method.clone(),
            ..Request::get(path)
        };
        let (status, _) = self.response(request).await?;
        if status != StatusCode::NOT_FOUND {
            return Err(format!("the response to {path} has the status {status}").into());
        }
        Ok(())
    }

    async fn response(&mut self, request: Request) -> Outcome<(StatusCode, Bytes)> {
        let request = hyper::Request::builder()
            .method(request.method)
            .uri(request.path)
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, &self.address.authorization)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(request.body))?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, body))
    }
}

fn connector() -> TlsConnector {
    let mut client = tls_config();
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(client))
}
