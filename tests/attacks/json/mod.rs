//! Hostile JSON at every boundary: deeply nested, large, or with duplicate or reserved keys. This module sends it in requests,
//! and to the client in responses and files.

pub(crate) mod corpus;
mod sources;

use std::{
    fs,
    sync::{Arc, Mutex},
};

use keywright_harness::{Commanded, Reply, Response, Server, Shell, Stub, Text};
use reqwest::Method;
use serde_json::json;

use crate::{assert_alive, assert_no_fault};
use corpus::{Fault, Input, inputs, nested};

/// Each endpoint that takes a body: the number of levels around `@`, the method, the path, and a body in which a hostile text
/// replaces `@`. In a path, `CERTIFICATE` represents the id of a certificate.
const BODIES: &str = r#"
    2 PUT /api/v1/data {"name":"/j","type":"json","value":{"a":@}}
    1 PUT /api/v1/data {"name":"/p","type":"password","value":@}
    2 PUT /api/v1/data {"name":"/c","type":"certificate","value":{"certificate":@}}
    2 PUT /api/v1/data {"name":"/m","type":"value","value":"v","metadata":{"a":@}}
    1 PUT /api/v1/data {"name":@,"type":"value","value":"v"}
    1 PUT /api/v1/data {"name":"/u","type":"value","value":"v","unknown":@}
    2 POST /api/v1/data {"name":"/g","type":"password","parameters":{"length":@}}
    2 POST /api/v1/data {"name":"/g","type":"password","metadata":{"a":@}}
    2 POST /api/v1/data {"name":"/g","type":"user","value":{"username":@}}
    3 POST /api/v1/data {"name":"/g","type":"certificate","parameters":{"alternative_names":[@]}}
    1 POST /api/v1/regenerate {"name":"/j","metadata":@}
    1 POST /api/v1/bulk-regenerate {"signed_by":@}
    1 POST /api/v1/interpolate {"a":@}
    4 POST /api/v1/interpolate {"a":[{"credentials":{"credhub-ref":@}}]}
    2 POST /api/v1/permissions {"credential_name":"/j","permissions":[@]}
    2 POST /api/v2/permissions {"path":"/j","actor":"uaa-client:a","operations":[@]}
    1 PUT /api/v2/permissions/00000000-0000-0000-0000-000000000000 {"path":@}
    1 PATCH /api/v2/permissions/00000000-0000-0000-0000-000000000000 {"operations":@}
    1 POST /api/v1/certificates/CERTIFICATE/regenerate {"set_as_transitional":@}
    1 PUT /api/v1/certificates/CERTIFICATE/update_transitional_version {"version":@}
    2 POST /management {"read_only_mode":[@]}
"#;

/// Returns the method, the path and the body of each endpoint, and the number of levels around `@`.
pub(crate) fn bodies() -> Vec<(&'static str, &'static str, &'static str, usize)> {
    let body = |line: &'static str| {
        let mut parts = line.trim().splitn(4, ' ');
        let mut part = || parts.next().unwrap();
        let levels = part().parse().unwrap();
        (part(), part(), part(), levels)
    };
    BODIES.trim().lines().map(body).collect()
}

pub(crate) const DATA: &str = "/api/v1/data";

/// Starts a server with a CA `/root`. Returns it with the id of the CA.
pub(crate) async fn attacked() -> (Server, String) {
    let server = Server::start().await;
    let root = json!({"is_ca": true, "common_name": "root", "key_length": 2048});
    server.generated("/root", "certificate", root).await;
    let certificates = server.get("/api/v1/certificates?name=/root").await;
    let id = certificates.expect(200).json()["certificates"][0]["id"].clone();
    (server, id.as_str().unwrap().to_owned())
}

/// Sends any bytes as a JSON body.
pub(crate) async fn send(server: &Server, method: &str, path: &str, body: Vec<u8>) -> Response {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let request = server.authorized(method, path).body(body);
    let response = Response::try_to(request).await;
    response.unwrap_or_else(|cause| panic!("no response to a request for {path}: {cause}"))
}

/// Replaces `@` in a body with a text.
pub(crate) fn filled(body: &str, text: &[u8]) -> Vec<u8> {
    let (before, behind) = body.split_once('@').unwrap();
    [before.as_bytes(), text, behind.as_bytes()].concat()
}

#[tokio::test]
async fn no_json_in_a_body_crashes_the_server() {
    let (server, certificate_id) = attacked().await;
    for (index, input) in inputs().iter().enumerate() {
        for (endpoint, (method, path, body, levels_around)) in bodies().iter().enumerate() {
            // Each large input is sent to a fifth of the endpoints.
            let is_large = input.text.len() > 20_000;
            if is_large && (index + endpoint) % 5 != 0 {
                continue;
            }
            let path = path.replace("CERTIFICATE", &certificate_id);
            let response = send(&server, method, &path, filled(body, &input.text)).await;
            let attack = format!("{method} {path}: {body} with {}", input.what);
            assert_no_fault(&response, &attack);
            if let Some(error) = input.fault.error(*levels_around) {
                assert_eq!(response.status, 400, "{attack}: {}", response.body);
                response.error().assert_contains(error);
            }
        }
        let whole = send(&server, "PUT", DATA, input.text.clone()).await;
        let is_refused = (400..500).contains(&whole.status);
        assert!(is_refused, "{}: {whole:?}", input.what);
        assert_alive(&server, &input.what).await;
    }
}

