//! Generators that derive values from other credentials: what they get, who may derive, and what happens when an input changes.

use keywright_harness::{Caller, Options, Response, ReusedServer, Server, Text, component};
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) const TYPE: &str = "deriving";
pub(crate) const BULK_REGENERATE: &str = "/api/v1/bulk-regenerate";

pub(crate) async fn server() -> ReusedServer {
    Server::reused_with(&Options::default().generator_with_inputs(TYPE)).await
}

pub(crate) async fn generated(server: &Server, name: &str, parameters: Value) -> Value {
    let response = server.generate(name, TYPE, parameters).await;
    response.expect(200).json()
}

pub(crate) async fn set(server: &Server, name: &str, text: &str) -> Value {
    let response = server.set(name, "password", json!(text)).await;
    response.expect(200).json()
}

/// Returns the provenance of the active version: the inputs, and whether the provenance was imported.
async fn derived_from(server: &Server, name: &str) -> [Value; 2] {
    let path = format!("/api/v1/data?current=true&provenance=true&name={name}");
    let mut version = server.get_json(&path).await["data"][0].take();
    ["derived_from", "imported"].map(|field| version[field].take())
}

/// Returns `name` and `stale` of each credential in the response to a search by input.
fn found(response: &Response) -> Value {
    let body = response.json();
    let found = body["credentials"].as_array().unwrap().iter();
    found
        .map(|found| json!([found["name"], found["stale"]]))
        .collect()
}

pub(crate) async fn find_derived_from(server: &Server, query: &str) -> Value {
    let path = format!("/api/v1/data?derived_from={query}");
    found(&server.get(&path).await.expect(200))
}

#[tokio::test]
async fn inputs_are_passed_in_order_and_recorded() {
    let server = server().await;
    let one = set(&server, "/Team/one", "first").await;
    let two = server.stored("/two", "json", json!({"a": [1.50]})).await;
    let parameters = json!({"also": {"z": "two", "a/b": "/TEAM/one"}, "from": ["Team/one"]});
    let made = generated(&server, "/made", parameters).await;
    let expected = json!([
        ["/from/0", "/Team/one", "password", "first", one["id"]],
        ["/also/z", "/two", "json", {"a": [1.5]}, two["id"]],
        ["/also/a~1b", "/Team/one", "password", "first", one["id"]],
    ]);
    let passed = made["value"]["inputs"].as_array().unwrap().iter();
    let passed: Value = passed
        .map(|input| {
            let fields = ["pointer", "name", "type", "value", "version_id"];
            Value::from(fields.map(|field| input[field].clone()).to_vec())
        })
        .collect();
    assert_eq!(passed, expected);
    let recorded = json!([
        {"parameter": "/from/0", "name": "/Team/one", "version_id": one["id"]},
        {"parameter": "/also/z", "name": "/two", "version_id": two["id"]},
        {"parameter": "/also/a~1b", "name": "/Team/one", "version_id": one["id"]},
    ]);
    let recorded = [recorded, json!(false)];
    assert_eq!(derived_from(&server, "/made").await, recorded);
    let found = find_derived_from(&server, "team/ONE").await;
    assert_eq!(found, json!([["/made", false]]));
}

#[tokio::test]
async fn credentials_generated_without_inputs_record_none() {
    let server = server().await;
    let made = generated(&server, "/made", json!({})).await;
    assert_eq!(made["value"]["inputs"], json!([]));
    server.generated("/p", "password", json!({})).await;
    for name in ["/made", "/p"] {
        let actual = derived_from(&server, name).await;
        assert_eq!(actual, [Value::Null, json!(false)]);
    }
}

