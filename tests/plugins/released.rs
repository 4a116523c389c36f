//! Components for a released version of the WIT packages run in the current server, alongside components for the current
//! version.
//!
//! To release a version:
//!
//! 1. Copy the packages in `wit/` to `wit/released/`, into a folder such as `0.1.0`.
//! 2. Copy `tests/guests/current` to `tests/guests/released/`, into a folder such as `0_1_0`.
//! 3. Add the digests of the copied files, except Cargo manifests, to `wit/released/SHA256SUMS`.
//! 4. Add the new version to [`VERSIONS`].

use std::{collections::BTreeSet, fmt::Write, fs, path::Path};

use aws_lc_rs::digest::{SHA256, digest};
use keywright_harness::{Options, Server, Text, component, workspace};
use serde_json::{Value, json};
use wit_parser::{Resolve, Stability};
use x509_parser::pem::parse_x509_pem;

use crate::signing::{body, renewed};

/// A version of the WIT packages that the server supports.
struct Version {
    number: &'static str,
    /// The folder with its packages.
    wit: &'static str,
    /// The folder with the sources of its guests.
    guests: &'static str,
    /// The prefix of its guests' components.
    components: &'static str,
    /// The suffix of its guests' credential types.
    types: &'static str,
    /// The first version of the server that supports it.
    first_server: &'static str,
}

/// All versions, oldest first; the last is the current one.
const VERSIONS: [Version; 2] = [
    Version {
        number: "0.1.0",
        wit: "wit/released/0.1.0",
        guests: "tests/guests/released/0_1_0",
        components: "released-0-1-0",
        types: "0-1-0",
        first_server: "0.1.0",
    },
    Version {
        number: "0.2.0",
        wit: "wit",
        guests: "tests/guests/current",
        components: "current",
        types: "current",
        first_server: "0.1.0",
    },
];

/// The kinds of plugins. Each version has one guest of each kind, in a folder of this name.
const KINDS: [&str; 3] = ["generator", "issued", "resolver"];

/// The requested duration of certificates, in days.
const DURATION_DAYS: i64 = 2;
/// The maximum number of attempts until a call starts and ends in the same second.
const ATTEMPTS_MAX: usize = 1_000;

#[tokio::test]
async fn guests_of_all_versions_run_in_one_server() {
    let server = Server::start_with(&options(&VERSIONS[0])).await;
    let (authority, leaf) = certificates(&server).await;
    server.stored("/found", "json", json!({"a": 1})).await;
    for version in &VERSIONS {
        assert_generates(&server, version).await;
        assert_signs(&server, version, &authority, &leaf).await;
    }
    // A server has only one resolver.
    assert_resolves(&server).await;
    for version in &VERSIONS[1..] {
        let reported = server.reload_plugins(&options(version)).await;
        reported.assert_contains("new calls use them");
        assert_resolves(&server).await;
        assert_generates(&server, &VERSIONS[0]).await;
    }
}

/// Returns options for a server with the generators of all versions and the resolver of one version.
fn options(of_resolver: &Version) -> Options {
    let section =
        |file: &str, more: &str| format!("component = \"{}\"\n{more}", component(file).display());
    let signing = r#"grants = ["random", "signing"]"#;
    let plain = "grants = [\"random\"]\nsettings = { size = 3 }";
    let mut options = Options::default()
        .without_plugins()
        .generator("certificate", &section("certificate", signing));
    for version in &VERSIONS {
        let Version {
            components, types, ..
        } = version;
        options = options
            .generator(
                &format!("plain-{types}"),
                &section(&format!("{components}-generator"), plain),
            )
            .generator(
                &format!("issued-{types}"),
                &section(&format!("{components}-issued"), signing),
            );
    }
    let resolver = section(&format!("{}-resolver", of_resolver.components), "");
    options.extra(&format!("[resolver]\n{resolver}"))
}

