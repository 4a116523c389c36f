//! `keywright plugin push`, and registries that require a login.

use std::fs;

use keywright_harness::{DockerRegistry, Reply, Server, Stub, Text, digest, key_file, run_program};
use serde_json::{Value, json};

use super::{Workshop, assert_generates, assert_refused, manifest, path, protected};

#[tokio::test]
async fn push_uses_the_cncf_layout_and_is_reproducible() {
    let Some(registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    let reference = workshop.pushed(&registry, "plain.wasm", "1");
    let manifest = registry.manifest("plugins/plain", "1").await;
    assert_eq!(
        manifest["mediaType"],
        "application/vnd.oci.image.manifest.v1+json"
    );
    assert_eq!(
        manifest["config"]["mediaType"],
        "application/vnd.wasm.config.v0+json"
    );
    let bytes = fs::read(workshop.path("plain.wasm")).unwrap();
    let layer =
        json!({"mediaType": "application/wasm", "digest": digest(&bytes), "size": bytes.len()});
    assert_eq!(manifest["layers"], json!([layer]));
    let by_digest = reference.split_once('@').unwrap().1;
    let actual = registry.manifest("plugins/plain", by_digest).await;
    assert_eq!(actual, manifest);

    let uploads = || {
        registry
            .log()
            .matches("POST /v2/plugins/plain/blobs/uploads/")
            .count()
    };
    let before = uploads();
    assert_eq!(before, 2);
    assert_eq!(workshop.pushed(&registry, "plain.wasm", "1"), reference);
    assert_eq!(uploads(), before);
}

#[test]
fn unloadable_component_is_not_pushed() {
    let workshop = Workshop::new();
    let text = r#"(component
        (import "wasi:clocks/wall-clock@0.2.0" (instance (export "now" (func))))
        (instance $empty)
        (export "keywright:generator/descriptor@0.1.0" (instance $empty))
        (export "keywright:generator/generator@0.1.0" (instance $empty))
    )"#;
    fs::write(workshop.path("clock.wasm"), wat::parse_str(text).unwrap()).unwrap();
    fs::write(workshop.path("text.wasm"), "text").unwrap();
    // No registry listens there, so any request would fail.
    let target = "oci://127.0.0.1:1/a:1";
    for (file, status, expected) in [
        ("clock.wasm", 3, "it imports wasi:clocks/wall-clock@0.2.0"),
        ("text.wasm", 1, "is not a WebAssembly component"),
        ("absent.wasm", 1, "the file does not exist"),
        ("plain.wasm", 1, "the registry does not respond"),
    ] {
        let run = workshop.push(&[file, target]).expect(status);
        run.errors.assert_contains(expected);
        assert_eq!(run.output, "");
    }
}

#[test]
fn usage_errors_are_reported() {
    let workshop = Workshop::new();
    let digest = format!("oci://h/a:1@sha256:{}", "0".repeat(64));
    for (arguments, expected) in [
        (&["plain.wasm", "oci://h/a"][..], "missing tag"),
        (&["plain.wasm", &digest], "must have a tag and no digest"),
        (&["plain.wasm", "https://h/a:1"], "must start with oci://"),
        (
            &["plain.wasm", "oci://h/a:1", "--user", "ada"],
            "--password-file",
        ),
    ] {
        let run = workshop.push(arguments).expect(2);
        run.errors.assert_contains(expected);
    }
}

#[test]
fn password_is_not_sent_over_plain_http() {
    let workshop = Workshop::new();
    fs::write(workshop.path("token"), "hunter2").unwrap();
    let login = ["--user", "ada", "--password-file", "token", "--plain-http"];
    let target = ["plain.wasm", "oci://registry.example.com/a:1"];
    let run = workshop.push(&[&target[..], &login].concat()).expect(1);
    run.errors
        .assert_contains("over plain HTTP only to this machine");
}

/// Runs the commands below `Examples:` in the help text, with the test's registry.
#[test]
fn examples_in_help_work() {
    let Some(registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    fs::copy(workshop.path("plain.wasm"), workshop.path("wireguard.wasm")).unwrap();
    fs::write(workshop.path("token"), "token").unwrap();
    let help = workshop.push(&["--help"]).expect(0).output;
    let (_, examples) = help.split_once("Examples:\n").unwrap();
    let lines = examples.lines().map(str::trim);
    let lines: Vec<_> = lines
        .filter(|line| line.starts_with("keywright "))
        .collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        let line = line.replace("registry.example.com", &registry.host());
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let run = run_program(workshop.0.path(), &words, &[]).expect(0);
        run.output.assert_contains("@sha256:");
    }
}

