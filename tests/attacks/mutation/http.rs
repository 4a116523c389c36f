//! Mutated HTTP/1.1 requests and HTTP/2 frames.

use std::{thread, time::Duration};

use keywright_harness::{RawConnection, Server};

use super::generator::{ROUNDS_BETWEEN_CHECKS, Random, Rounds};
use crate::{assert_alive, assert_runs};

/// Parts of HTTP/1.1 requests.
const HTTP_WORDS: [&[u8]; 22] = [
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\0",
    b":",
    b"\r\n\r\n",
    b"HTTP/1.0",
    b"HTTP/9.9",
    b"GET",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Length: -1\r\n",
    b"Content-Length: 4294967296\r\n",
    b"Expect: 100-continue\r\n",
    b"Connection: upgrade\r\nUpgrade: h2c\r\n",
    b"Host: a\r\n",
    b"Content-Encoding: gzip\r\n",
    b"ffffffffffffffff\r\n",
    b"0\r\n\r\n",
    b"5;a=\"b\"\r\n",
    b"\x80",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
];

#[tokio::test]
async fn mutated_http_1_requests_cause_no_server_error() {
    let server = Server::start().await;
    let body = r#"{"name":"/a","type":"value","value":"v"}"#;
    let head = |line: &str| {
        format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n",
            server.token(),
        )
    };
    let requests = [
        format!("{}\r\n", head("GET /api/v1/data?path=/")),
        format!("{}\r\n", head("GET /health")),
        format!(
            "{}Content-Length: {}\r\n\r\n{body}",
            head("PUT /api/v1/data"),
            body.len()
        ),
        format!(
            "{}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            head("PUT /api/v1/data"),
            body.len(),
        ),
    ];
    attack(&server, Rounds::new(5, 400), "http/1.1", |random| {
        let first = random.pick(&requests).clone().into_bytes();
        let mut bytes = random.mutated(&first, &HTTP_WORDS);
        if random.below(3) == 0 {
            // Several requests on the same connection.
            let second = random.pick(&requests).clone().into_bytes();
            bytes.extend(random.mutated(&second, &HTTP_WORDS));
        }
        bytes
    })
    .await;
}

#[tokio::test]
async fn mutated_http_2_frames_cause_no_server_error() {
    let server = Server::start().await;
    let valid = frames(server.token());
    attack(&server, Rounds::new(6, 400), "h2", |random| {
        let mut frames = valid.clone();
        for _ in 0..=random.below(3) {
            mutate_frames(random, &mut frames);
        }
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        let bytes: Vec<u8> = preface
            .into_iter()
            .chain(frames.iter().flat_map(Frame::bytes))
            .collect();
        if random.below(8) == 0 {
            random.mutated(&bytes, &[b"\0\0\0", b"\xff", b"\x7f\xff\xff\xff"])
        } else {
            bytes
        }
    })
    .await;
}

/// Sends the bytes of each round on its own connection, several rounds at a time.
async fn attack(
    server: &Server,
    mut rounds: Rounds,
    protocol: &str,
    make: impl Fn(&mut Random) -> Vec<u8>,
) {
    loop {
        let batch: Vec<_> = (0..CONNECTIONS)
            .map_while(|_| rounds.next())
            .map(|(round, mut random)| (round, make(&mut random)))
            .collect();
        let Some((first, _)) = batch.first() else {
            break;
        };
        let first = *first;
        // Blocking, with one thread per connection.
        thread::scope(|scope| {
            for (round, bytes) in &batch {
                let connection = server.connect_by(protocol);
                scope.spawn(move || exchange(connection, bytes, protocol, *round));
            }
        });
        let attack = format!("the rounds from {first} over {protocol}");
        assert_runs(server, &attack);
        if first % ROUNDS_BETWEEN_CHECKS < CONNECTIONS {
            assert_alive(server, &attack).await;
        }
    }
    assert_alive(server, "all rounds").await;
}

fn exchange(connection: RawConnection, bytes: &[u8], protocol: &str, round: usize) {
    let received = connection.exchange(bytes, SILENCE_MAX);
    let is_fault = if protocol == "h2" {
        has_status_500(&received)
    } else {
        let text = String::from_utf8_lossy(&received);
        let fault = text
            .split("HTTP/1.1 ")
            .skip(1)
            .find(|response| response.starts_with('5'));
        fault.is_some_and(|response| {
            !response.starts_with("503") || !response.to_ascii_lowercase().contains("retry-after")
        })
    };
    assert!(
        !is_fault,
        "round {round}: the response to {} is {}",
        bytes.escape_ascii(),
        received.escape_ascii()
    );
}

/// Returns whether one of these frames contains a response with status 500 from the static table of HPACK.
fn has_status_500(mut received: &[u8]) -> bool {
    while let Some((head, rest)) = received.split_at_checked(HEAD_BYTES) {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let payload = &rest[..length.min(rest.len())];
        if head[3] == HEADERS && payload.first() == Some(&STATUS_500) {
            return true;
        }
        received = &rest[payload.len()..];
    }
    false
}

