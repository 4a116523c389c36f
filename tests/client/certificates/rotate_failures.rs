//! Failures during `keywright certificates rotate`, with a stub server.

use std::sync::{Arc, Mutex};

use keywright_harness::{Commanded, ReceivedRequest, Reply, Shell, Stub, Text};
use serde_json::{Value, json};

use crate::json_of;

/// The result of a request for a step.
#[derive(Clone, Copy, Debug)]
struct Step {
    is_done: bool,
    /// The status of the response; `None` if the connection is lost.
    status: Option<u16>,
}

/// Starts a stub server with one CA, `/root`, which signed nothing. The first step has this result.
fn server(first: Step) -> Stub {
    // A letter per version, newest first: `t` is transitional, `s` is not.
    let versions = Arc::new(Mutex::new("s".to_owned()));
    Stub::start(move |request, before, _| {
        let mut versions = versions.lock().unwrap();
        if request.line.starts_with("GET") {
            return Reply::new(200, &reported(request, &versions).to_string());
        }
        let step = match (request.line.as_str(), before) {
            (INTRODUCE, 0) => first,
            _ => Step {
                is_done: true,
                status: Some(200),
            },
        };
        if step.is_done {
            *versions = match request.line.as_str() {
                INTRODUCE => format!("t{versions}"),
                _ if request.body.contains("null") => "ss".to_owned(),
                _ => "st".to_owned(),
            };
        }
        let Some(status) = step.status else {
            return Reply::lost();
        };
        let body = match (status, request.line.as_str()) {
            (200, INTRODUCE) => version(0, true),
            (200, _) => json!([]),
            _ => json!({"error": "the result of the step is unknown"}),
        };
        Reply::new(status, &body.to_string())
    })
}

fn reported(request: &ReceivedRequest, versions: &str) -> Value {
    let flags = versions.bytes().rev().map(|kind| kind == b't').enumerate();
    if request.line.ends_with("/versions?current=true") {
        let mut current: Vec<_> = flags.rev().map(|(id, flag)| (flag, id)).collect();
        current.sort_by_key(|(flag, _)| *flag);
        return current
            .into_iter()
            .map(|(flag, id)| version(id, flag))
            .collect();
    }
    let listed = flags.rev().map(|(id, flag)| {
        json!({"id": id.to_string(), "transitional": flag, "certificate_authority": true})
    });
    json!({"certificates": [{
        "id": "id", "name": "/root", "signed_by": "/root", "versions": listed.collect::<Vec<_>>(),
    }]})
}

fn version(id: usize, is_transitional: bool) -> Value {
    json!({
        "id": id.to_string(), "name": "/root", "type": "certificate", "version_created_at": "",
        "transitional": is_transitional,
        "value": {"certificate": format!("-----BEGIN CERTIFICATE-----\n{id}\n-----END CERTIFICATE-----")},
    })
}

fn rotate(stub: &Stub, pace: &str) -> Commanded {
    let shell: Shell = stub.shell().variable("KEYWRIGHT_CLIENT_RETRIES", "0");
    shell.run(&["certificates", "rotate", "/root", pace])
}

/// Returns the number of requests for `introduce`, the first step of a rotation.
fn introduce_requests(stub: &Stub) -> usize {
    let lines = stub.lines();
    lines.iter().filter(|line| *line == INTRODUCE).count()
}

#[test]
fn a_step_without_a_response_succeeds_if_the_state_changed() {
    for status in [None, Some(503), Some(500), Some(400)] {
        let stub = server(Step {
            is_done: true,
            status,
        });
        let run = rotate(&stub, "--next");
        let words = "but the server completed the step";
        assert!(run.errors.contains(words), "{status:?}: {run:?}");
        let reported = json_of(run);
        assert_eq!(reported["steps_taken"], json!(["introduce"]));
        assert_eq!(reported["stage"], "introduced");
        assert_eq!(introduce_requests(&stub), 1);

        let stub = server(Step {
            is_done: true,
            status,
        });
        let reported = json_of(rotate(&stub, "--yes"));
        assert_eq!(
            reported["steps_taken"],
            json!(["introduce", "switch", "retire"])
        );
        assert_eq!(introduce_requests(&stub), 1);
    }
}

#[test]
fn a_step_without_effect_fails_with_the_status_of_its_request() {
    for (status, exit) in [(None, 6), (Some(503), 6), (Some(400), 1), (Some(403), 5)] {
        let stub = server(Step {
            is_done: false,
            status,
        });
        let run = rotate(&stub, "--yes").expect(exit);
        assert_eq!(run.output, "");
        assert_eq!(introduce_requests(&stub), 1, "{status:?}");
    }
}

#[test]
fn a_successful_response_without_effect_is_an_error() {
    for pace in ["--yes", "--next"] {
        let stub = server(Step {
            is_done: false,
            status: Some(200),
        });
        let run = rotate(&stub, pace).expect(1);
        let words = "step 1 of 4 succeeded, but the rotation is in another state";
        run.errors.assert_contains(words);
        assert_eq!(introduce_requests(&stub), 1);
    }
}

const INTRODUCE: &str = "POST /api/v1/certificates/id/regenerate";
