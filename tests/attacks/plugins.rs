//! Hostile guests: schemas, resolvers, traps, and callers that occupy the plugin lanes.

use std::{fmt::Write as _, fs, path::Path, thread, time::Duration};

use keywright_harness::{Caller, Options, Response, Server, Text, component, workspace};
use reqwest::Method;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// Returns a schema of `length` definitions, each of which refers to the previous one this many times.
fn doubling(length: usize, references: usize) -> Value {
    let mut definitions = Map::new();
    definitions.insert("d0".to_owned(), json!({"type": "object"}));
    for number in 1..length {
        let before = json!({"$ref": format!("#/$defs/d{}", number - 1)});
        definitions.insert(
            format!("d{number}"),
            json!({"allOf": vec![before; references]}),
        );
    }
    let last = format!("#/$defs/d{}", length - 1);
    json!({"type": "object", "$defs": definitions, "allOf": [{"$ref": last}]})
}

/// Returns invalid schemas, each with its error.
fn hostile_schemas() -> Vec<(String, &'static str)> {
    let nested = |levels: usize| {
        let (open, close) = (r#"{"not":"#.repeat(levels), "}".repeat(levels));
        format!(r#"{open}{{"type":"object"}}{close}"#)
    };
    let recursive = json!({"type": "object", "allOf": [
        {"properties": {"a": {"$ref": "#"}}},
        {"properties": {"a": {"$ref": "#"}}},
    ]});
    let patterns = vec![json!({"pattern": "^a*$"}); 1_025];
    vec![
        (doubling(60, 2).to_string(), "levels deep"),
        (doubling(15, 2).to_string(), "has more than 8192 parts"),
        (doubling(4, 100).to_string(), "has more than 8192 parts"),
        (recursive.to_string(), "is recursive"),
        (nested(65), "levels deep"),
        (nested(100), "levels deep"),
        (nested(5_000), "is not JSON"),
        (
            json!({"type": "object", "anyOf": patterns}).to_string(),
            "has patterns of more than 1048576 bytes",
        ),
        (
            json!({"type": "object", "propertyNames": {"pattern": "(\\w{100}){100}"}}).to_string(),
            "is not a JSON Schema",
        ),
        (
            json!({"type": "object", "propertyNames": {"pattern": "^(a+)+\\1$"}}).to_string(),
            "is not a JSON Schema",
        ),
        (
            json!({"type": "object", "title": "a".repeat(65_536)}).to_string(),
            "is longer than 65536 bytes",
        ),
        (
            json!({"type": "object", "$ref": "http://127.0.0.1:1/s.json"}).to_string(),
            "has an unsupported reference",
        ),
        (
            json!({"type": "object", "$dynamicRef": "#a"}).to_string(),
            "has an unsupported reference",
        ),
    ]
}

/// Returns a generator of type `hostile` that describes itself with this parameter schema, and generates `null`.
fn described_by(parameters_schema: &str) -> Vec<u8> {
    const RECORD: usize = 1_024;
    let texts = ["hostile", "1", "Hostile.", parameters_schema, "{}"];
    let (mut record, mut data) = (Vec::new(), Vec::new());
    for text in texts {
        let address = u32::try_from(RECORD + 1_024 + data.len()).unwrap();
        let length = u32::try_from(text.len()).unwrap();
        record.extend(address.to_le_bytes());
        record.extend(length.to_le_bytes());
        data.extend(text.bytes());
    }
    // The record has neither an issuer parameter nor random bits.
    record.extend([0; 20]);
    let bytes = |bytes: &[u8]| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "\\{byte:02x}").unwrap();
            text
        })
    };
    let text = format!(
        r#"(module
            (memory (export "memory") 16)
            (global $free (mut i32) (i32.const 524288))
            (data (i32.const {RECORD}) "{}")
            (data (i32.const {}) "{}")
            (data (i32.const 512) "null")
            (data (i32.const 520) "\00\00\00\00\00\02\00\00\04\00\00\00")
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                global.get $free
                (global.set $free (i32.and (i32.add (i32.add (global.get $free) (local.get 3)) (i32.const 7)) (i32.const -8))))
            (func (export "keywright:generator/descriptor@0.2.0#describe") (result i32)
                i32.const {RECORD})
            (func (export "keywright:generator/generator@0.2.0#generate")
                (param i32 i32 i32 i32 i64) (result i32)
                i32.const 520))"#,
        bytes(&record),
        RECORD + 1_024,
        bytes(&data),
    );
    let mut resolve = Resolve::default();
    for file in [
        "deps/wasi-random/random.wit",
        "signing/signing.wit",
        "generator/generator.wit",
    ] {
        let wit = fs::read_to_string(workspace().join("wit").join(file)).unwrap();
        resolve.push_str(file, &wit).unwrap();
    }
    let world = "package test:test;\nworld w {
        export keywright:generator/descriptor@0.2.0;
        export keywright:generator/generator@0.2.0;
    }";
    let package = resolve.push_str("test.wit", world).unwrap();
    let world = resolve.select_world(&[package], None).unwrap();
    let mut module = wat::parse_str(text).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    let mut encoder = ComponentEncoder::default();
    let encoder = encoder.module(&module).unwrap().validate(true);
    encoder.encode().unwrap()
}

