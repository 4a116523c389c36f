//! A misbehaving generator or resolver only fails its own request, with an error that names the plugin and the failure.

use keywright_harness::{Options, Response, Scrape, Server, Text, component};
use reqwest::Method;
use serde_json::{Value, json};

/// Starts a server whose generator `hostile` misbehaves in this way in a function. Endless behaviors have a deadline of one
/// second, others the longest deadline.
async fn server(function: &str, behaviour: &str) -> Server {
    Server::start_with(&misbehaving(function, behaviour)).await
}

fn misbehaving(function: &str, behaviour: &str) -> Options {
    let deadline_ms = if behaviour == "loop" { 1_000 } else { LONG_MS };
    options(deadline_ms, &format!("{function} = \"{behaviour}\""))
}

fn options(deadline_ms: u32, settings: &str) -> Options {
    Options::default().hostile(
        &format!("deadline_ms = {deadline_ms}, memory_bytes_max = 16777216"),
        settings,
    )
}

/// The longest deadline, longer than a test takes.
const LONG_MS: u32 = 600_000;

/// Text from guests that must not appear anywhere.
const GUEST_DATA: &str = "hunter2";

#[track_caller]
fn assert_faulted(server: &Server, response: &Response, fault: &str, behaviour: &str) {
    let status = if fault == OUTPUT_TOO_LARGE { 413 } else { 500 };
    assert_eq!(response.status, status, "{behaviour}: {}", response.body);
    let actual = response.error();
    assert_eq!(actual, format!("the plugin hostile {fault}"), "{behaviour}");
    assert!(!response.body.contains(GUEST_DATA), "{behaviour}");
    assert!(!server.log().contains(GUEST_DATA), "{behaviour}");
    let log = server.log();
    let mut lines = log.lines();
    assert!(
        !lines.any(|line| line.contains(is_control_or_invisible)),
        "{behaviour}"
    );
}

/// Returns whether a character is a control character, or one of the invisible characters in the guest's texts.
fn is_control_or_invisible(character: char) -> bool {
    character.is_control() || matches!(character, '\u{200b}' | '\u{202e}')
}

const TRAPPED: &str = "trapped";
const MALFORMED: &str = "returned output that does not have the declared form";
const OUTPUT_TOO_LARGE: &str =
    "returned more output than its limit of 131072 bytes (output_bytes_max)";
const REPORTED: &str = "reported an internal error; the server's log has its message";
const MISCONFIGURED: &str =
    "reported that its settings are invalid; the server's log has its message";
const DEADLINE_EXCEEDED: &str = "exceeded its deadline of 1000 ms (deadline_ms)";
const MEMORY_EXCEEDED: &str = "exceeded its memory limit of 16777216 bytes (memory_bytes_max)";

#[tokio::test]
async fn every_misbehavior_has_its_own_error_and_is_counted() {
    let server = Server::start_with(&options(LONG_MS, "").watched()).await;
    for (behaviour, fault, outcome) in [
        ("loop", DEADLINE_EXCEEDED, "timed_out"),
        ("allocate", MEMORY_EXCEEDED, "memory_exceeded"),
        ("recurse", "overflowed its stack", "stack_exhausted"),
        ("trap", TRAPPED, "trapped"),
        ("panic", TRAPPED, "trapped"),
        ("much-random", TRAPPED, "trapped"),
        ("large-output", OUTPUT_TOO_LARGE, "output_too_large"),
        ("claimed-output", MALFORMED, "output_malformed"),
        ("not-utf-8", MALFORMED, "output_malformed"),
        ("not-json", MALFORMED, "output_malformed"),
        ("wrong-shape", MALFORMED, "output_malformed"),
        ("unknown-member", MALFORMED, "output_malformed"),
        ("member-twice", MALFORMED, "output_malformed"),
        ("misconfigured", MISCONFIGURED, "misconfigured"),
        ("other", REPORTED, "reported"),
    ] {
        let misbehaving = misbehaving("generate", behaviour).watched();
        server.reload_plugins(&misbehaving).await;
        let before = calls(&server, "generate", outcome).await;
        let timed_before = timed_calls(&server).await;
        for _ in 0..2 {
            let response = server.generate("/a", "hostile", json!({})).await;
            assert_faulted(&server, &response, fault, behaviour);
        }
        let counted = calls(&server, "generate", outcome).await - before;
        assert!((counted - 2.0).abs() < 0.5, "{behaviour}: {counted}");
        let timed = timed_calls(&server).await - timed_before;
        assert!((timed - 2.0).abs() < 0.5, "{behaviour}: {timed}");
        assert!(server.versions("/a").await.is_empty(), "{behaviour}");
        server.generated("/b", "password", json!({})).await;
    }
}