#[tokio::test]
async fn converge_and_bulk_regenerate_derive_again_from_a_new_input() {
    let server = server().await;
    set(&server, "/input", "first").await;
    for name in ["/a", "/b"] {
        let first = generated(&server, name, json!({"from": "/input"})).await;
        let same = generated(&server, name, json!({"from": "input"})).await;
        assert_eq!(same["id"], first["id"]);
    }
    let fresh = json!([["/b", false], ["/a", false]]);
    assert_eq!(find_derived_from(&server, "/input").await, fresh);

    set(&server, "/input", "second").await;
    let stale = json!([["/b", true], ["/a", true]]);
    assert_eq!(find_derived_from(&server, "/input").await, stale);
    let again = generated(&server, "/a", json!({"from": "/input"})).await;
    assert_eq!(again["value"]["inputs"][0]["value"], "second");
    let mixed = json!([["/a", false], ["/b", true]]);
    assert_eq!(find_derived_from(&server, "/input").await, mixed);
    let restricted = find_derived_from(&server, "/input&name-like=B").await;
    assert_eq!(restricted, json!([["/b", true]]));
    let restricted = find_derived_from(&server, "/input&path=/b").await;
    assert_eq!(restricted, json!([]));

    // A credential is listed once, and only if its latest version is derived.
    let twice = json!({"from": ["/INPUT", "input"]});
    for (parameters, expected) in [(twice, json!([["/path/c", false]])), (json!({}), json!([]))] {
        let made = server.generate_in_mode("overwrite", "/path/c", TYPE, parameters);
        made.await.expect(200);
        let restricted = find_derived_from(&server, "/input&path=/path").await;
        assert_eq!(restricted, expected);
    }

    for (is_dry_run, expected) in [
        (true, json!(["/b"])),
        (false, json!(["/b"])),
        (false, json!([])),
    ] {
        let body = json!({"derived_from": "/INPUT", "dry_run": is_dry_run});
        let response = server.post(BULK_REGENERATE, body).await.expect(200);
        assert_eq!(response.json()["regenerated_credentials"], expected);
    }
    let versions = server.versions("/b").await;
    assert_eq!(versions.len(), 2);
    assert_eq!(versions[0]["value"]["inputs"][0]["value"], "second");
    assert_eq!(server.versions("/a").await.len(), 2);

    // Values derived from a deleted input are stale.
    server.delete("/api/v1/data?name=/input").await.expect(204);
    let actual = find_derived_from(&server, "/input").await;
    assert_eq!(actual, json!([["/b", true], ["/a", true]]));
    let missing = server.regenerate("/a").await.expect(404).error();
    missing.assert_contains("the parameter from names a credential that does not exist");
    let body = json!({"derived_from": "/input", "keep_going": true});
    let failed = server.post(BULK_REGENERATE, body).await.expect(200).json();
    assert_eq!(failed["failed_credentials"].as_array().unwrap().len(), 2);
    server.delete("/api/v1/data?name=/a").await.expect(204);
    server.delete("/api/v1/data?name=/b").await.expect(204);
    assert_eq!(find_derived_from(&server, "/input").await, json!([]));
}

#[tokio::test]
async fn other_modes_keep_or_replace_a_derived_value() {
    let server = server().await;
    set(&server, "/input", "first").await;
    let parameters = json!({"from": "/input"});
    let first = generated(&server, "/a", parameters.clone()).await;
    set(&server, "/input", "second").await;
    let in_mode = async |mode| {
        let made = server.generate_in_mode(mode, "/a", TYPE, parameters.clone());
        made.await.expect(200).json()
    };
    assert_eq!(in_mode("no-overwrite").await["id"], first["id"]);
    let second = in_mode("overwrite").await;
    assert_eq!(second["value"]["inputs"][0]["value"], "second");
    assert_ne!(in_mode("overwrite").await["id"], second["id"]);
    let regenerated = server.regenerated("/a").await;
    assert_eq!(regenerated["value"]["inputs"][0]["value"], "second");
}

/// Sends requests that derive a credential from this input, and that regenerate a credential derived from `/secret/input`.
async fn attempts(caller: &Caller, input: &str) -> [Response; 2] {
    let parameters = json!({"from": input});
    let body =
        json!({"name": "/team/a", "type": TYPE, "mode": "overwrite", "parameters": parameters});
    let generated = caller.post("/api/v1/data", body).await;
    let regenerated = caller.post("/api/v1/regenerate", json!({"name": "/team/b"}));
    [generated, regenerated.await]
}

