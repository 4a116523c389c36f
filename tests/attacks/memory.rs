//! Readers that make the server hold large responses in memory.
//!
//! The numbers can be raised for a server with a memory limit:
//!
//! ```text
//! KEYWRIGHT_TEST_VERSIONS=1500 KEYWRIGHT_TEST_READERS=256 KEYWRIGHT_TEST_RESPONSES_MIB=256 \
//!     cargo test --workspace --test attacks -- memory::hostile_readers
//! ```

use std::{env, fs, time::Duration};

use keywright_harness::{
    Caller, Options, Response, Server, client_without_reading, component, is_on_postgres,
    until_some,
};
use reqwest::Method;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::sleep};

const MIB: usize = 1024 * 1024;

/// The size of each large value, in bytes.
const VALUE_BYTES: usize = 60_000;

#[tokio::test]
async fn hostile_readers_leave_memory_for_other_readers() {
    let versions = variable("KEYWRIGHT_TEST_VERSIONS", 80);
    let readers = variable("KEYWRIGHT_TEST_READERS", 48);
    let total_mib = variable("KEYWRIGHT_TEST_RESPONSES_MIB", 32);
    let response_bytes_max = total_mib / 8 * MIB;
    let server = Server::start_with(&Options::default().server_settings(&format!(
        "responses_bytes_max = {}\nresponse_bytes_max = {response_bytes_max}\nwrite_seconds_max = 3600",
        total_mib * MIB
    )))
    .await;
    set_versions(&server, "/large", versions).await;
    set_versions(&server, "/small", 1).await;
    // The maximum number of versions in one response.
    let largest = versions.min(response_bytes_max / (VALUE_BYTES + 1_000));
    let path = format!("/api/v1/data?name=/large&versions={largest}");

    let idle_bytes = memory_bytes(&server, "VmHWM:");
    let actors = readers_of(&server, "/large").await;
    let mut hostile = JoinSet::new();
    for (reader, actor) in (0..readers).zip(actors.iter().cycle()) {
        let (actor, path) = (actor.clone(), path.clone());
        hostile.spawn(async move {
            sleep(Duration::from_millis(reader as u64 % 7)).await;
            actor.get_without_reading(&path).await
        });
    }
    let mut unread = hostile.join_all().await;
    for response in &unread {
        let is_refused = [429, 503].contains(&response.status().as_u16());
        assert!(is_refused || response.status() == 200, "{response:?}");
        assert_eq!(is_refused, response.headers().contains_key("retry-after"));
    }
    unread.retain(|response| response.status() == 200);
    assert!(!unread.is_empty());

    for _ in 0..20 {
        server.get("/api/v1/data?name=/small").await.expect(200);
        server.get("/health").await.expect(200);
    }
    let peak_bytes = memory_bytes(&server, "VmHWM:");
    let allowed_bytes = idle_bytes + total_mib * MIB * 3 / 2 + 48 * MIB;
    assert!(
        peak_bytes <= allowed_bytes,
        "{} MiB at the peak, {} MiB before, {} readers held {largest} versions",
        peak_bytes / MIB,
        idle_bytes / MIB,
        unread.len()
    );
    drop(unread);
    until_read(&actors[0], &path, largest).await;
}

#[tokio::test]
async fn unread_unauthenticated_responses_take_little_memory() {
    const CONNECTIONS: usize = 40;
    const RESPONSES: usize = 100;
    let settings = "write_seconds_max = 3600";
    let server = Server::start_with(&Options::default().server_settings(settings)).await;
    let url = format!("{}/info", server.base_url());
    let before_bytes = memory_bytes(&server, "VmRSS:");
    let mut unread = Vec::new();
    for _ in 0..CONNECTIONS {
        let client = client_without_reading();
        // The other requests use the connection of the first.
        unread.push(client.get(&url).send().await.unwrap());
        let others: JoinSet<_> = (1..RESPONSES).map(|_| client.get(&url).send()).collect();
        unread.extend(others.join_all().await.into_iter().map(Result::unwrap));
    }
    assert!(unread.iter().all(|response| response.status() == 200));
    let bytes = memory_bytes(&server, "VmRSS:").saturating_sub(before_bytes);
    let allowed_bytes = CONNECTIONS * RESPONSES * 6 * 1024;
    assert!(bytes <= allowed_bytes, "{} KiB", bytes / 1024);
}

