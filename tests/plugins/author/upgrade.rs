//! `keywright plugin test --against`: pairs of releases. A server with the old release stores credentials, gets the new
//! release, and then does what the command predicted.

use std::{fs, path::PathBuf};

use keywright_harness::{Options, Server, Text, component, release};
use serde_json::{Value, json};

use super::Workshop;

/// The text in which releases of the component `versioned` differ.
const OLD: &str = "release: 1.0.0";

impl Workshop {
    /// Returns the file with a release of the plugin `versioned`.
    fn release(&self, version: &str) -> PathBuf {
        let file = format!("versioned-{version}.wasm");
        let release = release("versioned", (OLD, &format!("release: {version}")));
        self.write(&file, release);
        self.0.path().join(file)
    }

    /// Compares a release with `1.0.0`, and returns the comparison.
    fn compared(&self, new: &str, status: i32) -> Value {
        let (old, new) = (self.release("1.0.0"), self.release(new));
        let [old, new] = [&old, &new].map(|file| file.to_str().unwrap());
        let mut tested = self.json(&["test", new, "--against", old], status);
        tested["upgrade"].take()
    }
}

#[tokio::test]
async fn release_that_changes_nothing_is_compatible() {
    let workshop = Workshop::with(&[]);
    let compared = workshop.compared("1.0.1", 0);
    assert_eq!(compared["verdict"], "compatible");
    let only = json!([{
        "part": "plugin version", "change": "1.0.0, now 1.0.1", "effect": "compatible",
    }]);
    assert_eq!(compared["description"], only);
    let observed = is_as_predicted(&workshop, "1.0.1", &compared).await;
    assert!(observed.iter().all(|(_, outcome)| *outcome == "same"));
}

#[tokio::test]
async fn release_with_a_new_default_changes_what_a_server_does() {
    let workshop = Workshop::with(&[]);
    let compared = workshop.compared("1.1.0", 0);
    assert_eq!(compared["verdict"], "changes");
    let observed = is_as_predicted(&workshop, "1.1.0", &compared).await;
    for expected in [
        ("converge", "changed"),
        ("converge", "same"),
        ("regenerate", "changed"),
    ] {
        assert!(observed.contains(&expected), "{expected:?}: {observed:?}");
    }
    assert!(observed.iter().all(|(_, outcome)| *outcome != "failed"));
}

#[tokio::test]
async fn release_with_a_new_field_changes_regenerated_values() {
    let workshop = Workshop::with(&[]);
    let compared = workshop.compared("1.2.0", 0);
    assert_eq!(compared["verdict"], "changes");
    let observed = is_as_predicted(&workshop, "1.2.0", &compared).await;
    for (operation, outcome) in observed {
        let is_changed = operation.starts_with("regenerate");
        assert_eq!(outcome == "changed", is_changed, "{operation}: {outcome}");
    }
}

#[tokio::test]
async fn incompatible_release_is_reported() {
    let workshop = Workshop::with(&[]);
    let compared = workshop.compared("2.0.0", 3);
    assert_eq!(compared["verdict"], "breaks");
    let observed = is_as_predicted(&workshop, "2.0.0", &compared).await;
    for operation in [
        "converge",
        "regenerate",
        "set",
        "converge-set",
        "regenerate-set",
    ] {
        let has_failed = observed.contains(&(operation, "failed"));
        assert!(has_failed, "{operation}: {observed:#?}");
    }
    assert!(observed.contains(&("converge", "same")), "{observed:?}");
}