/// A frame (RFC 9113, section 4.1), possibly with a wrong length.
#[derive(Clone)]
struct Frame {
    length: Option<usize>,
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Frame {
    fn new(kind: u8, flags: u8, stream: u32, payload: Vec<u8>) -> Self {
        Self {
            length: None,
            kind,
            flags,
            stream,
            payload,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let length = self.length.unwrap_or(self.payload.len());
        let length = u32::try_from(length).unwrap().to_be_bytes();
        let mut bytes = length[1..].to_vec();
        bytes.extend([self.kind, self.flags]);
        bytes.extend(self.stream.to_be_bytes());
        bytes.extend(&self.payload);
        bytes
    }
}

/// Returns the frames of a connection with three requests: a read, a write, and a body in two frames.
fn frames(token: &str) -> Vec<Frame> {
    let body = br#"{"name":"/a","type":"value","value":"v"}"#;
    let get = head(0x82, "/api/v1/data?path=/", token);
    let post = head(0x83, "/api/v1/interpolate", token);
    let half = post.len() / 2;
    vec![
        Frame::new(SETTINGS, 0, 0, vec![0, 4, 0, 0, 0xff, 0xff]),
        Frame::new(SETTINGS, ACK, 0, Vec::new()),
        Frame::new(HEADERS, END_STREAM | END_HEADERS, 1, get),
        Frame::new(HEADERS, END_HEADERS, 3, post.clone()),
        Frame::new(DATA, END_STREAM, 3, body.to_vec()),
        Frame::new(HEADERS, 0, 5, post[..half].to_vec()),
        Frame::new(CONTINUATION, END_HEADERS, 5, post[half..].to_vec()),
        Frame::new(DATA, 0, 5, b"{\"a\":".to_vec()),
        Frame::new(PING, 0, 0, vec![0; 8]),
        Frame::new(PRIORITY, 0, 5, vec![0, 0, 0, 3, 16]),
        Frame::new(WINDOW_UPDATE, 0, 0, vec![0, 1, 0, 0]),
        Frame::new(DATA, END_STREAM, 5, b"1}".to_vec()),
        Frame::new(RST_STREAM, 0, 5, vec![0, 0, 0, 8]),
        Frame::new(GOAWAY, 0, 0, vec![0; 8]),
    ]
}

/// Returns the fields of a request in HPACK (RFC 7541), without Huffman codes. The method is an index of the static
/// table.
fn head(method: u8, path: &str, token: &str) -> Vec<u8> {
    let mut head = vec![method, 0x87];
    for (name, value) in [
        (0x04, path),
        (0x01, "localhost"),
        (0x0f, "application/json"),
        (0x0f, &format!("Bearer {token}")),
    ] {
        head.push(name);
        if name == 0x0f {
            // Names beyond the prefix of four bits: content-type is 31, authorization 23.
            head.push(if value.starts_with("Bearer") { 8 } else { 16 });
        }
        let mut length = value.len();
        if length < 127 {
            head.push(u8::try_from(length).unwrap());
        } else {
            head.push(127);
            length -= 127;
            while length >= 128 {
                head.push(u8::try_from(length % 128).unwrap() | 128);
                length /= 128;
            }
            head.push(u8::try_from(length).unwrap());
        }
        head.extend(value.as_bytes());
    }
    head
}

fn mutate_frames(random: &mut Random, frames: &mut Vec<Frame>) {
    let at = random.below(frames.len());
    let other = random.below(frames.len());
    match random.below(10) {
        0 => frames[at].kind = *random.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0xff]),
        1 => frames[at].flags = random.byte(),
        2 => frames[at].stream = *random.pick(&[0, 1, 2, 3, 5, 7, 0x7fff_ffff, 0x8000_0001]),
        3 => frames[at].length = Some(random.below(0x00ff_ffff)),
        4 => frames.swap(at, other),
        5 => drop(frames.remove(at)),
        6 => {
            let copies = vec![frames[at].clone(); 1 + random.below(200)];
            frames.splice(other..other, copies);
        }
        7 => frames[at].payload = Vec::new(),
        _ => {
            let words: [&[u8]; 6] = [
                b"\0",
                b"\xff",
                b"\x7f\xff\xff\xff\xff",
                b"\x82",
                b"\x3f\xe1\xff\x03",
                b"\x80",
            ];
            frames[at].payload = random.mutated(&frames[at].payload, &words);
        }
    }
    if frames.is_empty() {
        frames.push(Frame::new(PING, 0, 0, vec![0; 8]));
    }
}

/// The number of concurrent connections.
const CONNECTIONS: usize = 8;
/// Maximum time that a server may be silent on a connection.
const SILENCE_MAX: Duration = Duration::from_millis(500);

const HEAD_BYTES: usize = 9;
const STATUS_500: u8 = 0x8e;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
