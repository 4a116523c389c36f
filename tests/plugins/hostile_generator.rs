//! What a generator does wrong ends its own request, with an error that names the plugin and what happened.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use keywright_harness::{Answer, Options, Server, component};
use serde_json::json;

/// A server whose generator of type `hostile` does this in the place of a function.
async fn server(function: &str, behaviour: &str) -> Server {
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\", \"signing\"]\nderived = true\n\
         limits = {{ deadline_ms = 1000, memory_bytes_max = 16777216 }}\n\
         settings = {{ {function} = \"{behaviour}\" }}",
        component("hostile").display(),
    );
    Server::start_with(&Options::default().generator("hostile", &section)).await
}

/// What guests say that must reach nobody.
const GUEST_DATA: &str = "hunter2";

#[track_caller]
fn assert_faulted(server: &Server, answer: &Answer, fault: &str, behaviour: &str) {
    assert_eq!(answer.status, 500, "{behaviour}: {}", answer.body);
    assert_eq!(
        answer.error(),
        format!("the plugin hostile {fault}"),
        "{behaviour}"
    );
    assert!(!answer.body.contains(GUEST_DATA), "{behaviour}");
    assert!(!server.log().contains(GUEST_DATA), "{behaviour}");
}

const TRAPPED: &str = "trapped";
const MALFORMED: &str = "returned something of another shape than it declared";
const OUTPUT_TOO_LARGE: &str = "returned more than its output limit";
const REPORTED: &str = "reported a failure of its own";

#[tokio::test]
async fn each_misbehaviour_has_an_error_of_its_own_and_writes_nothing() {
    for (behaviour, fault) in [
        ("loop", "did not end within its deadline"),
        ("allocate", "asked for more memory than its limit"),
        ("recurse", "used up its stack"),
        ("trap", TRAPPED),
        ("panic", TRAPPED),
        ("much-random", TRAPPED),
        ("large-output", OUTPUT_TOO_LARGE),
        ("claimed-output", MALFORMED),
        ("not-utf-8", MALFORMED),
        ("not-json", MALFORMED),
        ("wrong-shape", MALFORMED),
        ("unknown-member", MALFORMED),
        ("misconfigured", "says that its settings are wrong"),
        ("other", REPORTED),
    ] {
        let server = server("generate", behaviour).await;
        for _ in 0..2 {
            let answer = server.generate("/a", "hostile", json!({})).await;
            assert_faulted(&server, &answer, fault, behaviour);
        }
        assert!(server.versions("/a").await.is_empty(), "{behaviour}");
        server
            .generate("/b", "password", json!({}))
            .await
            .expect(200);
    }
}

#[tokio::test]
async fn every_function_is_contained() {
    for function in ["normalize", "accept", "recover"] {
        for (behaviour, fault) in [
            ("panic", TRAPPED),
            ("not-json", MALFORMED),
            ("large-output", OUTPUT_TOO_LARGE),
            ("other", REPORTED),
        ] {
            let server = server(function, behaviour).await;
            let what = format!("{function}: {behaviour}");
            let answer = match function {
                "normalize" => server.generate("/a", "hostile", json!({})).await,
                "accept" => server.set("/a", "hostile", json!({"secret": "s"})).await,
                _ => {
                    server
                        .generate("/a", "hostile", json!({}))
                        .await
                        .expect(200);
                    server.regenerate("/a").await
                }
            };
            assert_faulted(&server, &answer, fault, &what);
            server
                .generate("/b", "password", json!({}))
                .await
                .expect(200);
        }
    }
}

#[tokio::test]
async fn what_a_guest_says_to_the_caller_is_short_and_printable() {
    for (function, behaviour) in [
        ("normalize", "refuse-parameters"),
        ("generate", "refuse-parameters"),
        ("accept", "refuse-value"),
        ("generate", "refuse-value"),
    ] {
        let server = server(function, behaviour).await;
        let answer = if function == "accept" {
            server.set("/a", "hostile", json!({"secret": "s"})).await
        } else {
            server.generate("/a", "hostile", json!({})).await
        };
        let error = answer.expect(400).error();
        assert!(
            error.contains("length") && error.contains("noxxx"),
            "{error}"
        );
        assert!(
            error.len() < 2_048 && !error.contains(char::is_control),
            "{error}"
        );
    }
}

#[tokio::test]
async fn other_requests_are_answered_while_guests_loop_and_trap() {
    let server = server("generate", "loop").await;
    server.set("/text", "value", json!("v")).await.expect(200);
    let has_ended = AtomicBool::new(false);
    let answered = AtomicUsize::new(0);
    let begun = Instant::now();
    let looping = async {
        let first = server.generate("/a", "hostile", json!({}));
        let second = server.generate("/b", "hostile", json!({}));
        let answers: (Answer, Answer) = tokio::join!(first, second);
        has_ended.store(true, Ordering::Relaxed);
        answers
    };
    let others = async {
        while !has_ended.load(Ordering::Relaxed) {
            server.get("/api/v1/data?name=/text").await.expect(200);
            server.set("/text", "value", json!("v")).await.expect(200);
            server
                .set("/user", "user", json!({"password": "p"}))
                .await
                .expect(200);
            answered.fetch_add(1, Ordering::Relaxed);
            // The runtime of a test has one thread: the other requests must get their turn.
            tokio::task::yield_now().await;
        }
    };
    let ((first, second), ()) = tokio::join!(looping, others);
    for answer in [first, second] {
        assert_faulted(&server, &answer, "did not end within its deadline", "loop");
    }
    assert!(
        begun.elapsed() >= Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    assert!(answered.into_inner() >= 3);
}

#[tokio::test]
async fn nothing_of_one_call_is_left_for_the_next() {
    let server = server("generate", "count-calls").await;
    for _ in 0..5 {
        let answer = server
            .generate_in_mode("overwrite", "/a", "hostile", json!({}))
            .await;
        assert_eq!(answer.expect(200).json()["value"]["note"], "1");
    }
}

#[tokio::test]
async fn a_member_that_a_guest_writes_twice_is_stored_once() {
    let server = server("generate", "member-twice").await;
    let answer = server
        .generate("/a", "hostile", json!({}))
        .await
        .expect(200);
    assert_eq!(
        answer.body.matches("\"secret\"").count(),
        1,
        "{}",
        answer.body
    );
    assert_eq!(
        server.versions("/a").await[0]["value"],
        answer.json()["value"]
    );
}