#[tokio::test]
async fn an_actor_past_its_limit_of_unread_responses_is_refused() {
    let lines =
        "response_bytes_max = 1048576\nresponses_bytes_max = 8388608\nwrite_seconds_max = 3600";
    let server = Server::start_with(&Options::default().server_settings(lines)).await;
    set_versions(&server, "/large", 17).await;
    let path = "/api/v1/data?name=/large";
    let actors = readers_of(&server, "/large").await;
    let (last, others) = actors.split_last().unwrap();
    let mut unread = Vec::new();
    for actor in &others[..3] {
        for status in [200, 200, 429] {
            let response = actor.get_without_reading(path).await;
            assert_eq!(response.status(), status, "{response:?}");
            let actual = response.headers().contains_key("retry-after");
            assert_eq!(actual, status == 429);
            unread.push(response);
        }
        // A small response does not count.
        actor
            .get("/api/v1/data?name=/large&versions=1")
            .await
            .expect(200);
    }
    let first_of_last = last.get_without_reading(path).await;
    assert_eq!(first_of_last.status(), 200);
    let refused = last.get(path).await.expect(503);
    assert_eq!(refused.header("retry-after"), Some("1"), "{refused:?}");
    last.get(&format!("{path}&versions=1")).await.expect(200);
    drop((unread, first_of_last));
    until_read(last, path, 17).await;
}

#[tokio::test]
async fn a_response_past_the_limit_is_413_with_a_remedy() {
    let lines = "response_bytes_max = 1048576";
    let server = Server::start_with(&Options::default().server_settings(lines)).await;
    set_versions(&server, "/large", 20).await;
    for path in [
        "/api/v1/data?name=/large",
        "/api/v1/data?name=/LARGE&versions=18",
        "/api/v1/data?name=/large&versions=4294967295",
    ] {
        let refused = server.get(path).await;
        assert_eq!(refused.status, 413, "{path}");
        assert!(refused.error().contains("versions="), "{refused:?}");
    }
    for (query, count) in [
        ("&versions=17", 17),
        ("&current=true", 1),
        ("&versions=1", 1),
    ] {
        let response = server
            .get(&format!("/api/v1/data?name=/large{query}"))
            .await;
        assert_eq!(data(&response.expect(200)).len(), count, "{query}");
    }
    let referring = |name: &str, count: usize| -> Value {
        let reference = json!({"credentials": {"credhub-ref": name}});
        json!({"services": vec![reference; count]})
    };
    let small = json!({"a": "x".repeat(40)});
    server.set("/small", "json", small).await.expect(200);
    // Each reference counts, too, not only its value.
    for (name, count, status) in [
        ("/large", 17, 200),
        ("/large", 18, 413),
        ("/small", 500, 200),
        ("/small", 1_000, 413),
    ] {
        let document = referring(name, count);
        server
            .post("/api/v1/interpolate", document)
            .await
            .expect(status);
    }
    server.get("/health").await.expect(200);
}

#[tokio::test]
async fn an_oversized_ciphertext_in_the_database_is_not_read() {
    const CIPHERTEXT_BYTES: usize = 128 * MIB;
    let server = Server::start().await;
    let set = server.set("/large", "value", json!("v")).await.expect(200);
    let set = set.json();
    let id = set["id"].as_str().unwrap();
    server.set("/small", "value", json!("v")).await.expect(200);
    let ciphertext = if is_on_postgres() {
        format!("decode(repeat('00', {CIPHERTEXT_BYTES}), 'hex')")
    } else {
        format!("zeroblob({CIPHERTEXT_BYTES})")
    };
    let large = "(select sequence from credential where name = '/large')";
    let sql = format!(
        "update credential_version set ciphertext = {ciphertext} where credential_sequence = {large}"
    );
    server.run_sql(&sql).await;
    let before_bytes = memory_bytes(&server, "VmHWM:");
    for path in [
        "/api/v1/data?name=/large&current=true",
        &format!("/api/v1/data/{id}"),
    ] {
        server.get(path).await.expect(500);
    }
    let bytes = memory_bytes(&server, "VmHWM:") - before_bytes;
    assert!(bytes < CIPHERTEXT_BYTES / 2, "{} MiB", bytes / MIB);
    server.set("/large", "value", json!("w")).await.expect(200);
    server.get("/api/v1/data?name=/small").await.expect(200);
}

/// The number of calls that wait for a plugin.
const WAITING_CALLS: usize = 24;

