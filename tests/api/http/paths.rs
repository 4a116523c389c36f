//! Unusual raw paths: a protected path stays protected in every spelling.

use http_body_util::{BodyExt, Empty};
use hyper::{Request, body::Bytes, client::conn::http2, header::AUTHORIZATION};
use hyper_util::rt::{TokioExecutor, TokioIo};
use keywright_harness::Server;

use crate::limits::{HTTP2, ORDINARY, tls};

/// Spellings of `/version`, which needs a token.
const PROTECTED: &str = "
    /version /version/ /version// //version //%2e//version /%76ersion /%76%65%72%73%69%6f%6E /./version /../version
    /../../../version/. /info/../version /info/..//version /info//../version /info/%2e%2e/version /info/.%2E/version
    /identity/oauth/token/%2e%2e/%2e%2E/../version /version/../health/../version/ /version?x=/../../info
    https://localhost/version https://elsewhere.example:1/info/../version http://127.0.0.1/version
";

/// Spellings of `/info`, which is open.
const OPEN: &str = "
    /info //info// /%69nf%6F /version/../info /api/v1/data/../../../info /info?/../version
    https://localhost/management/../info
";

/// Unknown or malformed paths. Their status is 404 with a token and 401 without one.
const NOWHERE: &str = r"
    / * /api /api/v1 /api/v3/data /api/v1/datas /api/v1/data/a/b /API/V1/DATA?name=/a
    /api/v1/certificates/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9 /api/v1/certificates//versions
    /api/v1/certificates/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9/unknown /information /VERSION /Version /version/x
    /version%00 /version%0a /version%0d%0aX:%20y /version%20 /version%09 /version%7f /version%2f /%2fversion
    /info%2f..%2fversion /info/..%2fversion /info/%2e%2e%2Fversion /info;x /info;/../version /info;x=y/../version
    /info/..;/version /version;info /version%3binfo /%2576ersion /info/%252e%252e/version
    /info/%25%32%65%25%32%65/version /info\..\version /info/..\version /info%5c..%5cversion /version% /version%2
    /version%zz /version%2z /versi%C3%B6n /.../version /version%u002f /info/%c0%ae%c0%ae/version
    /info/..%c0%afversion /info/%e0%80%ae%e0%80%ae/version /version%ff /version%e2%80%8b /info/．．/version
    /info%3f/../version /info%23/../version /info:443/../version /info@elsewhere/../version /version+ /versio%6E%6E
    /info%%36 /info%+1 /info* /info|x /{info}
";

#[tokio::test]
async fn a_protected_path_needs_a_token_in_every_spelling() {
    let server = Server::reused().await;
    let plain = server.get("/version").await.expect(200).body;
    for target in PROTECTED.split_whitespace() {
        assert_eq!(refused(&server, target), 401, "{target}");
        let response = request(&server, target, true);
        assert_eq!(response, (200, plain.clone()), "{target}");
    }
}

#[tokio::test]
async fn an_open_path_is_open_in_every_spelling() {
    let server = Server::reused().await;
    let plain = server.get("/info").await.expect(200).body;
    for target in OPEN.split_whitespace() {
        for has_token in [false, true] {
            let response = request(&server, target, has_token);
            assert_eq!(response, (200, plain.clone()), "{target}");
        }
    }
}

#[tokio::test]
async fn an_unknown_path_is_404_with_a_token_and_401_without() {
    let server = Server::reused().await;
    let long = format!("/info/.{}/../../version", "/".repeat(2_048));
    let others = ["localhost:443", &long];
    for target in NOWHERE.split_whitespace().chain(others) {
        assert_eq!(refused(&server, target), 401, "{target}");
        let (status, body) = request(&server, target, true);
        assert_eq!(status, 404, "{target}");
        assert!(body.contains("unknown path"), "{target}: {body}");
    }
}