#[tokio::test]
async fn only_a_caller_who_may_read_the_input_derives_from_it() {
    let server = server().await;
    let input = set(&server, "/Secret/input", "canary-of-an-input").await;
    generated(&server, "/team/b", json!({"from": "/secret/input"})).await;
    let caller = server.as_client("app").await;
    let all = ["read", "write", "delete", "read_acl", "write_acl"];
    server.grant("/team/*", caller.actor(), &all).await;
    let absent = attempts(&caller, "/secret/absent").await;
    let error = |response: &Response| response.clone().expect(404).error();
    for granted in [&[][..], &["write", "delete", "read_acl", "write_acl"]] {
        if !granted.is_empty() {
            server.grant("/secret/*", caller.actor(), granted).await;
        }
        for response in attempts(&caller, "/secret/input").await {
            assert_eq!(error(&response), error(&absent[0]));
        }
        let find = "/api/v1/data?derived_from=/secret/input";
        assert_eq!(found(&caller.get(find).await.expect(200)), json!([]));
        let body = json!({"derived_from": "/secret/input"});
        caller.post(BULK_REGENERATE, body).await.expect(404).error();
    }
    // The caller also needs permission for the name in its stored casing.
    server
        .grant("/secret/input", caller.actor(), &["read"])
        .await;
    for response in attempts(&caller, "/secret/input").await {
        error(&response);
    }
    server
        .grant("/Secret/input", caller.actor(), &["read"])
        .await;
    for response in attempts(&caller, "/secret/input").await {
        let made = response.expect(200).json();
        assert_eq!(made["value"]["inputs"][0]["value"], "canary-of-an-input");
    }
    let trail = server.audit_trail();
    let events = trail
        .lines()
        .map(|line| -> Value { serde_json::from_str(line).unwrap() });
    let reads = events.filter(|event| {
        event["operation"] == "read"
            && event["resource_name"] == "/secret/input"
            && event["status"] == 200
            && event["version_id"] == input["id"]
    });
    let actions: Vec<_> = reads.map(|event| event["action"].clone()).collect();
    assert_eq!(actions, ["GENERATE", "GENERATE", "REGENERATE"]);
    trail.assert_lacks("canary-of-an-input");
    assert!(!server.log().contains("canary-of-an-input"));
}

#[tokio::test]
async fn bulk_regeneration_needs_permission_to_read_every_input() {
    let server = server().await;
    for input in ["/input", "/other-input"] {
        set(&server, input, "first").await;
    }
    let parameters = json!({"from": "/input", "also": ["/other-input"]});
    generated(&server, "/team/a", parameters).await;
    generated(&server, "/hidden/a", json!({"from": "/input"})).await;
    set(&server, "/input", "second").await;
    let caller = server.as_client("app").await;
    server
        .grant("/team/*", caller.actor(), &["read", "write"])
        .await;
    server.grant("/input", caller.actor(), &["read"]).await;
    let bulk = async |is_dry_run: bool| {
        let body = json!({"derived_from": "/input", "dry_run": is_dry_run});
        caller.post(BULK_REGENERATE, body).await
    };
    for is_dry_run in [true, false] {
        let refused = bulk(is_dry_run).await.expect(404).error();
        refused.assert_contains("parameter also.0");
    }
    server
        .grant("/other-input", caller.actor(), &["read"])
        .await;
    for is_dry_run in [true, false] {
        let response = bulk(is_dry_run).await.expect(200).json();
        assert_eq!(response["regenerated_credentials"], json!(["/team/a"]));
    }
    assert_eq!(server.versions("/hidden/a").await.len(), 1);
}

#[tokio::test]
async fn derived_credentials_that_are_only_readable_can_be_skipped() {
    let server = server().await;
    set(&server, "/input", "first").await;
    for name in ["/team/a", "/theirs/b"] {
        generated(&server, name, json!({"from": "/input"})).await;
    }
    set(&server, "/input", "second").await;
    let caller = server.as_client("app").await;
    let actor = caller.actor();
    server.grant("/input", actor, &["read"]).await;
    server.grant("/team/*", actor, &["read", "write"]).await;
    server.grant("/theirs/*", actor, &["read"]).await;
    let run = async |mut body: Value| {
        body["derived_from"] = json!("/input");
        caller.post(BULK_REGENERATE, body).await
    };
    run(json!({})).await.expect(403);
    run(json!({"path": "/theirs"})).await.expect(403);
    let done = run(json!({"keep_going": true, "dry_run": true})).await;
    let expected = json!({
        "regenerated_credentials": ["/team/a"],
        "failed_credentials": [
            {"name": "/theirs/b", "error": "the caller may not write this credential"},
        ],
        "dry_run": true,
    });
    assert_eq!(done.expect(200).json(), expected);
    let narrowed = run(json!({"path": "Team/"})).await.expect(200).json();
    assert_eq!(narrowed["regenerated_credentials"], json!(["/team/a"]));
    assert_eq!(server.versions("/theirs/b").await.len(), 1);
}

