//! Exports and imports from one server to another: round trips, resumption, and memory.

use std::{
    fmt::Write,
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use keywright_harness::{Reply, Server, Shell, Stub, Text};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use x509_parser::{certificate::X509Certificate, pem::Pem};

use crate::fixtures::{self, Blocker, gate};

#[tokio::test]
async fn all_types_of_credentials_survive_a_round_trip() {
    let source = Server::reused().await;
    fill(&source).await;
    let expected = fixtures::stored(&source, "").await;
    assert_eq!(expected.as_object().unwrap().len(), STORED);
    for file in ["export.yml", "export.json"] {
        let shell = Shell::of(&source);
        shell.run(&["export", "--file", file]).expect(0);
        let target = Server::reused().await;
        let path = shell.file(file);
        let run = Shell::of(&target).run(&["import", path.to_str().unwrap()]);
        let summary = run.expect(0).json();
        assert_eq!(summary["set"], json!(STORED));
        assert_eq!(summary["failed"], json!(0));
        assert_eq!(fixtures::stored(&target, "").await, expected, "{file}");
        assert_regenerates_below_the_imported_ca(&target).await;
    }
}

#[tokio::test]
async fn an_export_can_be_piped_into_an_import() {
    let source = Server::reused().await;
    fill(&source).await;
    let target = Server::reused().await;
    let exported = Shell::of(&source).run("export").expect(0).output;
    let run = Shell::of(&target).run_with("import - --output json", &exported);
    run.expect(0);
    let actual = fixtures::stored(&target, "").await;
    assert_eq!(actual, fixtures::stored(&source, "").await);
}

/// Regenerates the leaf of the chain and checks its signer.
async fn assert_regenerates_below_the_imported_ca(server: &Server) {
    let issuer = &fixtures::stored(server, "/chain").await["/chain/inner/2"][1];
    let before = &fixtures::stored(server, "/chain").await["/chain/leaf"][1];
    let leaf = server.regenerated("/chain/leaf").await;
    let leaf = &leaf["value"];
    assert_ne!(leaf["certificate"], before["certificate"]);
    assert_eq!(leaf["ca"], issuer["certificate"]);
    let (leaf, issuer) = (pem(&leaf["certificate"]), pem(&issuer["certificate"]));
    let (leaf, issuer) = (parsed(&leaf), parsed(&issuer));
    leaf.verify_signature(Some(issuer.public_key())).unwrap();
    assert_eq!(leaf.issuer(), issuer.subject());
}

fn pem(text: &Value) -> Pem {
    let text = text.as_str().unwrap().as_bytes();
    Pem::read(std::io::Cursor::new(text)).unwrap().0
}

fn parsed(pem: &Pem) -> X509Certificate<'_> {
    pem.parse_x509().unwrap()
}

/// The number of credentials that [`fill`] stores.
const STORED: usize = 24;