/// Performs each predicted operation on a server, and compares its outcome with the prediction. Returns the operations with
/// their outcomes.
async fn is_as_predicted<'c>(
    workshop: &Workshop,
    new: &str,
    compared: &'c Value,
) -> Vec<(&'c str, &'static str)> {
    let options = |version| {
        let options = Options::default().without_plugins();
        options.random_generator(TYPE, &workshop.release(version))
    };
    let server = Server::start_with(&options("1.0.0")).await;
    let mut stored = Vec::new();
    for request in compared["requests"].as_array().unwrap() {
        let parameters = &request["parameters"];
        for prediction in request["predictions"].as_array().unwrap() {
            let name = format!("/{}", stored.len());
            let credential = Stored::new(&server, name, parameters, prediction).await;
            stored.push(credential);
        }
    }
    let reloaded = server.reload_plugins(&options(new)).await;
    reloaded.assert_contains("new calls use them");
    let mut observed = Vec::new();
    for credential in stored {
        let outcome = credential.outcome(&server).await;
        let (parameters, prediction) = (credential.parameters, credential.prediction);
        let expected = &prediction["outcome"];
        assert_eq!(outcome, expected, "{parameters}: {prediction:#}");
        observed.push((prediction["operation"].as_str().unwrap(), outcome));
    }
    assert!(observed.len() >= 30, "{observed:#?}");
    observed
}

/// A credential of the old release, and the prediction for one operation.
struct Stored<'c> {
    name: String,
    parameters: &'c Value,
    prediction: &'c Value,
    /// The response of the server with the old release.
    version: Value,
}

impl<'c> Stored<'c> {
    /// Generates the credential or, for an operation on a set value, generates a value and sets it.
    async fn new(
        server: &Server,
        name: String,
        parameters: &'c Value,
        prediction: &'c Value,
    ) -> Self {
        let mut version = server.generated(&name, TYPE, parameters.clone()).await;
        let operation = prediction["operation"].as_str().unwrap();
        if operation.ends_with("-set") {
            let value = version["value"].take();
            version = server.stored(&name, TYPE, value).await;
        }
        Self {
            name,
            parameters,
            prediction,
            version,
        }
    }

    /// Performs the operation on a server with the new release.
    async fn outcome(&self, server: &Server) -> &'static str {
        let operation = self.prediction["operation"].as_str().unwrap();
        let (name, before) = (&self.name, &self.version);
        let response = match operation {
            "converge" | "converge-set" => {
                server.generate(name, TYPE, self.parameters.clone()).await
            }
            "regenerate" | "regenerate-set" => server.regenerate(name).await,
            "set" => server.set(name, TYPE, before["value"].clone()).await,
            other => panic!("unknown operation {other}"),
        };
        if response.status != 200 {
            response.expect(400);
            return "failed";
        }
        let after = response.json();
        let is_same = match operation {
            "set" => true,
            "converge" | "converge-set" => after["id"] == before["id"],
            _ => {
                let has_same = |field: &str| after["value"][field] == before["value"][field];
                has_same("given") && has_same("algorithm")
            }
        };
        if is_same { "same" } else { "changed" }
    }
}

const TYPE: &str = "versioned";

#[test]
fn text_output_ends_with_the_verdict() {
    let workshop = Workshop::with(&[]);
    let old = workshop.release("1.0.0");
    let old = old.to_str().unwrap();
    for (new, status, expected) in [
        (
            "1.0.1",
            0,
            "ok      plugin version: 1.0.0, now 1.0.1\n\nverdict: compatible (6 requests compared)\n",
        ),
        (
            "1.1.0",
            0,
            "changes converge: adds a version: length: 16, now 24\n          {}\n",
        ),
        (
            "2.0.0",
            3,
            "\nverdict: breaks parameter style, converge, regenerate, set, converge a set value, \
             regenerate a set value (6 requests compared)\n",
        ),
    ] {
        let new = workshop.release(new);
        let arguments = ["test", new.to_str().unwrap(), "--against", old];
        let table = workshop.plugin(&arguments).expect(status).output;
        table.assert_contains(expected);
    }
}

#[test]
fn other_builds_of_shipped_plugins_are_compatible() {
    for name in ["ed25519", "passphrase", "password"] {
        let workshop = Workshop::with(&[name]);
        let file = format!("{name}.wasm");
        // A custom section, which changes only the digest.
        let built = fs::read(component(name)).unwrap();
        let other = [&built[..], b"\x00\x02\x01x"].concat();
        workshop.write("other.wasm", other);
        let tested = workshop.json(&["test", "other.wasm", "--against", &file], 0);
        let upgrade = &tested["upgrade"];
        assert_eq!(upgrade["verdict"], "compatible", "{upgrade:#}");
        assert!(!upgrade["requests"].as_array().unwrap().is_empty());
    }
}