#[tokio::test]
async fn invalid_inputs_are_400_and_name_the_parameter() {
    let server = server().await;
    set(&server, "/input", "first").await;
    for (parameters, expected) in [
        // The plugin, which would change the name, is not called.
        (
            json!({"from": 7, "act": "rename"}),
            "from must be the name of a credential",
        ),
        (
            json!({"from": [""]}),
            "from must be the name of a credential",
        ),
        (json!({"from": ["/input", []]}), "from must be the name"),
        (
            json!({"also": {"x": {"y": "/input"}}}),
            "also must be the name",
        ),
        (
            json!({"from": "/A"}),
            "from must not name the credential itself",
        ),
        (
            json!({"also": {"k": "a"}}),
            "also.k must not name the credential itself",
        ),
        (
            json!({"from": "/input", "act": "refuse"}),
            "from must be another credential",
        ),
    ] {
        let response = server.generate("/a", TYPE, parameters.clone()).await;
        response.expect_error(400, expected);
    }
    let empty = generated(&server, "/a", json!({"from": ""})).await;
    assert_eq!(empty["value"]["inputs"], json!([]));
    for (query, named) in [
        (
            "derived_from=/a&generated_by=".to_owned() + &"0".repeat(64),
            "derived_from",
        ),
        (
            "derived_from=/a&expires-within-days=3".to_owned(),
            "derived_from",
        ),
    ] {
        let error = server.get(&format!("/api/v1/data?{query}")).await;
        error.expect_error(400, named);
    }
    for body in [
        json!({"derived_from": ""}),
        json!({"derived_from": "/a", "signed_by": "/a"}),
        json!({"derived_from": "/a", "generated_by": "0".repeat(64)}),
    ] {
        server.post(BULK_REGENERATE, body).await.expect(400).error();
    }
}

#[tokio::test]
async fn the_number_and_the_size_of_inputs_are_limited() {
    const INPUTS_MAX: usize = 16;
    const INPUTS_BYTES_MAX: usize = 1_048_576;
    const VALUE_BYTES_MAX: usize = 65_536;
    let server = Server::start_with(&Options::default().plugin(
        TYPE,
        TYPE,
        &["random", "inputs"],
        "limits = { input_bytes_max = 2097152 }",
    ))
    .await;
    let longest = "x".repeat(VALUE_BYTES_MAX);
    set(&server, "/longest", &longest).await;
    set(&server, "/short", "x").await;
    let generate = async |names: Vec<&str>| {
        let parameters = json!({"also": names});
        server.generate("/a", TYPE, parameters).await
    };
    generate(vec!["/short"; INPUTS_MAX]).await.expect(200);
    let refused = generate(vec!["/short"; INPUTS_MAX + 1]).await.expect(400);
    assert!(refused.error().contains("16"), "{}", refused.body);

    // The JSON of a string has two quotes.
    let quotes = 2;
    let rest = INPUTS_BYTES_MAX - (INPUTS_MAX - 1) * (VALUE_BYTES_MAX + quotes) - quotes;
    let mut names = vec!["/longest"; INPUTS_MAX - 1];
    names.push("/rest");
    set(&server, "/rest", &"x".repeat(rest)).await;
    generate(names.clone()).await.expect(200);
    set(&server, "/rest", &"x".repeat(rest + 1)).await;
    let refused = generate(names).await.expect(413).error();
    refused.assert_contains("1048576 bytes");
}