#[tokio::test]
async fn pushed_configuration_lists_imports_and_exports() {
    let Some(registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    workshop.pushed(&registry, "plain.wasm", "1");
    let manifest = registry.manifest("plugins/plain", "1").await;
    let config = manifest["config"]["digest"].as_str().unwrap();
    let config: Value =
        serde_json::from_slice(&registry.blob("plugins/plain", config).await).unwrap();
    assert_eq!(config["architecture"], "wasm");
    assert_eq!(config["os"], "wasip2");
    assert_eq!(
        config["layerDigests"],
        json!([manifest["layers"][0]["digest"]])
    );
    let named = |list: &str, name: &str| {
        let list = config["component"][list].as_array().unwrap().iter();
        list.filter(|known| known.as_str().unwrap().starts_with(name))
            .count()
    };
    assert_eq!(named("imports", "wasi:random/random@"), 1);
    assert_eq!(named("exports", "keywright:generator/generator@"), 1);
}

#[test]
fn a_file_without_trusted_certificates_is_named_with_its_option() {
    let workshop = Workshop::new();
    let target = "oci://127.0.0.1:9/plain:1";
    let authorities = ["--trusted-authorities", "plain.wasm"];
    let arguments = [&["plain.wasm", target][..], &authorities].concat();
    let refused = workshop.push(&arguments).expect(1);
    let expected = "--trusted-authorities: plain.wasm contains no certificate";
    refused.errors.assert_contains(expected);
}

#[tokio::test]
async fn push_and_pull_require_the_login() {
    let Some(registry) = DockerRegistry::start_with_login() else {
        return;
    };
    let workshop = Workshop::new();
    let authority = key_file("ca.pem");
    fs::write(
        workshop.path("password"),
        format!("{}\n", DockerRegistry::PASSWORD),
    )
    .unwrap();
    fs::write(workshop.path("wrong"), "hunter2").unwrap();
    fs::write(workshop.path("docker.json"), registry.docker_config()).unwrap();
    let target = format!("oci://{}/plain:1", registry.host());
    let push = |login: &[&str], status| {
        let arguments = [
            "plain.wasm",
            &*target,
            "--trusted-authorities",
            path(&authority),
        ];
        workshop
            .push(&[&arguments[..], login].concat())
            .expect(status)
    };
    let user = ["--user", DockerRegistry::USER, "--password-file"];
    let refused = push(&[], 1);
    refused
        .errors
        .assert_contains("denies anonymous users access to");
    let refused = push(&[&user[..], &["wrong"]].concat(), 1);
    refused
        .errors
        .assert_contains("denies the configured user access to");
    refused.errors.assert_lacks("hunter2");
    let pushed = push(&[&user[..], &["password"]].concat(), 0);
    let again = push(&["--docker-config", "docker.json"], 0);
    assert_eq!(pushed.output, again.output);

    let reference = pushed.output.trim_end();
    let options = |login: &str| {
        let section = protected(&registry.host(), login);
        workshop.options(reference, "").extra(&section)
    };
    let denied = [reference, "denies anonymous users access to the manifest"];
    assert_refused(&options(""), &denied);
    let with = |file: &str| {
        let file = workshop.path(file);
        let user = DockerRegistry::USER;
        options(&format!(
            "user = \"{user}\"\npassword_file = \"{}\"",
            file.display()
        ))
    };
    let denied = "denies the configured user access to the manifest";
    let refusal = assert_refused(&with("wrong"), &[denied]);
    refusal.assert_lacks("hunter2");
    let server = Server::start_with(&with("password")).await;
    assert_generates(&server, "/a").await;
    assert!(!server.log().contains(DockerRegistry::PASSWORD));
    drop(server);

    fs::remove_dir_all(workshop.path("cache")).unwrap();
    let file = workshop.path("docker.json");
    let docker = format!("[registry]\ndocker_config = \"{}\"", file.display());
    drop(Server::start_with(&options("").extra(&docker)).await);
}

#[tokio::test]
async fn token_is_fetched_from_the_token_server() {
    let workshop = Workshop::new();
    fs::write(workshop.path("password"), "hunter2").unwrap();
    let component = fs::read(workshop.path("plain.wasm")).unwrap();
    let manifest = manifest(&component);
    let answer = manifest.clone();
    let stub = Stub::start(move |request, _, url| {
        if request.line.starts_with("GET /token?") {
            return Reply::new(200, r#"{"token": "granted-token"}"#);
        }
        if !request.head.contains("authorization: bearer granted-token") {
            let challenge = format!(
                "Bearer realm=\"{url}/token\",service=\"plugins\",scope=\"repository:plain:pull\""
            );
            return Reply::new(401, "").header("WWW-Authenticate", &challenge);
        }
        if request.line.contains("/manifests/") {
            Reply::new(200, &answer)
        } else {
            Reply::bytes(&component)
        }
    });
    let password = workshop.path("password");
    let login = format!("user = \"ada\"\npassword_file = \"{}\"", password.display());
    let options = workshop.served(&stub, &manifest, &login);
    let server = Server::start_with(&options).await;
    assert_generates(&server, "/a").await;
    for secret in ["granted-token", "hunter2"] {
        assert!(!server.log().contains(secret), "{secret}");
    }
    let requests = stub.requests();
    let tokens: Vec<_> = requests
        .iter()
        .filter(|request| request.line.contains("/token"))
        .collect();
    assert_eq!(tokens.len(), 1);
    let line = "GET /token?service=plugins&scope=repository%3Aplain%3Apull";
    assert_eq!(tokens[0].line, line);
    assert!(tokens[0].head.contains("authorization: basic "));
    assert_eq!(requests.len(), 4);
}