#[tokio::test]
async fn release_without_a_setting_breaks_servers_that_use_it() {
    let workshop = Workshop::with(&[]);
    let files = ["1.3.0", "1.0.0"].map(|version| workshop.release(version));
    let [new, old] = files.each_ref().map(|file| file.to_str().unwrap());
    let plugin_version = json!({
        "part": "plugin version", "change": "1.0.0, now 1.3.0", "effect": "compatible",
    });
    let label = json!({"part": "setting label", "change": "is new", "effect": "compatible"});
    let note = json!({"part": "setting note", "change": "was removed", "effect": "changes"});
    let refusal = json!({
        "part": "settings",
        "change": "invalid settings: note is unknown",
        "effect": "breaks",
    });
    let differences = [plugin_version, label, note, refusal];
    for (given, settings, is_refused) in [
        ("{}", "{}", false),
        (r#"{"note": "hunter2"}"#, r#"{ note = "hunter2" }"#, true),
    ] {
        let arguments = ["test", new, "--against", old, "--settings", given];
        let status = if is_refused { 3 } else { 0 };
        let upgrade = workshop.json(&arguments, status)["upgrade"].take();
        let verdict = if is_refused { "breaks" } else { "changes" };
        assert_eq!(upgrade["verdict"], verdict, "{upgrade:#}");
        let expected = &differences[..if is_refused { 4 } else { 3 }];
        assert_eq!(upgrade["description"], json!(expected));
        let compared = upgrade["requests"].as_array().unwrap();
        assert_eq!(compared.is_empty(), is_refused, "{upgrade:#}");

        let options = |file: &str| {
            let section =
                format!("component = {file:?}\ngrants = [\"random\"]\nsettings = {settings}");
            let options = Options::default().without_plugins();
            options.generator(TYPE, &section)
        };
        let server = Server::start_with(&options(old)).await;
        let reloaded = server.reload_plugins(&options(new)).await;
        let is_refused_by_the_server = reloaded.contains("could not reload the plugins");
        assert_eq!(is_refused_by_the_server, is_refused, "{reloaded}");
    }
}

#[test]
fn release_that_requires_a_setting_breaks_servers_without_it() {
    let workshop = Workshop::with(&[]);
    let compared = workshop.compared("1.4.0", 3);
    assert_eq!(compared["verdict"], "breaks");
    let description = compared["description"].as_array().unwrap();
    for (part, change, effect) in [
        ("setting label", "is now required", "changes"),
        ("settings", "invalid settings: label is required", "breaks"),
    ] {
        let is_listed = description.iter().any(|difference| {
            let text = difference["change"].as_str().unwrap();
            difference["part"] == part && text.starts_with(change) && difference["effect"] == effect
        });
        assert!(is_listed, "{part} {change}: {description:#?}");
    }
}

/// A server refuses the new release under the name of the old type.
#[tokio::test]
async fn release_of_another_type_breaks_the_configuration() {
    let workshop = Workshop::with(&["password", "wireguard"]);
    let arguments = ["test", "password.wasm", "--against", "wireguard.wasm"];
    let tested = workshop.json(&arguments, 3);
    let upgrade = &tested["upgrade"];
    let breaks = json!({
        "part": "credential type", "change": "wireguard, now password", "effect": "breaks",
    });
    assert_eq!(upgrade["description"][0], breaks);
    assert_eq!(upgrade["requests"], json!([]));
    let options = |plugin| Options::default().random_generator("wireguard", &component(plugin));
    let server = Server::start_with(&options("wireguard")).await;
    let reloaded = server.reload_plugins(&options("password")).await;
    reloaded.assert_contains("could not reload the plugins");
}

#[test]
fn missing_old_release_is_reported_before_the_tests() {
    let workshop = Workshop::with(&["wireguard"]);
    let line = "test wireguard.wasm --against absent.wasm";
    workshop.fails(line, 1, "the file does not exist");
}