/// Generates, converges, regenerates and sets a value, regenerates the set value, and sends invalid parameters.
async fn assert_generates(server: &Server, version: &Version) {
    let credential_type = &format!("plain-{}", version.types);
    let (made_name, set_name) = (
        &format!("/made-{}", version.types),
        &format!("/set-{}", version.types),
    );
    let generate = async |parameters| {
        server
            .generate(made_name, credential_type, parameters)
            .await
    };
    let first = generate(json!({})).await.expect(200).json();
    let value = &first["value"];
    assert_eq!(value["given"], json!({"label": "normalized"}));
    assert_eq!(value["settings"], json!({"size": 3}));
    assert_eq!(value["secret"].as_str().unwrap().len(), 32);
    assert_eq!(
        generate(json!({})).await.expect(200).json()["id"],
        first["id"]
    );
    let second = server.regenerated(made_name).await;
    assert_ne!(second["value"]["secret"], value["secret"]);
    assert_eq!(second["value"]["given"], value["given"]);
    let wrong = generate(json!({"label": "wrong"})).await.expect(400);
    let rule = "must be normalized or recovered";
    assert!(wrong.error().contains(rule), "{}", wrong.body);

    let set = server.set(set_name, credential_type, json!({"secret": "s"}));
    let set = set.await.expect(200).json();
    assert_eq!(set["value"], json!({"accepted": true, "secret": "s"}));
    let regenerated = server.regenerated(set_name).await;
    assert_eq!(regenerated["value"]["given"], json!({"label": "recovered"}));
}

/// Generates a CA and a certificate signed by it.
async fn certificates(server: &Server) -> (Value, Value) {
    let authority = server.generate_authority("/authority", None).await;
    (
        authority,
        server.issued("/leaf", json!({"ca": "/authority"})).await,
    )
}

/// Asserts that the guest can read all data of its issuer, and that the issuer signs a valid body and refuses an invalid
/// one.
async fn assert_signs(server: &Server, version: &Version, authority: &Value, leaf: &Value) {
    let credential_type = &format!("issued-{}", version.types);
    let name = &format!("/issued-{}", version.types);
    let value = async |tbs_certificate: &[u8]| {
        let parameters = json!({
            "ca": "/authority",
            "duration": DURATION_DAYS,
            "tbs_certificate": hex::encode(tbs_certificate),
        });
        let made = server.generate_in_mode("overwrite", name, credential_type, parameters);
        made.await.expect(200).json()["value"].clone()
    };
    let refused = value(b"no body").await;
    let rule = refused["signed"].as_str().unwrap();
    assert!(rule.starts_with("refused: "), "{rule}");

    // The validity must start in the second of the call.
    for _ in 0..ATTEMPTS_MAX {
        let body = renewed(&body(leaf), DURATION_DAYS);
        let value = value(&body).await;
        let signed = value["signed"].as_str().unwrap();
        if signed.contains("the validity must not begin") {
            continue;
        }
        signed.assert_contains(&hex::encode(&body));
        let pem = authority["value"]["certificate"].as_str().unwrap();
        let der = hex::encode(parse_x509_pem(pem.as_bytes()).unwrap().1.contents);
        assert_eq!(value["issuer"]["certificate"], der);
        for field in ["signature_algorithm", "subject", "subject_key_identifier"] {
            let learned = value["issuer"][field].as_str().unwrap();
            assert!(!learned.is_empty() && der.contains(learned), "{field}");
        }
        server.regenerated(name).await;
        return;
    }
    panic!("no call started and ended in the same second");
}

async fn assert_resolves(server: &Server) {
    let interpolate = async |document| server.post("/api/v1/interpolate", document).await;
    let found = interpolate(json!({"place": 0})).await.expect(200).json();
    assert_eq!(found, json!({"place": {"a": 1}}));
    let refused = interpolate(json!({"other": 0})).await.expect(400);
    assert!(refused.error().contains("must have a place"));
}

/// The file with the table, and the lines before and after it.
const PUBLISHED: &str = "wit/README.md";
const BEGIN: &str = "<!-- versions: written by `cargo xtask golden` -->\n";
const END: &str = "<!-- end of versions -->\n";

/// Compares the table in the file with the current table, or updates it.
#[test]
fn the_golden_table_of_versions_is_current() {
    let path = workspace().join(PUBLISHED);
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (published, after) = rest.split_once(END).unwrap();
    let shown = table();
    if std::env::var_os("KEYWRIGHT_REFRESH_GOLDEN_FILES").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{shown}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(
        published, shown,
        "{PUBLISHED}: run `cargo xtask golden` if the change is intended"
    );
}

