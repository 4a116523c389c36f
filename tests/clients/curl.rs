//! `curl` over HTTP/2. Debian 12 has curl 7.88, which loses a response if the server resets the stream after sending it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use keywright_harness::{Commanded, Options, RawConnection, Server, is_available, key_file};
use tempfile::TempDir;

#[tokio::test]
async fn responses_sent_before_the_body_was_read_reach_curl() {
    if !is_available("curl") {
        return;
    }
    let server = Server::reused().await;
    let bodies = Bodies::new();
    let stranger = server.as_client("stranger").await;
    let (token, stranger) = (Some(server.token()), Some(stranger.token()));
    for size in [10, 100_000, REQUEST_BYTES_MAX - 1, REQUEST_BYTES_MAX] {
        let body = bodies.of(size);
        for (method, path, content_type, token, status, content) in [
            ("PUT", DATA, JSON, None, 401, "access_denied"),
            ("PUT", DATA, "text/plain", token, 400, "content type"),
            ("POST", "/management", JSON, stranger, 403, "\"error\""),
            ("PUT", "/api/v1/nothing", JSON, token, 404, ""),
            ("PATCH", DATA, JSON, token, 404, ""),
        ] {
            let upload = Upload {
                method,
                url: &format!("{}{path}", server.base_url()),
                content_type,
                token,
                body: &body,
            };
            upload.expect_every_response(status, content);
        }
    }
    let url = format!("{}{DATA}", server.base_url());
    let body = bodies.of(REQUEST_BYTES_MAX + 1);
    let upload = put(&url, server.token(), &body);
    upload.expect_every_response(413, "at most 1048576 bytes");
}

#[tokio::test]
async fn refusals_by_a_busy_server_reach_curl() {
    if !is_available("curl") {
        return;
    }
    let limits = "requests_max = 1\nrequests_per_actor_max = 1\nbody_seconds_max = 3600";
    let server = Server::start_with(&Options::default().server_settings(limits)).await;
    let url = format!("{}{DATA}", server.base_url());
    let _only_slot = request_in_progress(&server);
    let other = server.as_client("other").await;
    let bodies = Bodies::new();
    for size in [10, 100_000, REQUEST_BYTES_MAX - 1] {
        for (token, status) in [(server.token(), 429), (other.token(), 503)] {
            let body = bodies.of(size);
            put(&url, token, &body).expect_every_response(status, "\"error\"");
        }
    }
}

/// Returns a PUT request with a body that is declared as JSON.
fn put<'a>(url: &'a str, token: &'a str, body: &'a Path) -> Upload<'a> {
    Upload {
        method: "PUT",
        url,
        content_type: JSON,
        token: Some(token),
        body,
    }
}

/// A request by curl.
#[derive(Clone, Copy)]
struct Upload<'a> {
    method: &'a str,
    url: &'a str,
    content_type: &'a str,
    token: Option<&'a str>,
    body: &'a Path,
}

impl Upload<'_> {
    /// Sends the request [`ATTEMPTS`] times, each with its own curl process and connection.
    fn expect_every_response(self, status: u16, content: &str) {
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..ATTEMPTS / THREADS {
                        self.expect_response(status, content);
                    }
                });
            }
        });
    }

    fn expect_response(self, status: u16, content: &str) {
        let mut curl = Command::new("curl");
        curl.args([
            "--silent",
            "--http2",
            "--noproxy",
            "*",
            "--request",
            self.method,
        ])
        .args([
            "--max-time",
            "120",
            "--write-out",
            "\n%{http_version} %{http_code}",
        ])
        .arg("--cacert")
        .arg(key_file("ca.pem"))
        .args(["--header", &format!("Content-Type: {}", self.content_type)])
        .args(["--data-binary", &format!("@{}", self.body.display())]);
        if let Some(token) = self.token {
            curl.args(["--header", &format!("Authorization: Bearer {token}")]);
        }
        let run = Commanded::finish(curl.arg(self.url), "");
        let response = run.output.rsplit_once('\n');
        assert!(
            response.is_some_and(|(body, version_and_status)| {
                version_and_status == format!("2 {status}") && body.contains(content)
            }),
            "{status} {} {} {} {run:?}",
            self.method,
            self.url,
            self.body.display(),
        );
    }
}

/// Request bodies in files.
struct Bodies(TempDir);

impl Bodies {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn of(&self, bytes: usize) -> PathBuf {
        let file = self.0.path().join(format!("{bytes}-bytes"));
        fs::write(&file, " ".repeat(bytes)).unwrap();
        file
    }
}

/// Starts a request whose body the server waits for.
fn request_in_progress(server: &Server) -> RawConnection {
    let mut connection = server.connect();
    let head = format!(
        "PUT /api/v1/data HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n",
        server.token(),
    );
    connection.send(head.as_bytes());
    assert!(connection.receive_until("\r\n\r\n").contains(" 100 "));
    connection
}

const DATA: &str = "/api/v1/data";

const JSON: &str = "application/json";

/// The default of `server.request_bytes_max`.
const REQUEST_BYTES_MAX: usize = 1_048_576;

/// The number of attempts per request: responses may be lost only occasionally.
const ATTEMPTS: usize = 40;

const THREADS: usize = 4;
