//! Handwritten frames of HTTP/2 (RFC 9113) that no well-behaved client would send.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The connection preface of a client.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;

/// A received frame, without the flags.
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) stream: u32,
}

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Returns the preface with settings that change nothing.
pub(super) fn hello() -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()
}

/// Returns the preface of a client with this initial window size.
pub(super) fn hello_with_window(bytes: u8) -> Vec<u8> {
    let initial_window_size = [0, 4, 0, 0, 0, bytes];
    [PREFACE, &frame(SETTINGS, 0, 0, &initial_window_size)].concat()
}

/// Returns a frame that increases the window of this stream.
pub(super) fn window_update(bytes: u32, stream: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

/// Returns the header of a frame with a request head of 16,000 bytes, without the head.
pub(super) fn unfinished_headers(stream: u32) -> Vec<u8> {
    let mut whole = frame(HEADERS, END_STREAM | END_HEADERS, stream, &[0; 16_000]);
    whole.truncate(9);
    whole
}

/// Returns a whole GET request.
pub(super) fn get(path: &str, stream: u32) -> Vec<u8> {
    get_with(path, stream, &[])
}

fn get_with(path: &str, stream: u32, field: &[u8]) -> Vec<u8> {
    let (path, authority) = (named(PATH, path), named(AUTHORITY, "localhost"));
    let fields = [&indexed(GET), &indexed(HTTPS), &path[..], &authority, field];
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &fields.concat())
}

/// Returns the head of a token request, whose body the server waits for.
pub(super) fn form_without_body(stream: u32) -> Vec<u8> {
    form_to("/identity/oauth/token", stream)
}

/// Returns the head of a POST request with a form, whose body follows.
pub(super) fn form_to(path: &str, stream: u32) -> Vec<u8> {
    let fields = [
        indexed(POST),
        indexed(HTTPS),
        named(PATH, path),
        named(AUTHORITY, "localhost"),
        named(CONTENT_TYPE, "application/x-www-form-urlencoded"),
    ];
    frame(HEADERS, END_HEADERS, stream, &fields.concat())
}

/// Returns a whole GET request with a bearer token.
pub(super) fn authorized_get(path: &str, token: &str, stream: u32) -> Vec<u8> {
    let token = named(AUTHORIZATION, &format!("Bearer {token}"));
    get_with(path, stream, &token)
}

/// Returns an indexed field of HPACK's static table (RFC 7541, appendix A).
fn indexed(index: u8) -> Vec<u8> {
    vec![0x80 | index]
}

/// Returns a field with a name of the static table and a literal value, uncompressed and not indexed.
fn named(index: u8, value: &str) -> Vec<u8> {
    const LARGEST_IN_ONE_BYTE: u8 = 15;
    let mut field = match index.checked_sub(LARGEST_IN_ONE_BYTE) {
        Some(rest) => vec![LARGEST_IN_ONE_BYTE, rest],
        None => vec![index],
    };
    field.extend(length(value.len()));
    field.extend(value.as_bytes());
    field
}

/// Returns the length of an uncompressed string (RFC 7541, section 5.1).
fn length(length: usize) -> Vec<u8> {
    const LARGEST_IN_ONE_BYTE: usize = 127;
    let Some(mut rest) = length.checked_sub(LARGEST_IN_ONE_BYTE) else {
        return vec![u8::try_from(length).unwrap()];
    };
    let mut bytes = vec![127];
    while rest >= 128 {
        bytes.push(u8::try_from(rest % 128).unwrap() | 128);
        rest /= 128;
    }
    bytes.push(u8::try_from(rest).unwrap());
    bytes
}

pub(super) const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

const AUTHORITY: u8 = 1;
const GET: u8 = 2;
const POST: u8 = 3;
const PATH: u8 = 4;
const HTTPS: u8 = 7;
const AUTHORIZATION: u8 = 23;
const CONTENT_TYPE: u8 = 31;

/// Reads the next frame that the server sends.
pub(super) async fn read_frame(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Frame> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; usize::try_from(length).unwrap()];
    stream.read_exact(&mut payload).await?;
    Ok(Frame {
        kind: head[3],
        stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
    })
}

/// Reads up to the first frame of this kind on this stream.
pub(super) async fn read_until(
    stream: &mut (impl AsyncRead + Unpin),
    kind: u8,
    of_stream: u32,
) -> io::Result<()> {
    loop {
        let frame = read_frame(stream).await?;
        if (frame.kind, frame.stream) == (kind, of_stream) {
            return Ok(());
        }
    }
}

/// Returns the kinds of all frames that the server sent.
pub(super) fn kinds(mut bytes: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while let Some((head, rest)) = bytes.split_at_checked(9) {
        kinds.push(head[3]);
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        bytes = rest.get(usize::try_from(length).unwrap()..).unwrap_or(&[]);
    }
    kinds
}