/// Returns the number of calls of a function with this outcome.
async fn calls(server: &Server, function: &str, outcome: &str) -> f64 {
    let labels = [
        ("plugin", "hostile"),
        ("function", function),
        ("outcome", outcome),
    ];
    let scrape = server.scrape().await;
    scrape
        .sum("keywright_plugin_calls_total", &labels)
        .unwrap_or_default()
}

/// Returns the number of calls of `generate` whose duration was recorded.
async fn timed_calls(server: &Server) -> f64 {
    let labels = [("plugin", "hostile"), ("function", "generate")];
    let scrape = server.scrape().await;
    scrape
        .sum("keywright_plugin_call_duration_seconds_count", &labels)
        .unwrap_or_default()
}

#[tokio::test]
async fn misbehavior_is_contained_in_every_function() {
    let server = Server::start_with(&options(LONG_MS, "")).await;
    for function in ["normalize", "accept", "recover"] {
        for (behaviour, fault) in [
            ("panic", TRAPPED),
            ("not-json", MALFORMED),
            ("large-output", OUTPUT_TOO_LARGE),
            ("other", REPORTED),
        ] {
            server
                .reload_plugins(&misbehaving(function, behaviour))
                .await;
            let what = format!("{function}: {behaviour}");
            let name = format!("/{behaviour}");
            let response = match function {
                "normalize" => server.generate("/a", "hostile", json!({})).await,
                "accept" => server.set("/a", "hostile", json!({"secret": "s"})).await,
                _ => {
                    server.generated(&name, "hostile", json!({})).await;
                    server.regenerate(&name).await
                }
            };
            assert_faulted(&server, &response, fault, &what);
            server.generated("/b", "password", json!({})).await;
        }
    }
}

#[tokio::test]
async fn guest_errors_are_truncated_printable_and_counted() {
    let server = Server::start_with(&options(LONG_MS, "").watched()).await;
    for (function, behaviour) in [
        ("normalize", "refuse-parameters"),
        ("generate", "refuse-parameters"),
        ("accept", "refuse-value"),
        ("generate", "refuse-value"),
    ] {
        let misbehaving = misbehaving(function, behaviour).watched();
        server.reload_plugins(&misbehaving).await;
        let before = calls(&server, function, "refused").await;
        let response = if function == "accept" {
            server.set("/a", "hostile", json!({"secret": "s"})).await
        } else {
            server.generate("/a", "hostile", json!({})).await
        };
        let error = response.expect(400).error();
        error.assert_contains("length");
        error.assert_contains("noxxx");
        assert!(
            error.len() < 2_048 && !error.contains(is_control_or_invisible),
            "{error}"
        );
        let counted = calls(&server, function, "refused").await - before;
        assert!((counted - 1.0).abs() < 0.5, "{function}: {counted}");
    }
}

