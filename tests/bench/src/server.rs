//! The real server, as the measurements start it.

use std::net::SocketAddr;

use keywright_harness::{Options, Server, workspace};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    Outcome,
    client::{Connection, ServerAddress},
};

/// Starts a server with an empty database and the log as operators have it.
pub(crate) async fn start() -> Outcome<Server> {
    Ok(Server::start_in(directory()?, &options()).await)
}

/// The configuration of a measured server.
pub(crate) fn options() -> Options {
    Options::default().environment("KEYWRIGHT_LOG", "info")
}

/// An empty folder in the file system of the build, because the one for temporary files may be in memory alone.
pub(crate) fn directory() -> Outcome<TempDir> {
    Ok(TempDir::new_in(workspace().join("target"))?)
}

/// The address of a server, with a token for it.
pub(crate) fn address(server: &Server) -> Outcome<ServerAddress> {
    Ok(ServerAddress::new(socket(server)?, server.token()))
}

/// The socket of a server.
pub(crate) fn socket(server: &Server) -> Outcome<SocketAddr> {
    Ok(server.base_url().trim_start_matches("https://").parse()?)
}

/// A new connection to a server.
pub(crate) async fn connect(server: &Server) -> Outcome<Connection> {
    Connection::open(&address(server)?).await
}

/// Stores the credential that [`READ`] reads.
pub(crate) async fn store_read(server: &Server) {
    let body = set_body(READ_NAME);
    server.put("/api/v1/data", body).await.expect(200);
}

/// The request body that sets a JSON credential of about 1 KiB.
pub(crate) fn set_body(name: &str) -> Value {
    json!({"name": name, "type": "json", "value": {"text": "v".repeat(VALUE_BYTES)}})
}

/// The size of the values that are written and read, in bytes.
pub(crate) const VALUE_BYTES: usize = 1_024;

/// The name of the credential that is read.
pub(crate) const READ_NAME: &str = "/bench/read";

/// The path that reads it.
pub(crate) const READ: &str = "/api/v1/data?name=/bench/read&current=true";