fn table() -> String {
    let mut table = String::from(
        "\n| WIT | First server | Runs in | Kinds of plugins | Additions | Tested with |\n|---|---|---|---|---|---|\n",
    );
    for version in &VERSIONS {
        // Writing to a string does not fail.
        let _ = writeln!(
            table,
            "| `{}` | {} | {} | {} | {} | `{}` |",
            version.number,
            version.first_server,
            env!("CARGO_PKG_VERSION"),
            KINDS.map(|kind| format!("`{kind}`")).join(", "),
            additions(version),
            version.guests,
        );
    }
    table.push('\n');
    table
}

/// Returns the interfaces that a version added, and the functions that it added to earlier interfaces.
fn additions(version: &Version) -> String {
    if version.number == VERSIONS[0].number {
        return "everything else".to_owned();
    }
    let resolve = packages(version);
    let mut added = Vec::new();
    for (_, interface) in &resolve.interfaces {
        let Some(package) = interface.package.map(|id| &resolve.packages[id].name) else {
            continue;
        };
        if package.namespace != "keywright" {
            continue;
        }
        let actual = package.version.as_ref().unwrap().to_string();
        assert_eq!(actual, version.number);
        let name = format!("{}/{}", package.name, interface.name.as_deref().unwrap());
        if is_since(&interface.stability, version) {
            added.push(format!("`{name}`"));
            continue;
        }
        for (function, described) in &interface.functions {
            if is_since(&described.stability, version) {
                added.push(format!("`{name}.{function}`"));
            }
        }
    }
    assert!(!added.is_empty(), "{}", version.number);
    added.join(", ")
}

fn is_since(stability: &Stability, version: &Version) -> bool {
    matches!(stability, Stability::Stable { since, .. } if since.to_string() == version.number)
}

fn packages(version: &Version) -> Resolve {
    let mut resolve = Resolve::default();
    for file in [
        "deps/wasi-random/random.wit",
        "signing/signing.wit",
        "generator/generator.wit",
        "interpolation/interpolation.wit",
    ] {
        let path = workspace().join(version.wit).join(file);
        let text = fs::read_to_string(&path).unwrap();
        resolve.push_str(file, &text).unwrap();
    }
    resolve
}

/// The digests of all released files, as `sha256sum` writes and checks them.
const DIGESTS: &str = "wit/released/SHA256SUMS";

#[test]
fn released_packages_and_guests_are_unchanged() {
    let text = fs::read_to_string(workspace().join(DIGESTS)).unwrap();
    let mut known = BTreeSet::new();
    for line in text.lines() {
        let (expected, file) = line.split_once("  ").unwrap();
        let contents = fs::read(workspace().join(file)).unwrap();
        let found = hex::encode(digest(&SHA256, &contents));
        assert_eq!(found, expected, "{file} is released: it must not change");
        known.insert(file.to_owned());
    }
    let mut released = BTreeSet::new();
    for folder in ["wit/released", "tests/guests/released"] {
        add_files(Path::new(folder), &mut released);
    }
    assert_eq!(
        known, released,
        "{DIGESTS} must list every released file and no other"
    );
}

/// Adds the files of a folder, except Cargo manifests, whose dependencies may be updated.
fn add_files(folder: &Path, files: &mut BTreeSet<String>) {
    for entry in fs::read_dir(workspace().join(folder)).unwrap() {
        let path = folder.join(entry.unwrap().file_name());
        let name = path.display().to_string();
        if workspace().join(&path).is_dir() {
            add_files(&path, files);
        } else if name != DIGESTS && !name.ends_with("Cargo.toml") {
            files.insert(name);
        }
    }
}

#[test]
fn released_versions_have_packages_and_all_guests() {
    let names = |folder: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(workspace().join(folder)).unwrap();
        let entries = entries.map(|entry| entry.unwrap());
        let folders = entries.filter(|entry| entry.path().is_dir());
        folders
            .map(|folder| folder.file_name().into_string().unwrap())
            .collect()
    };
    let (current, released) = VERSIONS.split_last().unwrap();
    assert_eq!(
        names("wit/released"),
        released
            .iter()
            .map(|version| version.number.to_owned())
            .collect()
    );
    assert_eq!(
        names("tests/guests/released"),
        released
            .iter()
            .map(|version| version.number.replace('.', "_"))
            .collect()
    );
    for version in &VERSIONS {
        assert_eq!(names(version.guests), KINDS.map(str::to_owned).into());
    }
    assert_eq!(
        (current.wit, current.guests),
        ("wit", "tests/guests/current")
    );
}