fn options_with(component: &Path) -> Options {
    let section = format!("component = \"{}\"\nderived = true", component.display());
    Options::default()
        .generator("hostile", &section)
        .environment("KEYWRIGHT_PLUGINS__COMPILE_SECONDS_MAX", "2")
}

#[tokio::test]
async fn components_that_are_too_complex_are_rejected_on_load() {
    let folder = tempfile::tempdir().unwrap();
    let component = folder.path().join("hostile.wasm");
    fs::write(&component, described_by(r#"{"type":"object"}"#)).unwrap();
    let server = Server::start_with(&options_with(&component)).await;
    server.generated("/a", "hostile", json!({})).await;
    let schemas = hostile_schemas().into_iter();
    let schemas = schemas.map(|(schema, reason)| (described_by(&schema), reason));
    for (bytes, reason) in schemas.chain(hostile_components()) {
        fs::write(&component, bytes).unwrap();
        let reloaded = server.reload_plugins(&options_with(&component)).await;
        reloaded.assert_contains("could not reload");
        let log = server.log();
        let refusal = log.lines().rev().find(|line| line.contains("is refused"));
        assert!(refusal.unwrap().contains(reason), "{reason}: {refusal:?}");
        server.get("/health").await.expect(200);
        server.generated("/a", "hostile", json!({})).await;
    }
}

/// Returns a generator that contains another module with these fields.
fn with_module(fields: &str) -> Vec<u8> {
    let module = wat::parse_str(format!("(module {fields})")).unwrap();
    let length = u32::try_from(module.len()).unwrap();
    // In LEB128.
    let length: Vec<_> = (0..5)
        .map(|part| {
            (length >> (7 * part)).to_le_bytes()[0] & 0x7f | if part < 4 { 0x80 } else { 0 }
        })
        .collect();
    [
        described_by(r#"{"type":"object"}"#),
        vec![1],
        length,
        module,
    ]
    .concat()
}

/// Returns components that would abort the server, or take too much time, memory or stack to compile, each with its error.
fn hostile_components() -> Vec<(Vec<u8>, &'static str)> {
    let component = |fields: &str| wat::parse_str(format!("(component {fields})")).unwrap();
    // A few hundred kilobytes of code, for which the compiler would need gigabytes of memory or minutes.
    let choices = "(drop (if (result i32) (local.get 0) (then i32.const 1) (else i32.const 2)))";
    let choices = format!("(func (param i32) {})", choices.repeat(20_000));
    let calls = "(call_indirect (local.get 0))".repeat(150_000);
    let calls = format!("(table 1 funcref) (func (param i32) {calls})");
    // A section of 9,003 bytes with a component type in a component type, and so on. The text format can't express it.
    let types = [[0x41, 1, 1].repeat(3_000), vec![0x41, 0]].concat();
    let deep = [component(""), vec![7, 0xab, 0x46, 1], types].concat();
    let cast =
        "(type $t (sub (func))) (func (param funcref) (drop (ref.cast (ref $t) (local.get 0))))";
    vec![
        (with_module(cast), "gc proposal"),
        (with_module(&choices), "the compiler ended (signal: 6"),
        (
            with_module(&calls),
            "it takes more than 2 s of processor time to compile",
        ),
        (deep, "nesting is too deep"),
    ]
}

/// The maximum number of consecutive faults.
const FAULTS_MAX: usize = 5;

/// Starts a server whose resolver and generator `hostile` behave as each request specifies.
async fn server() -> Server {
    let hostile = component("hostile");
    let section = |function: &str| {
        format!(
            "component = \"{}\"\ngrants = [\"random\", \"signing\"]\nderived = true\n\
             limits = {{ deadline_ms = 1000 }}\nsettings = {{ {function} = \"as-configured\" }}",
            hostile.display(),
        )
    };
    let resolver = format!("[resolver]\n{}", section("find-references"));
    let options = Options::default()
        .without_resolver()
        .extra(&resolver.replace("derived = true\n", ""))
        .generator("hostile", &section("generate"))
        .environment("KEYWRIGHT_PLUGINS__FAULTS_MAX", &FAULTS_MAX.to_string())
        .environment("KEYWRIGHT_PLUGINS__DISABLED_SECONDS", "3600");
    Server::start_with(&options).await
}

/// Sends a document that makes the resolver fail in this way, and asserts the status.
async fn interpolate(caller: &Caller, behaviour: &str, status: u16) {
    let document = json!({"behave": behaviour});
    let response = caller.post("/api/v1/interpolate", document).await;
    let response = response.expect(status);
    if status == 503 {
        let seconds: u32 = response.header("retry-after").unwrap().parse().unwrap();
        assert!((3_000..=3_600).contains(&seconds), "{seconds}");
    }
}

#[tokio::test]
async fn trapping_documents_open_only_the_circuit_of_the_sender() {
    let server = server().await;
    let attacker = server.as_client("attacker").await;
    let other = server.as_client("other").await;
    let behaviours = ["trap", "panic", "recurse", "allocate", "loop"];
    for behaviour in behaviours {
        interpolate(&attacker, behaviour, 500).await;
    }
    for _ in 0..20 {
        interpolate(&attacker, "trap", 503).await;
        interpolate(&other, "", 200).await;
    }
    for name in ["a", "b", "c", "d", "e"] {
        let colluding = server.as_client(name).await;
        interpolate(&colluding, "trap", 500).await;
    }
    let newcomer = server.as_client("newcomer").await;
    interpolate(&newcomer, "", 200).await;
    server.get("/api/v1/data?path=/").await.expect(200);
}

#[tokio::test]
async fn too_deep_or_overlapping_references_fail_their_request() {
    let server = server().await;
    let caller = server.as_client("caller").await;
    server.stored("/x", "json", json!({})).await;
    server.grant("/x", caller.actor(), &["read"]).await;
    for (behaviour, status) in [
        ("deep-pointer", 400),
        ("deep-pointers", 500),
        ("overlapping-pointers", 500),
        ("deep-pointer", 400),
    ] {
        interpolate(&caller, behaviour, status).await;
        server.get("/health").await.expect(200);
    }
    // Invalid results of a plugin do not count as faults.
    for _ in 0..FAULTS_MAX {
        interpolate(&caller, "overlapping-pointers", 500).await;
    }
    interpolate(&caller, "", 200).await;
}

/// Returns documents of nearly the largest allowed size that take the most memory when they are parsed.
fn large_documents() -> Vec<String> {
    const BYTES: usize = 1024 * 1024 - 64;
    let list = |item: &str| {
        let items = vec![item; BYTES / (item.len() + 1)].join(",");
        format!(r#"{{"a":[{items}]}}"#)
    };
    let items = [
        "0",
        r#""""#,
        "[]",
        "[0]",
        "[[[0]]]",
        r#"{"":0}"#,
        r#"{"credentials":0}"#,
        r#"{"credentials":[0]}"#,
        r#"{"credentials":{"":[0]}}"#,
    ];
    let mut documents: Vec<String> = items.map(list).into();
    for part in ["((", "((a", "((a.", "))"] {
        let text = part.repeat(BYTES / part.len());
        documents.push(format!(r#"{{"a":["{text}"]}}"#));
    }
    let keys: Vec<String> = (0..BYTES / 12)
        .map(|key| format!("\"{key:05}\":[0]"))
        .collect();
    documents.push(format!("{{{}}}", keys.join(",")));
    documents
}

#[tokio::test]
async fn no_document_exhausts_the_shipped_resolver() {
    for setting in [false, true] {
        let section = format!(
            "[resolver]\ncomponent = \"{}\"\nsettings = {{ references_in_strings = {setting} }}\n\
             limits = {{ input_bytes_max = 1114112 }}",
            component("interpolation").display()
        );
        let options = Options::default().without_resolver().extra(&section);
        let server = Server::start_with(&options).await;
        let attacker = server.as_client("attacker").await;
        for document in large_documents() {
            let request = attacker.request(Method::POST, "/api/v1/interpolate");
            let response = server.send(request.body(document.clone())).await;
            let beginning = &document[..32];
            assert_eq!(
                response.status,
                200,
                "{beginning} {setting} {}",
                response.error()
            );
            assert!(response.body == document, "{beginning}");
        }
    }
}

/// Returns a client that may write and read below `/attacker`.
async fn attacker(server: &Server, client: &str) -> Caller {
    let attacker = server.as_client(client).await;
    server
        .grant("/attacker/*", attacker.actor(), &["write", "read"])
        .await;
    attacker
}

/// The maximum number of waiting calls per actor.
const WAITING_PER_ACTOR_MAX: usize = 24;
/// The number of calls sent.
const STORM: usize = 64;

/// Starts calls, each of which occupies a thread until its deadline.
fn storm(caller: &Caller, from: &str, calls: usize) -> JoinSet<Response> {
    let mut storm = JoinSet::new();
    for number in 0..calls {
        let (caller, name) = (caller.clone(), format!("{from}/{number}"));
        storm.spawn(async move {
            let body = json!({"name": name, "type": "hostile", "parameters": {"behave": "loop"}});
            caller.post("/api/v1/data", body).await
        });
    }
    storm
}

#[tokio::test]
async fn two_actors_do_not_occupy_all_threads() {
    for (threads, clients) in [("2", &["attacker"][..]), ("3", &["attacker", "other"])] {
        let options = Options::default()
            .hostile("deadline_ms = 20000", "generate = \"as-configured\"")
            .environment("KEYWRIGHT_PLUGINS__THREADS_PER_LANE", threads)
            .watched();
        let server = Server::start_with(&options).await;
        let mut storms = Vec::new();
        for (client, busy) in clients.iter().zip([1.0, 2.0]) {
            let attacker = attacker(&server, client).await;
            // All callers share a connection, which must have a stream left for the other requests.
            let from = format!("/attacker/{client}");
            storms.push(storm(&attacker, &from, STORM / clients.len()));
            server
                .scrape_until(|scrape| {
                    let generate = [("lane", "generate")];
                    scrape.sum("keywright_plugin_lane_threads_busy", &generate) >= Some(busy)
                })
                .await;
        }
        for number in 0..20 {
            let name = format!("/mine/{number}");
            server.generated(&name, "password", json!({})).await;
        }
        for mut storm in storms {
            let ended = storm.try_join_next();
            assert!(ended.is_none(), "{threads} threads: {ended:?}");
        }
    }
}

#[tokio::test]
async fn calls_do_not_use_up_the_deadlines_of_others() {
    let calls = 4 * thread::available_parallelism().unwrap().get();
    let deadline = Duration::from_millis(200);
    let limits = format!("deadline_ms = {}", deadline.as_millis());
    let threads = (calls + 2).to_string();
    let options = Options::default()
        .hostile(&limits, "generate = \"as-configured\"")
        .environment("KEYWRIGHT_PLUGINS__THREADS_PER_LANE", &threads)
        .environment("KEYWRIGHT_PLUGINS__FAULTS_MAX", "1000000");
    let server = Server::start_with(&options).await;
    let attacker = attacker(&server, "attacker").await;
    let before = server.processor_time();
    for response in storm(&attacker, "/attacker", calls).join_all().await {
        response.expect(500);
    }
    let used = server.processor_time().saturating_sub(before);
    let expected = deadline * u32::try_from(calls).unwrap();
    assert!(used >= expected, "{used:?} of {expected:?}");
}

#[tokio::test]
async fn many_calls_of_one_actor_delay_others_only_briefly() {
    let options = Options::default()
        .hostile("deadline_ms = 500", "generate = \"as-configured\"")
        .environment("KEYWRIGHT_PLUGINS__THREADS_PER_LANE", "1")
        .environment("KEYWRIGHT_PLUGINS__QUEUE_LENGTH", "32")
        .environment(
            "KEYWRIGHT_PLUGINS__QUEUE_LENGTH_PER_ACTOR_MAX",
            &WAITING_PER_ACTOR_MAX.to_string(),
        )
        .environment("KEYWRIGHT_PLUGINS__FAULTS_MAX", "1000000");
    let server = Server::start_with(&options).await;
    let attacker = attacker(&server, "attacker").await;

    let mut storm = storm(&attacker, "/attacker", STORM);
    let mut refused = 0;
    while refused < STORM - WAITING_PER_ACTOR_MAX - 2 {
        let response = storm.join_next().await.unwrap().unwrap();
        if response.status == 500 {
            continue;
        }
        let response = response.expect(429);
        assert!(response.header("retry-after").is_some());
        refused += 1;
    }
    for number in 0..3 {
        let name = format!("/mine/{number}");
        let parameters = json!({});
        let response = server.generate(&name, "password", parameters).await;
        let response = response.expect(200);
        while storm.try_join_next().is_some() {}
        assert!(storm.len() > 5, "too few calls are left");
        let completed = server.completed_meanwhile(&response, attacker.actor());
        assert!(
            completed <= 5,
            "{completed} calls of another actor completed first"
        );
    }
    // Aborted calls release their slots in the queue.
    storm.abort_all();
    while storm.join_next().await.is_some() {}
    tokio::time::sleep(Duration::from_millis(10)).await;
    server.generated("/mine/after", "password", json!({})).await;
    server.get("/health").await.expect(200);
}
