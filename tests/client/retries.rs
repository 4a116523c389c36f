//! What is sent again: requests for which the server is not available now, a bounded number of times.

use crate::stub::{Reply, Stub, VERSION, versions};

const GET: &str = "GET /api/v1/data?current=true&name=%2Fa";

fn unavailable(seconds: &str) -> Reply {
    Reply::new(503, "{\"error\":\"the database is away\"}").header("retry-after", seconds)
}

#[test]
fn a_request_is_sent_again_with_the_same_body_until_the_server_is_available() {
    let stub = Stub::start(|_, before, _| match before {
        0..=1 => unavailable("0"),
        _ => Reply::new(200, VERSION),
    });
    let arguments = ["set", "/a", "-t", "value", "--value", "v"];
    let run = stub.shell().run(&arguments).expect(0);
    let bodies: Vec<_> = stub.asked().into_iter().map(|asked| asked.body).collect();
    assert_eq!(bodies, [r#"{"name":"/a","type":"value","value":"v"}"#; 3]);
    assert_eq!(
        run.errors.matches("trying again in 0 s").count(),
        2,
        "{run:?}"
    );
}

#[test]
fn it_ends_with_status_6_when_the_server_stays_unavailable() {
    for (retries, requests) in [("0", 1), ("1", 2), ("3", 4)] {
        let stub = Stub::start(|_, _, _| unavailable("0"));
        let shell = stub.shell().variable("KEYWRIGHT_CLIENT_RETRIES", retries);
        let run = shell.run(&["get", "/a"]).expect(6);
        assert_eq!(stub.lines(), vec![GET; requests]);
        assert!(run.errors.contains("the database is away"), "{run:?}");
    }
}

#[test]
fn more_patience_than_there_is_is_not_begun_with() {
    let stub = Stub::start(|_, _, _| unavailable("61"));
    stub.shell().run(&["get", "/a"]).expect(6);
    assert_eq!(stub.lines(), [GET]);
}

#[test]
fn nothing_else_is_sent_again() {
    for status in [400, 409, 429, 500, 502, 504] {
        let stub = Stub::start(move |_, _, _| {
            Reply::new(status, "{\"error\":\"no\"}").header("retry-after", "0")
        });
        stub.shell().run(&["get", "/a"]).expect(1);
        assert_eq!(stub.lines(), [GET], "{status}");
    }
}

#[test]
fn without_a_header_it_is_sent_again_by_itself() {
    let stub = Stub::start(|_, before, _| match before {
        0 => Reply::new(503, "{\"error\":\"read-only\"}"),
        _ => Reply::new(200, &versions()),
    });
    let run = stub.shell().run(&["get", "/a"]).expect(0);
    assert!(run.errors.contains("trying again in 0.5 s"), "{run:?}");
}