#[tokio::test]
async fn inputs_count_towards_the_input_limit_of_the_plugin() {
    let server = Server::start_with(&Options::default().plugin(
        TYPE,
        TYPE,
        &["random", "inputs"],
        "limits = { input_bytes_max = 1024 }",
    ))
    .await;
    set(&server, "/input", "x").await;
    generated(&server, "/a", json!({"from": "/input"})).await;
    set(&server, "/input", &"x".repeat(1_024)).await;
    let refused = server.regenerate("/a").await.expect(413).error();
    refused.assert_contains("input_bytes_max");
    for is_dry_run in [true, false] {
        let body = json!({"derived_from": "/input", "dry_run": is_dry_run});
        server.post(BULK_REGENERATE, body).await.expect(413).error();
    }
}

#[tokio::test]
async fn a_plugin_can_not_name_other_inputs_than_the_caller() {
    let server = server().await;
    set(&server, "/other", "canary-of-an-input").await;
    set(&server, "/input", "first").await;
    for act in ["rename", "add"] {
        let parameters = json!({"from": "/input", "act": act});
        let response = server.generate("/a", TYPE, parameters).await;
        response.expect_error(500, "declared form");
    }
    // The plugin recovers another name for every value.
    generated(&server, "/made", json!({"from": "/input"})).await;
    let made = server.regenerated("/made").await;
    assert_eq!(made["value"]["inputs"][0]["name"], "/input");
    let value = json!({"inputs": [], "salt": "s"});
    server.stored("/set", TYPE, value).await;
    let regenerated = server.regenerated("/set").await;
    assert_eq!(regenerated["value"]["inputs"], json!([]));
}

#[tokio::test]
async fn an_imported_credential_needs_permission_to_read_its_inputs() {
    let server = server().await;
    let caller = server.as_client("app").await;
    server
        .grant("/team/*", caller.actor(), &["read", "write"])
        .await;
    let import = async || {
        let body = json!({
            "name": "/team/a",
            "type": TYPE,
            "value": {"inputs": [], "salt": "s"},
            "generated_by": "0".repeat(64),
            "parameters": {"from": "/input"},
        });
        caller.put("/api/v1/data", body).await
    };
    import().await.expect(404).error();
    server.grant("/input", caller.actor(), &["read"]).await;
    // The input may be imported later.
    import().await.expect(200);
    let claim = [Value::Null, json!(true)];
    assert_eq!(derived_from(&server, "/team/a").await, claim);
    // The versions of the inputs are unknown, so converge derives the value again.
    set(&server, "/input", "first").await;
    let made = generated(&server, "/team/a", json!({"from": "/input"})).await;
    assert_eq!(made["value"]["inputs"][0]["value"], "first");
    let same = generated(&server, "/team/a", json!({"from": "/input"})).await;
    assert_eq!(same["id"], made["id"]);
}

#[test]
fn a_plugin_with_inputs_needs_a_grant() {
    let section = |grants: &str| {
        let path = component(TYPE);
        let path = path.display();
        format!("component = \"{path}\"\ngrants = [{grants}]")
    };
    let refusal = Server::refusal(&Options::default().generator(TYPE, &section("\"random\"")));
    let refusal = refusal.replace('\\', "");
    for expected in [
        "keywright:generator/derived-generator",
        "add \"inputs\" to its grants",
    ] {
        refusal.assert_contains(expected);
    }
}

#[tokio::test]
async fn an_input_that_changes_during_the_call_is_read_again() {
    let server = server().await;
    set(&server, "/input", "0").await;
    let deriving = async {
        for _ in 0..20 {
            let parameters = json!({"from": "/input"});
            let made = server
                .generate_in_mode("overwrite", "/a", TYPE, parameters)
                .await;
            assert!([200, 503].contains(&made.status), "{}", made.body);
        }
    };
    let rotating = async {
        for number in 1..40 {
            set(&server, "/input", &number.to_string()).await;
        }
    };
    tokio::join!(deriving, rotating);
    let last = generated(&server, "/a", json!({"from": "/input"})).await;
    assert_eq!(last["value"]["inputs"][0]["value"], "39");
    // Each derived version records the version of the input with the value that the plugin got.
    let inputs = server.versions("/input").await;
    for version in server.versions("/a").await {
        let input = &version["value"]["inputs"][0];
        let used = inputs
            .iter()
            .find(|found| found["id"] == input["version_id"]);
        assert_eq!(used.unwrap()["value"], input["value"]);
        Uuid::parse_str(input["version_id"].as_str().unwrap()).unwrap();
    }
}