#[tokio::test]
async fn a_reserved_key_does_not_change_the_type_of_its_object() {
    let server = Server::start().await;
    for (method, fields, smuggled) in [
        (
            "POST",
            r#""type":"password","parameters":{"length":@}"#,
            "12",
        ),
        ("PUT", r#""type":"password","value":@"#, "\"p\""),
        ("PUT", r#""type":"value","value":@"#, "\"v\""),
        ("PUT", r#""type":"json","value":@"#, "{}"),
        ("PUT", r#""type":"user","value":{"password":@}"#, "\"p\""),
    ] {
        let smuggled = json!({corpus::RAW_VALUE_KEY: smuggled}).to_string();
        let body = format!(r#"{{"name":"/s",{}}}"#, fields.replace('@', &smuggled));
        let response = send(&server, method, DATA, body.into_bytes()).await;
        response.expect_error(400, "reserved");
    }
    assert!(server.versions("/s").await.is_empty());
}

pub(crate) fn is_invalid_at_any_depth(input: &Input) -> bool {
    !matches!(input.fault, Fault::None) && input.fault.error(0).is_some()
}

/// Returns one input per fault, and the largest inputs: few, because tests start a process for each.
fn chosen() -> Vec<Input> {
    let mut inputs = inputs();
    inputs.reverse();
    let mut seen = std::collections::HashSet::new();
    inputs.retain(|input| seen.insert(format!("{:?}", input.fault)) || input.text.len() > 300_000);
    inputs
}

/// Asserts that the program exited without a signal and without a panic.
#[track_caller]
fn assert_exited(run: &Commanded, attack: &str) {
    assert!(
        run.status.is_some(),
        "{attack} killed the program: {}",
        run.errors
    );
    assert!(!run.errors.contains("panicked"), "{attack}: {}", run.errors);
}

#[test]
fn no_response_crashes_the_client() {
    let response: Arc<Mutex<Vec<u8>>> = Arc::default();
    let sent = Arc::clone(&response);
    let stub = Stub::start(move |_, _, _| Reply::bytes(&sent.lock().unwrap()));
    let shell = stub.shell();
    for input in chosen() {
        let version = r#"{"data":[{"id":"i","name":"/a","type":"json","version_created_at":"t","metadata":null,"value":@}]}"#;
        for (arguments, body) in [
            (&["get", "/a"][..], "@"),
            (&["get", "/a", "--output", "yaml"], version),
            (
                &["types", "json"],
                r#"{"types":[{"name":"json","summary":"s","plugin":null,"parameters":@,"value":{}}]}"#,
            ),
        ] {
            *response.lock().unwrap() = filled(body, &input.text);
            assert_exited(
                &shell.run(arguments),
                &format!("{arguments:?} with {}", input.what),
            );
        }
    }
}

#[test]
fn no_file_crashes_the_client() {
    let shell = Stub::start(|_, _, _| Reply::new(200, "{}")).shell();
    let entry = r#"{"credentials":[{"name":"/a","type":"json","value":{"a":@}}]}"#;
    for input in chosen() {
        for (file, body) in [
            ("a.json", "@"),
            ("b.json", entry),
            ("c.yml", entry),
            ("d.yml", "@"),
        ] {
            fs::write(shell.file(file), filled(body, &input.text)).unwrap();
            let run = shell.run(&["import", file, "--dry-run"]);
            assert_exited(&run, &format!("import of {file} with {}", input.what));
            let run = shell.run(&["interpolate", file]);
            assert_exited(&run, &format!("interpolate of {file} with {}", input.what));
        }
    }
}

#[test]
fn no_yaml_crashes_or_hangs_the_client() {
    let shell = Shell::new();
    let block: Vec<String> = (0..2_000)
        .map(|level| format!("{}a:\n", " ".repeat(level)))
        .collect();
    let bomb: Vec<String> = (1..40)
        .map(|level| format!("a{level}: &a{level} [*a{0}, *a{0}]\n", level - 1))
        .collect();
    let (block, bomb) = (block.concat(), bomb.concat());
    for (what, text) in [
        ("flow sequences", nested("[", "]", 100_000)),
        ("flow mappings", nested("{a: ", "}", 100_000)),
        ("block sequences", "- ".repeat(100_000)),
        ("block mappings", block),
        (
            "aliases of aliases",
            format!("a0: &a0 [x]\n{bomb}credentials: []\n"),
        ),
        ("an alias of itself", "credentials: &a [*a]\n".to_owned()),
        (
            "merges",
            format!(
                "a: &a {{b: 1}}\ncredentials:\n- {{<<: [{}]}}\n",
                "*a, ".repeat(50_000)
            ),
        ),
    ] {
        fs::write(shell.file("a.yml"), text).unwrap();
        assert_exited(&shell.run("import a.yml --dry-run"), what);
    }
}