#[tokio::test]
async fn the_permissions_that_a_search_reads_count_as_its_memory() {
    let lines = "response_bytes_max = 1048576";
    let server = Server::start_with(&Options::default().server_settings(lines)).await;
    let caller = server.as_client("searcher").await;
    let below = format!("/{}", "p".repeat(200));
    let mut granting = JoinSet::new();
    for number in 0..2_000 {
        let path = format!("{below}/{number}");
        let body = json!({"path": path, "actor": caller.actor(), "operations": ["read"]});
        let request = server.authorized(Method::POST, "/api/v2/permissions");
        granting.spawn(Response::to(request.body(body.to_string())));
        if granting.len() > 32 {
            granting.join_next().await.unwrap().unwrap().expect(201);
        }
    }
    granting.join_all().await;
    caller.get("/api/v1/data?path=/").await.expect(413);
    server.get("/api/v1/data?path=/").await.expect(200);
    // Requests with names look up only the permissions on these names.
    let mut bindings = Vec::new();
    for number in 0..64 {
        let name = format!("{below}/{number}");
        server.set(&name, "json", json!({})).await.expect(200);
        bindings.push(json!({"credentials": {"credhub-ref": name}}));
    }
    let document = json!({"service": bindings});
    caller
        .post("/api/v1/interpolate", document)
        .await
        .expect(200);
    let name = format!("{below}/1");
    caller
        .get(&format!("/api/v1/data?name={name}"))
        .await
        .expect(200);
}

#[tokio::test]
async fn permissions_elsewhere_neither_fill_memory_nor_fail_a_search() {
    let lines = "response_bytes_max = 1048576";
    let server = Server::start_with(&Options::default().server_settings(lines)).await;
    let caller = server.as_client("searcher").await;
    for path in ["/own/*", "/Own/*"] {
        server.grant(path, caller.actor(), &["read"]).await;
    }
    server.set("/own/a", "value", json!("v")).await.expect(200);
    for path in ["/own", "/other"] {
        server.grant_many(path, caller.actor()).await;
    }
    let idle_bytes = memory_bytes(&server, "VmHWM:");
    let found = caller.get("/api/v1/data?path=/OWN").await.expect(200);
    assert_eq!(found.json()["credentials"][0]["name"], "/own/a");
    caller.get("/api/v1/data?path=/").await.expect(413);
    let bytes = memory_bytes(&server, "VmHWM:") - idle_bytes;
    // Reading all of them at once takes 72 MiB.
    assert!(bytes < 32 * MIB, "{} MiB", bytes / MIB);
}

#[tokio::test]
async fn permissions_to_delete_do_not_fill_memory() {
    let lines = "response_bytes_max = 1048576";
    let server = Server::start_with(&Options::default().server_settings(lines)).await;
    let auditor = server.as_client("auditor").await;
    server.grant("/*", auditor.actor(), &["read"]).await;
    server.grant_many("/other", auditor.actor()).await;
    server
        .run_sql("update permission set operations = 5 where path like '/other/%'")
        .await;
    auditor.get("/api/v1/certificates").await.expect(200);
}

#[tokio::test]
async fn parameters_of_waiting_calls_take_little_memory() {
    let resolver = format!(
        "[resolver]\ncomponent = \"{}\"\ngrants = [\"random\", \"signing\"]\n\
         limits = {{ deadline_ms = 1500 }}\nsettings = {{ find-references = \"as-configured\" }}",
        component("hostile").display()
    );
    let options = Options::default()
        .without_resolver()
        .extra(&resolver)
        .environment("KEYWRIGHT_PLUGINS__THREADS_PER_LANE", "1");
    let server = Server::start_with(&options).await;
    let attacker = server.as_client("attacker").await;
    for (bytes, status) in [(128 * 1024 - 256, 400), (MIB - 256, 413)] {
        let idle_bytes = memory_bytes(&server, "VmHWM:");
        let slow = server.as_client(&format!("slow {bytes}")).await;
        let mut occupying = JoinSet::new();
        for _ in 0..3 {
            let slow = slow.clone();
            let document = json!({"behave": "loop"});
            occupying.spawn(async move { slow.post("/api/v1/interpolate", document).await });
        }
        sleep(Duration::from_millis(200)).await;
        // Parsed, each item takes a hundred times the memory of its text.
        let names = vec!["[0]"; bytes / 4].join(",");
        let body = format!(
            r#"{{"name":"/x","type":"certificate","parameters":{{"self_sign":true,"alternative_names":[{names}]}}}}"#
        );
        let mut waiting = JoinSet::new();
        for _ in 0..WAITING_CALLS {
            let request = attacker.request(Method::POST, "/api/v1/data");
            waiting.spawn(Response::to(request.body(body.clone())));
        }
        for response in waiting.join_all().await {
            response.expect(status);
        }
        occupying.join_all().await;
        let more_bytes = memory_bytes(&server, "VmHWM:") - idle_bytes;
        assert!(
            more_bytes <= 192 * MIB,
            "{} MiB for {WAITING_CALLS} requests of {bytes} bytes",
            more_bytes / MIB
        );
    }
}