/// Stores set and generated credentials of every type, a certificate chain, metadata, and unusual names and values.
async fn fill(server: &Server) {
    let long_name = format!("/{}", "n".repeat(254));
    let key = json!({"private_key": "-----BEGIN-----\nkey\n-----END-----\n"});
    let text = "ssh-rsa AAAAB3NzaC1yc2E= me";
    for (name, credential_type, value) in [
        ("/text/a:b(c)[d]/e.f-g_h", "value", json!("yes")),
        ("/Text/Mixed/CASE", "value", json!("12345678901234567890")),
        ("/true", "password", json!("*not an alias")),
        (&long_name, "password", json!("  a\r\n\tb\n\n")),
        (
            "/007",
            "value",
            json!("\u{0}\u{7f}\u{85}\u{2028}\u{feff}😀é"),
        ),
        ("/json/empty", "json", json!({})),
        (
            "/json/deep",
            "json",
            json!({"": {"<<": [[], {}, [{"a: b": "- c"}]]}, "null": null, "y": "no"}),
        ),
        ("/user/alone", "user", json!({"password": "~"})),
        (
            "/user/both",
            "user",
            json!({"username": "null", "password": "p: q"}),
        ),
        ("/rsa/private", "rsa", key.clone()),
        ("/rsa/public", "rsa", json!({"public_key": "any text"})),
        (
            "/ssh/set",
            "ssh",
            json!({"public_key": text, "private_key": "p"}),
        ),
    ] {
        server.stored(name, credential_type, value).await;
    }
    for (name, credential_type) in [
        ("/made/password", "password"),
        ("/made/user", "user"),
        ("/made/rsa", "rsa"),
        ("/made/ssh", "ssh"),
    ] {
        let made = server.generate(name, credential_type, json!({}));
        made.await.expect(200);
    }
    for (name, parameters) in [
        ("/chain/root", json!({"is_ca": true})),
        (
            "/chain/inner/1",
            json!({"is_ca": true, "ca": "/chain/root"}),
        ),
        (
            "/chain/inner/2",
            json!({"is_ca": true, "ca": "/chain/inner/1"}),
        ),
        ("/chain/leaf", json!({"ca": "/chain/inner/2"})),
        ("/alone/self-signed", json!({"self_sign": true})),
        ("/another/ca", json!({"is_ca": true})),
    ] {
        server.issued(name, parameters).await;
    }
    let certificate = fixtures::stored(server, "/chain").await["/chain/leaf"][1].clone();
    let value = json!({"ca": certificate["ca"], "certificate": certificate["certificate"]});
    let set = server.set("/alone/without-key", "certificate", value);
    set.await.expect(200);
    let body = r#"{"name":"/json/numbers","type":"json","metadata":{"big":123456789012345678901234567890,"text":"a: b","list":[null]},
        "value":{"big":123456789012345678901234567890,"small":1e-400,"exact":1.10,"zero":-0.0}}"#;
    let request = server.authorized(reqwest::Method::PUT, "/api/v1/data");
    server.send(request.body(body)).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_import_that_runs_again_reaches_the_same_state() {
    let source = Server::start().await;
    source.issued("/z/ca", json!({"is_ca": true})).await;
    source.issued("/a/leaf", json!({"ca": "/z/ca"})).await;
    let shell = Shell::of(&source);
    shell.run("export --file export.yml").expect(0);
    let mut file = std::fs::read_to_string(shell.file("export.yml")).unwrap();
    for index in 0..ENTRIES {
        writeln!(
            file,
            "- {{name: /many/{index}, type: user, value: {{password: p{index}}}, metadata: {{i: {index}}}}}"
        )
        .unwrap();
    }

    let undisturbed = Server::start().await;
    let shell = Shell::of(&undisturbed);
    fixtures::file(&shell, "file", &file);
    shell.run("import file").expect(0);
    let expected = fixtures::stored(&undisturbed, "").await;
    assert_eq!(expected.as_object().unwrap().len(), ENTRIES + 2);

    let server = Arc::new(Server::start().await);
    let (gate, blocker) = gate();
    let shell = proxy_to(&server, blocker).shell();
    fixtures::file(&shell, "file", &file);
    let mut killed = shell.start("import file --parallel 2");
    for _ in 0..2 {
        gate.wait();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    drop(gate);
    assert_eq!(count(&server).await, SET_BEFORE_KILL);

    let shell = Shell::of(&server);
    fixtures::file(&shell, "file", &file);
    let again = shell.run("import file --skip-unchanged").expect(0);
    let summary = again.json();
    assert_eq!(summary["unchanged"], json!(SET_BEFORE_KILL));
    assert_eq!(fixtures::stored(&server, "").await, expected);

    let everything = shell.run("import file").expect(0);
    let summary = everything.json();
    assert_eq!(summary["set"], json!(ENTRIES + 2));
    assert_eq!(fixtures::stored(&server, "").await, expected);
    assert_eq!(server.versions("/a/leaf").await.len(), 2);
}

#[tokio::test]
async fn skip_unchanged_sets_entries_that_differ_in_any_part() {
    let server = Server::reused().await;
    let shell = Shell::of(&server);
    let mut versions = 0;
    for (entry, is_set) in [
        ("{name: /a, type: json, value: {a: 1, b: [x]}}", true),
        ("{name: /A, type: json, value: {b: [x], a: 1}}", false),
        ("{name: /a, type: json, value: {b: [x], a: 1.0}}", true),
        ("{name: /a, type: json, value: {b: [x], a: '1.0'}}", true),
        (
            "{name: /a, type: json, value: {b: [x], a: '1.0'}, metadata: {m: 1}}",
            true,
        ),
        (
            "{name: /a, type: json, value: {b: [x], a: '1.0'}, metadata: {m: 1}}",
            false,
        ),
        (
            "{name: /a, type: json, value: {b: [x]}, metadata: {m: 1}}",
            true,
        ),
    ] {
        fixtures::file(&shell, "file", &format!("credentials: [{entry}]\n"));
        let run = shell.run("import file --skip-unchanged").expect(0);
        let summary = run.json();
        assert_eq!(summary["set"], json!(usize::from(is_set)), "{entry}");
        versions += usize::from(is_set);
        assert_eq!(server.versions("/a").await.len(), versions, "{entry}");
    }
}

/// Starts a proxy in front of a server. It forwards [`SET_BEFORE_KILL`] requests. The last of these and all later requests
/// block until the test drops its end of the channel, and then get no response.
fn proxy_to(server: &Arc<Server>, blocker: Blocker) -> Stub {
    // The stub outlives the test, so it must not keep the server running.
    let (server, runtime, count) = (
        Arc::downgrade(server),
        Handle::current(),
        AtomicUsize::new(0),
    );
    Stub::start(move |request, _, _| {
        let forward = || {
            let server = server.upgrade().unwrap();
            let path = request.line.strip_prefix("PUT ").unwrap();
            let forwarded = server.authorized(Method::PUT, path);
            let forwarded = forwarded.body(request.body.clone());
            runtime.block_on(server.send(forwarded)).expect(200).body
        };
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        if number < SET_BEFORE_KILL {
            return Reply::new(200, &forward());
        }
        if number == SET_BEFORE_KILL {
            forward();
        }
        blocker.block();
        Reply::lost()
    })
}

async fn count(server: &Server) -> usize {
    let found = server.get_json("/api/v1/data?path=").await;
    found["credentials"].as_array().unwrap().len()
}

const ENTRIES: usize = 40;

/// The number of entries that are set before the import is killed, including one of the two requests in progress.
const SET_BEFORE_KILL: usize = 12;

/// `KEYWRIGHT_TEST_TRANSFER_ENTRIES` sets the number of entries, for a test with many small entries.
#[tokio::test]
async fn memory_does_not_grow_with_imports_and_exports() {
    let wanted = std::env::var("KEYWRIGHT_TEST_TRANSFER_ENTRIES").ok();
    let (entries, value_bytes) = wanted.map_or((MANY, VALUE_BYTES), |wanted| {
        (wanted.parse().unwrap(), SMALLER_VALUE_BYTES)
    });
    let growth_max = GROWTH_KIBIBYTES_MAX + entries as u64 * NAME_BYTES_MAX / 1_024;
    let server = Server::reused().await;
    let shell = Shell::of(&server);
    fixtures::file(&shell, "few.yml", &listing(FEW, value_bytes));
    fixtures::file(&shell, "many.yml", &listing(entries, value_bytes));
    let few = memory_of_several(&shell, &["import", "few.yml"]);
    let many = shell.memory_of("import many.yml");
    println!("import: {few} KiB for {FEW}, {many} KiB for {entries}");
    assert!(many < few + growth_max);
    for format in ["json", "yaml"] {
        let arguments = ["export", "--force", "--file", "export", "--format", format];
        let few = memory_of_several(&shell, &[&arguments[..], &["--path", "/few"]].concat());
        let many = shell.memory_of(&arguments);
        println!("export: {few} KiB for nothing, {many} KiB for {entries}");
        assert!(many < few + growth_max);
        let exported = fs::metadata(shell.file("export")).unwrap().len();
        assert!(exported > (entries * value_bytes) as u64);
    }
}

/// Returns the maximum of several runs. On a busy machine, a short run may end before the last measurement.
fn memory_of_several(shell: &Shell, arguments: &[&str]) -> u64 {
    (0..FEW_RUNS)
        .map(|_| shell.memory_of(arguments))
        .max()
        .unwrap()
}

fn listing(count: usize, value_bytes: usize) -> String {
    let value = "v".repeat(value_bytes);
    let mut listing = "credentials:\n".to_owned();
    for index in 0..count {
        writeln!(
            listing,
            "- {{name: /large/{index}, type: value, value: {value}}}"
        )
        .unwrap();
    }
    listing
}

/// The maximum growth of the memory: less than half the size of all values.
const GROWTH_KIBIBYTES_MAX: u64 = 16 * 1_024;

/// The additional memory per name: in the response with all names, in their list, and as a hash.
const NAME_BYTES_MAX: u64 = 768;

const VALUE_BYTES: usize = 60_000;
const SMALLER_VALUE_BYTES: usize = 4_000;
const FEW: usize = 20;
const FEW_RUNS: usize = 5;
const MANY: usize = 600;

#[test]
fn too_many_concurrent_requests_are_refused() {
    let shell = Shell::new();
    for command in ["export", "import file"] {
        for parallel in ["0", "65", "x"] {
            let run = shell.run(&format!("{command} --parallel {parallel}"));
            let errors = run.expect(2).errors;
            errors.assert_contains("must be a whole number from 1 to 64");
        }
    }
}
