//! What a client can do about the server's end: nothing.

use keywright_harness::Server;
use tokio::io::AsyncWriteExt;

use super::{
    http2::{DATA, get, hello, read_until},
    patient,
    raw::{HTTP1, HTTP2, OTHER, ask, tcp, tls},
};

#[tokio::test]
async fn clients_that_say_nothing_do_not_keep_a_server_from_ending() {
    let server = Server::start_with(&patient("shutdown_seconds_max = 3600")).await;
    let mut open = Vec::new();
    for first in [&b""[..], &hello(), &hello()[..8]] {
        let mut stream = tls(&server, OTHER, HTTP2).await.unwrap();
        stream.write_all(first).await.unwrap();
        open.push(stream);
    }
    let mut asked = tls(&server, OTHER, HTTP2).await.unwrap();
    let request = [hello(), get("/health", 1)].concat();
    asked.write_all(&request).await.unwrap();
    read_until(&mut asked, DATA, 1).await.unwrap();
    let mut idle = tls(&server, OTHER, HTTP1).await.unwrap();
    assert_eq!(ask(&mut idle).await.unwrap(), 200);
    let mut begun = tls(&server, OTHER, HTTP1).await.unwrap();
    begun.write_all(b"GET /hea").await.unwrap();
    let silent = tcp(&server, OTHER).await.unwrap();

    server.stop().await;
    drop((open, asked, idle, begun, silent));
}