#[tokio::test]
async fn parsed_parameters_count_as_memory_of_their_request() {
    let lines = "response_bytes_max = 1048576";
    let server = Server::start_with(&Options::default().server_settings(lines)).await;
    for (count, status) in [(1_000, 200), (30_000, 413)] {
        let names = vec!["a"; count];
        let parameters = json!({"self_sign": true, "common_name": "a", "alternative_names": names});
        let body = json!({"name": "/a", "type": "certificate", "parameters": parameters});
        server.post("/api/v1/data", body).await.expect(status);
    }
    let names = vec!["a"; 5_000];
    let parameters = json!({"self_sign": true, "common_name": "a", "alternative_names": names});
    server.generated("/b", "certificate", parameters).await;
    server.regenerate("/b").await.expect(413);
    let path = server.certificate_path("/b").await + "/regenerate";
    server.post(&path, json!({})).await.expect(413);
}

#[tokio::test]
async fn an_actor_can_have_one_large_step_of_a_rotation_in_progress() {
    let options = Options::default().extra("[certificates]\nconcatenate_cas = true\n");
    let server = Server::start_with(&options).await;
    server.generate_authority("/ca", None).await;
    // Each step replaces all of these, so it has more than 256 KiB of old and of new versions in memory.
    let names: Vec<_> = (0..150)
        .map(|number| format!("{number}.{}example", "a.".repeat(100)))
        .collect();
    for number in 0..8 {
        let leaf = json!({"ca": "/ca", "alternative_names": names});
        server.issued(&format!("/{number}"), leaf).await;
    }
    // A step reads all versions of the CA.
    let many = server.generate_authority("/many", None).await;
    for _ in 0..1_000 {
        let ca = json!({"ca": many["value"]["certificate"]});
        server.stored("/many", "certificate", ca).await;
    }
    for name in ["/ca", "/many"] {
        let path = server.certificate_path(name).await + "/update_transitional_version";
        let mut steps = JoinSet::new();
        for _ in 0..8 {
            let request = server.authorized(Method::PUT, &path);
            let body = json!({"version": "latest"}).to_string();
            steps.spawn(Response::to(request.body(body)));
        }
        let (mut made, mut refused) = (0, 0);
        for response in steps.join_all().await {
            if response.status == 200 {
                made += 1;
            } else {
                let refusal = response.expect(429);
                assert!(refusal.header("retry-after").is_some(), "{refusal:?}");
                refused += 1;
            }
        }
        assert!(made > 0 && refused > 0, "{name}: {made} {refused}");
        let body = json!({"version": null});
        server.put(&path, body).await.expect(200);
    }
}

#[tokio::test]
async fn a_crash_leaves_no_core_dump() {
    // Servers inherit this limit.
    let Rlimit { maximum, .. } = getrlimit(Resource::Core);
    let allowed = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Core, allowed).unwrap();
    let server = Server::start().await;
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.process_id())).unwrap();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max core file size"));
    let actual = line.unwrap().split_whitespace().next();
    assert_eq!(actual, Some("0"), "{limits}");
}

/// Stores versions of one credential, each with a large value.
async fn set_versions(server: &Server, name: &str, count: usize) {
    for number in 0..count {
        let value = json!({"number": number, "text": "x".repeat(VALUE_BYTES)});
        let body = json!({"name": name, "type": "json", "value": value});
        server.put("/api/v1/data", body).await.expect(200);
    }
}

/// Returns actors that may read a credential.
async fn readers_of(server: &Server, name: &str) -> Vec<Caller> {
    let mut actors = Vec::new();
    for number in 0..8 {
        let actor = server.as_client(&format!("reader-{number}")).await;
        server.grant(name, actor.actor(), &["read"]).await;
        actors.push(actor);
    }
    actors
}

/// Retries until the server has released the memory of dropped responses.
async fn until_read(caller: &Caller, path: &str, versions: usize) {
    let read = async || {
        let response = caller.get(path).await;
        let is_refused = [429, 503].contains(&response.status);
        (!is_refused).then(|| response.expect(200))
    };
    let response = until_some("released memory", read).await;
    assert_eq!(data(&response).len(), versions);
}

fn data(response: &Response) -> Vec<Value> {
    response.json()["data"].as_array().unwrap().clone()
}

/// Returns a size from the status of the server's process, in bytes.
fn memory_bytes(server: &Server, name: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process_id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = line.unwrap().split_whitespace().next().unwrap();
    kibibytes.parse::<usize>().unwrap() * 1024
}

fn variable(name: &str, default: usize) -> usize {
    env::var(name).map_or(default, |number| number.parse().unwrap())
}
