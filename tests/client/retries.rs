//! What is sent again: requests for which the server is not available now, a bounded number of times.

use keywright_harness::{ReservedPort, Shell, key_file};

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
    assert_eq!(run.errors.matches("trying again in ").count(), 2, "{run:?}");
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
    assert!(run.errors.contains("trying again in 0."), "{run:?}");
}

#[test]
fn what_only_reads_is_sent_again_when_its_connection_is_lost() {
    let stub = Stub::start(|_, before, _| match before {
        0..=1 => Reply::lost(),
        _ => Reply::new(200, &versions()),
    });
    let run = stub.shell().run(&["get", "/a"]).expect(0);
    assert_eq!(stub.lines(), [GET; 3]);
    assert_eq!(run.errors.matches("trying again in ").count(), 2, "{run:?}");
}

#[test]
fn what_writes_is_not_sent_again_when_its_connection_is_lost() {
    let cases: [&[&str]; 4] = [
        &["set", "/a", "-t", "value", "--value", "v"],
        &["generate", "/a", "-t", "password"],
        &["regenerate", "/a"],
        &["delete", "/a"],
    ];
    for arguments in cases {
        let stub = Stub::start(|asked, _, _| {
            if asked.line.starts_with("GET") {
                Reply::new(404, "{\"error\":\"no\"}")
            } else {
                Reply::lost()
            }
        });
        let run = stub.shell().run(arguments).expect(6);
        let lines = stub.lines();
        let writes = lines.iter().filter(|line| !line.starts_with("GET"));
        assert_eq!(writes.count(), 1, "{lines:?}");
        assert!(run.errors.contains("can't be reached"), "{run:?}");
    }
}

#[test]
fn what_could_not_be_sent_is_sent_again_whatever_it_is() {
    let set: &[&str] = &["set", "/a", "-t", "value", "--value", "v"];
    for (arguments, answer) in [(set, VERSION.to_owned()), (&["get", "/a"], versions())] {
        let stub = Stub::after_dropping(2, move |_, _, _| Reply::new(200, &answer));
        let run = stub.shell().run(arguments).expect(0);
        assert_eq!(stub.lines().len(), 1);
        assert_eq!(run.errors.matches("trying again in ").count(), 2, "{run:?}");
    }
    let stub = Stub::after_dropping(2, |_, _, _| Reply::new(200, VERSION));
    let shell = stub.shell().variable("KEYWRIGHT_CLIENT_RETRIES", "1");
    shell.run(set).expect(6);
}

#[test]
fn where_a_login_comes_first_it_is_waited_for_as_often_as_for_the_request() {
    // Nobody else gets it, and so nobody answers.
    let port = ReservedPort::any();
    let url = format!("https://127.0.0.1:{}", port.number());
    let caller = |variables: &[(&str, &str)]| {
        let shell = Shell::new()
            .variable("KEYWRIGHT_CLIENT_SERVER", &url)
            .variable("KEYWRIGHT_CLIENT_RETRIES", "2");
        variables
            .iter()
            .fold(shell, |shell, (name, value)| shell.variable(name, value))
    };
    let client = [
        ("KEYWRIGHT_CLIENT_ID", "app"),
        ("KEYWRIGHT_CLIENT_SECRET", "secret"),
    ];
    for who in [&[("KEYWRIGHT_CLIENT_TOKEN", "token")][..], &client] {
        let run = caller(who).run(&["get", "/a"]).expect(6);
        assert_eq!(run.errors.matches("trying again in ").count(), 2, "{run:?}");
    }
}

#[test]
fn a_server_that_is_not_trusted_is_not_asked_again() {
    let stub = Stub::start(|_, _, _| Reply::new(200, &versions()));
    let other = key_file("server.pem").display().to_string();
    let shell = stub.shell().variable("KEYWRIGHT_CLIENT_CA_CERT", &other);
    let run = shell.run(&["get", "/a"]).expect(6);
    assert!(!run.errors.contains("trying again"), "{run:?}");
}
