//! A server of plain HTTP that a test makes up.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{Arc, Mutex},
    thread,
};

/// A server on a free port of an address of the loopback network. It serves for as long as the tests run.
pub(super) struct PlainStub {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl PlainStub {
    /// Starts a server that answers by this function, which is told the head of the request, in lower case: with a status, lines
    /// of the head, and a body.
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

    /// Its host, as references have it.
    pub(super) fn host(&self) -> String {
        self.address.to_string()
    }

    /// Its address: scheme, host and port.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The heads of what it was asked so far, in lower case.
    pub(super) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}
