//! A stub server for plain HTTP.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{Arc, Mutex},
    thread,
};

/// A server on a free port of a loopback address. It serves until the tests end.
pub(super) struct PlainStub {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl PlainStub {
    /// Starts a server. `answer` gets the head of a request in lower case, and returns a status, header lines and a body.
    pub(super) fn start(
        address: Ipv4Addr,
        answer: impl Fn(&str) -> (u16, String, &'static str) + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heads);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut asked = BufReader::new(stream);
                let mut head = String::new();
                while asked.read_line(&mut head).is_ok_and(|length| length > 2) {}
                let head = head.to_ascii_lowercase();
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: "))
                    .map_or(0, |length| length.parse().unwrap());
                let _ = asked.read_exact(&mut vec![0; length]);
                let (status, lines, body) = answer(&head);
                kept.lock().unwrap().push(head);
                let length = body.len();
                let _ = write!(
                    asked.get_mut(),
                    "HTTP/1.1 {status} x\r\n{lines}content-length: {length}\r\nconnection: close\r\n\r\n{body}",
                );
            }
        });
        Self { address, heads }
    }

    /// Returns the host and port.
    pub(super) fn host(&self) -> String {
        self.address.to_string()
    }

    /// Returns the URL: scheme, host and port.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the heads of all requests so far, in lower case.
    pub(super) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}