#[tokio::test]
async fn an_invalid_request_target_is_refused_before_routing() {
    let server = Server::reused().await;
    for target in [
        &b"/ver sion"[..],
        b"/version\0",
        b"/version\x01",
        b"/version\x7f",
        b"/version<",
        b"/version`",
        b"/info\t/../version",
        b"/info\xff/../version",
        b"/info/\xc0\xae\xc0\xae/version",
        b"",
    ] {
        for has_token in [false, true] {
            let (status, _) = exchange(&server, target, has_token);
            assert_eq!(status, 400, "{}", target.escape_ascii());
        }
    }
    // The first path is too long to be normalized, so its status is 404. The second also exceeds the header limit: its
    // status depends on how much of the path has arrived when the server checks.
    for (segments, refused) in [(20_000, &[404][..]), (40_000, &[414, 431])] {
        let (status, _) = exchange(&server, "/a".repeat(segments).as_bytes(), true);
        assert!(refused.contains(&status), "{status}");
    }
}

#[tokio::test]
async fn a_fragment_is_ignored() {
    let server = Server::reused().await;
    assert_eq!(request(&server, "/info#/../version", false).0, 200);
    assert_eq!(request(&server, "/version#/../info", false).0, 401);
    assert_eq!(request(&server, "/version#/../info", true).0, 200);
}

#[tokio::test]
async fn paths_over_http_2_are_the_same_as_over_http_1() {
    let server = Server::reused().await;
    for (targets, without_a_token, with_a_token) in
        [(PROTECTED, 401, 200), (OPEN, 200, 200), (NOWHERE, 401, 404)]
    {
        let targets = targets.split_whitespace();
        for target in targets.filter(|target| target.starts_with('/')) {
            let actual = request_http_2(&server, target, false).await;
            assert_eq!(actual, without_a_token, "{target}");
            let actual = request_http_2(&server, target, true).await;
            assert_eq!(actual, with_a_token, "{target}");
        }
    }
}

#[tokio::test]
async fn a_query_is_not_normalized_like_the_path() {
    let server = Server::reused().await;
    server.set_value("/a/b", "v").await;
    for target in [
        "/api/v1/data?name=%2Fa%2Fb",
        "/api//v1/./data/?name=/a/b",
        "/api/v1/%64ata?name=%2fa/%62",
        "/info/%2e%2e/api/v1/data//?current=true&name=/a/b",
    ] {
        assert_eq!(request(&server, target, true).0, 200, "{target}");
    }
    for target in [
        "/api/v1/data?name=/a/./b",
        "/api/v1/data/?name=/a//b",
        "/api/v1/data?name=%252Fa%252Fb",
    ] {
        assert_ne!(request(&server, target, true).0, 200, "{target}");
    }
}

/// Returns the status of a request without a token. Asserts that the response only reports the missing token.
fn refused(server: &Server, target: &str) -> u16 {
    let (status, body) = request(server, target, false);
    assert!(body.contains("access_denied"), "{target}: {body}");
    status
}

fn request(server: &Server, target: &str, has_token: bool) -> (u16, String) {
    exchange(server, target.as_bytes(), has_token)
}

/// Sends a GET request for a target of any bytes.
fn exchange(server: &Server, target: &[u8], has_token: bool) -> (u16, String) {
    let mut head = b"GET ".to_vec();
    head.extend(target);
    head.extend(b" HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    if has_token {
        head.extend(format!("authorization: Bearer {}\r\n", server.token()).bytes());
    }
    head.extend(b"\r\n");
    let mut connection = server.connect();
    connection.send(&head);
    connection.receive_last()
}

async fn request_http_2(server: &Server, path: &str, has_token: bool) -> u16 {
    let stream = tls(server, ORDINARY, HTTP2).await.unwrap();
    let (mut sender, connection) =
        http2::handshake::<_, _, Empty<Bytes>>(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    let connection = tokio::spawn(connection);
    let mut request = Request::builder().uri(format!("https://localhost{path}"));
    if has_token {
        request = request.header(AUTHORIZATION, format!("Bearer {}", server.token()));
    }
    let response = sender
        .send_request(request.body(Empty::new()).unwrap())
        .await
        .unwrap();
    let status = response.status().as_u16();
    response.into_body().collect().await.unwrap();
    drop(sender);
    connection.await.unwrap().unwrap();
    status
}