#[tokio::test]
async fn other_requests_succeed_while_guests_loop_and_trap() {
    let options = options(LONG_MS, r#"generate = "loop", accept = "trap""#)
        .environment("KEYWRIGHT_PLUGINS__THREADS_PER_LANE", "4")
        .watched();
    let server = Server::start_with(&options).await;
    let looping = ["/a", "/b"].map(|name| {
        let body = json!({"name": name, "type": "hostile", "parameters": {}});
        let request = server.authorized(Method::POST, "/api/v1/data");
        tokio::spawn(request.body(body.to_string()).send())
    });
    let are_busy = |scrape: &Scrape| {
        let generate = [("lane", "generate")];
        scrape.sum("keywright_plugin_lane_threads_busy", &generate) == Some(2.0)
    };
    server.scrape_until(are_busy).await;
    for _ in 0..3 {
        let trapped = server.set("/c", "hostile", json!({"secret": "s"})).await;
        assert_faulted(&server, &trapped, TRAPPED, "trap");
        server.stored("/text", "value", json!("v")).await;
        server.get("/api/v1/data?name=/text").await.expect(200);
        let value = json!({"password": "p"});
        server.stored("/user", "user", value).await;
    }
    assert!(are_busy(&server.scrape().await));
    assert!(looping.iter().all(|request| !request.is_finished()));
}

#[tokio::test]
async fn no_state_carries_over_between_calls() {
    let server = server("generate", "count-calls").await;
    for _ in 0..5 {
        let response = server
            .generate_in_mode("overwrite", "/a", "hostile", json!({}))
            .await;
        assert_eq!(response.expect(200).json()["value"]["note"], "1");
    }
}

/// The acceptor returns each value unchanged, so an invalid field is the caller's.
#[tokio::test]
async fn invalid_field_that_an_acceptor_keeps_is_refused() {
    let server = server("generate", "trap").await;
    for (value, error) in [
        (json!({"secret": 7}), "secret must be a string"),
        (json!({}), "secret is required"),
    ] {
        let mut value = value;
        value["note"] = json!(GUEST_DATA);
        let refused = server.set("/a", "hostile", value).await.expect(400);
        assert!(refused.error().contains(error), "{}", refused.body);
        assert!(!server.log().contains(GUEST_DATA));
    }
    assert!(server.versions("/a").await.is_empty());
}

/// Starts a server whose resolver misbehaves in this way. Endless behaviors have a deadline of one second, others the longest
/// deadline.
async fn server_with_resolver(behaviour: &str) -> Server {
    Server::start_with(&misbehaving_resolver(behaviour)).await
}

fn misbehaving_resolver(behaviour: &str) -> Options {
    let deadline_ms = if behaviour == "loop" { 1_000 } else { LONG_MS };
    let section = format!(
        "[resolver]\ncomponent = \"{}\"\ngrants = [\"random\", \"signing\"]\n\
         limits = {{ deadline_ms = {deadline_ms} }}\nsettings = {{ find-references = \"{behaviour}\" }}",
        component("hostile").display(),
    );
    Options::default().without_resolver().extra(&section)
}

#[tokio::test]
async fn every_misbehavior_of_a_resolver_has_its_own_error() {
    let memory_exceeded = MEMORY_EXCEEDED.replace("16777216", "67108864");
    let server = server_with_resolver("other").await;
    for (behaviour, fault) in [
        ("loop", DEADLINE_EXCEEDED),
        ("allocate", &memory_exceeded),
        ("panic", TRAPPED),
        ("twice", MALFORMED),
        ("within", MALFORMED),
        ("misconfigured", MISCONFIGURED),
        ("other", REPORTED),
    ] {
        server
            .reload_plugins(&misbehaving_resolver(behaviour))
            .await;
        for name in ["x", "y"] {
            let value = json!({"secret": "hunter2"});
            server.stored(name, "json", value).await;
        }
        let document = json!({"a": {"b": "hunter2"}});
        let response = server.post("/api/v1/interpolate", document).await;
        assert_eq!(response.status, 500, "{behaviour}: {}", response.body);
        let error = response.error();
        assert_eq!(error, format!("the plugin resolver {fault}"), "{behaviour}");
        assert!(!response.body.contains("hunter2") && !server.log().contains("hunter2"));
        server.get("/api/v1/data?name=/x").await.expect(200);
    }
}

/// Starts a server whose resolver returns the references that a document lists, and interpolates a document with these.
async fn server_with_listed_references() -> (Server, impl AsyncFn(&Server, Value) -> Response) {
    let server = server_with_resolver("listed").await;
    let user = json!({"username": "u", "password": GUEST_DATA});
    server.stored("/user", "user", user).await;
    let value = json!({"field": {"inner": "i"}});
    server.stored("/json", "json", value).await;
    let interpolate = async |server: &Server, references: Value| {
        let document = json!({"references": references, "text": "aä-", "number": 123});
        server.post("/api/v1/interpolate", document).await
    };
    (server, interpolate)
}

#[tokio::test]
async fn malformed_pointers_and_ranges_are_plugin_faults() {
    let (server, interpolate) = server_with_listed_references().await;
    let at = |pointer: &str, range: Value| json!([pointer, range, "/user", ["password"], true]);
    let outside = [
        "/nowhere",
        "/text/b",
        "/references/-",
        "/references/1",
        "/references/00",
        "/references/a",
        "a",
        "/~",
        "/~2",
        "/Text",
    ];
    let outside = outside.map(|pointer| json!([at(pointer, json!(null))]));
    let ranges = [
        json!([at("/text", json!([0, 5]))]),
        json!([at("/text", json!([4, 5]))]),
        json!([at("/text", json!([0, u32::MAX]))]),
        json!([at("/text", json!([1, 2]))]),
        json!([at("/text", json!([2, 3]))]),
        json!([at("/text", json!([1, 1]))]),
        json!([at("/text", json!([1, 0]))]),
        json!([at("/text", json!([0, 1])), at("/text", json!([0, 1]))]),
        json!([at("/text", json!([0, 3])), at("/text", json!([1, 4]))]),
        json!([at("/text", json!([3, 4])), at("/text", json!([0, 1]))]),
        json!([at("/text", json!([0, 1])), at("/text", json!(null))]),
        json!([at("/text", json!(null)), at("/text", json!([0, 1]))]),
        json!([at("/text", json!([0, 1])), at("/text/0", json!([0, 1]))]),
        json!([at("/number", json!([0, 1]))]),
        json!([at("/references", json!([0, 1]))]),
        json!([at("/nowhere", json!([0, 1]))]),
    ];
    for references in ranges.into_iter().chain(outside) {
        let response = interpolate(&server, references.clone()).await;
        assert_eq!(response.status, 500, "{references}: {}", response.body);
        let fault = format!("the plugin resolver {MALFORMED}");
        assert_eq!(response.error(), fault, "{references}");
        assert!(!server.log().contains(GUEST_DATA), "{references}");
    }
}

#[tokio::test]
async fn references_of_a_resolver_are_checked_one_by_one() {
    let (server, interpolate) = server_with_listed_references().await;
    let ranges = json!([
        ["/text", [0, 1], "/user", ["username"], true],
        ["/text", [1, 3], "json", ["field", "inner"], false],
        ["/number", null, "/json", ["field"], false],
    ]);
    let resolved = interpolate(&server, ranges).await.expect(200).json();
    assert_eq!(resolved["text"], "ui-");
    assert_eq!(resolved["number"], json!({"inner": "i"}));
    let nine_fields = json!(vec!["field"; 9]).to_string();
    for line in r#"
        [0,1]|"/user",["username"],false|400|/user is not of type json
        null|"/user",[],false|400|/user is not of type json
        null|"/absent",[],true|404|the referenced credential /absent does not exist
        null|"/user",["no\n"],true|400|/user has no field no
        [0,1]|"/json",["field"],false|400|/json can't be inserted
        null|"/json",NINE,true|400|more than 8 fields
    "#
    .trim()
    .lines()
    {
        let cells: Vec<_> = line.trim().split('|').collect();
        let [range, reference, status, error] = cells[..] else {
            panic!("{line}");
        };
        let reference = format!(r#"["/text",{range},{reference}]"#).replace("NINE", &nine_fields);
        let reference: Value = serde_json::from_str(&reference).unwrap();
        let first = json!(["/number", null, "/user", ["password"], true]);
        let response = interpolate(&server, json!([first, reference])).await;
        let actual = response.status.to_string();
        assert_eq!(actual, status, "{reference}: {}", response.body);
        let found = response.error();
        assert!(found.contains(error), "{reference}: {found}");
        assert!(!found.contains(char::is_control), "{found}");
        found.assert_lacks(GUEST_DATA);
        assert!(!server.log().contains(GUEST_DATA), "{reference}");
    }
}

#[tokio::test]
async fn any_value_in_the_document_can_be_replaced() {
    let server = server_with_resolver("other").await;
    for (pointer, expected) in [
        ("/a/b", json!({"a": {"b": "filled"}, "list": [1, 2]})),
        ("/list/1", json!({"a": {"b": 1}, "list": [1, "filled"]})),
        ("/a", json!({"a": "filled", "list": [1, 2]})),
        ("", json!("filled")),
    ] {
        let resolver = misbehaving_resolver(&format!("at:{pointer}"));
        server.reload_plugins(&resolver).await;
        let value = json!({"secret": "s"});
        server.stored("/x", "json", value.clone()).await;
        let document = json!({"a": {"b": 1}, "list": [1, 2]});
        let response = server.post("/api/v1/interpolate", document).await;
        let expected = expected
            .to_string()
            .replace("\"filled\"", &value.to_string());
        assert_eq!(response.expect(200).body, expected, "{pointer}");
    }
}

#[tokio::test]
async fn too_many_or_too_long_references_are_400() {
    let server = server_with_resolver("other").await;
    for behaviour in ["many-references", "amplify", "long-name", "long-field"] {
        server
            .reload_plugins(&misbehaving_resolver(behaviour))
            .await;
        let response = server.post("/api/v1/interpolate", json!({})).await;
        response.expect_error(400, "references");
    }
}

#[tokio::test]
async fn rejected_document_is_400_with_a_printable_message() {
    let server = server_with_resolver("refuse-document").await;
    let body = json!({});
    let error = server.post("/api/v1/interpolate", body).await;
    let error = error.expect(400).error();
    error.assert_contains("noxxx");
    assert!(
        error.len() < 2_048 && !error.contains(is_control_or_invisible),
        "{error}"
    );
}
