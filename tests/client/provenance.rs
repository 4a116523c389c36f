//! The provenance of generated credentials in exports and imports.

use keywright_harness::{Options, Reply, Server, Shell, Stub, Text};
use serde_json::{Value, json};

use crate::fixtures;

async fn provenance(server: &Server, name: &str) -> Value {
    let query = format!("/api/v1/data?current=true&provenance=true&name={name}");
    let version = server.get_json(&query).await["data"][0].take();
    json!([
        version["generated_by"],
        version["parameters"],
        version["imported"]
    ])
}

#[tokio::test]
async fn imported_credentials_keep_plugin_and_parameters() {
    let options = Options::default()
        .plugin("app-svid", "svid", &["random", "signing"], "")
        .plugin("ecdsa", "ecdsa", &["random"], "");
    let source = Server::start_with(&options).await;
    let parameters = json!({"length": 40, "include_special": true});
    source
        .generated("/password", "password", parameters.clone())
        .await;
    let user = json!({"username": "007"});
    source.generated("/user", "user", user).await;
    source.issued("/ca", json!({"is_ca": true})).await;
    source.issued("/leaf", json!({"ca": "/ca"})).await;
    // The export contains this credential before its CA.
    let issued = json!({"ca": "/ca"});
    source.generated("/app", "app-svid", issued).await;
    source.generated("/key", "ecdsa", json!({})).await;
    let names = ["/app", "/key", "/password", "/user", "/ca", "/leaf"];
    for file in ["export.yml", "export.json"] {
        let shell = Shell::of(&source);
        shell.run(&["export", "--file", file]).expect(0);
        let path = shell.file(file);
        let target = Server::start_with(&options).await;
        let shell = Shell::of(&target);
        let import = ["import", path.to_str().unwrap(), "--skip-unchanged"];
        for (set, unchanged) in [(names.len(), 0), (0, names.len())] {
            let run = shell.run(&import).expect(0);
            assert_eq!(run.json()["set"], json!(set), "{run:?}");
            assert_eq!(run.json()["unchanged"], json!(unchanged), "{run:?}");
            assert_eq!(run.json()["without_provenance"], json!(0), "{run:?}");
        }
        for name in names {
            let mut expected = provenance(&source, name).await;
            assert_eq!(expected[2], json!(false));
            expected[2] = json!(true);
            assert_eq!(provenance(&target, name).await, expected, "{name}");
        }

        let shown = shell.run("get /password --provenance --output table");
        let shown = shown.expect(0).output;
        shown.assert_contains("sha256:");
        shown.assert_contains("\"length\":40");
        let digest = provenance(&source, "/password").await[0].clone();
        let found = shell.run(&["find", "--generated-by", digest.as_str().unwrap()]);
        let found = found.expect(0).json();
        assert_eq!(found["credentials"][0]["imported"], json!(true));
        target
            .generated("/password", "password", parameters.clone())
            .await;
        assert_eq!(target.versions("/password").await.len(), 1);
        for name in names {
            shell.run(&["regenerate", name]).expect(0);
        }
        let password = &target.versions("/password").await[0]["value"];
        assert_eq!(password.as_str().unwrap().len(), 40);
    }
}

#[tokio::test]
async fn a_value_with_refused_parameters_is_imported_with_a_warning() {
    let server = Server::reused().await;
    let shell = Shell::of(&server);
    let file = format!(
        "credentials:\n- {{name: /good, type: password, value: a, generated_by: {DIGEST}, parameters: {{length: 4}}}}\n\
         - {{name: /bad, type: password, value: secret, generated_by: {DIGEST}, parameters: {{length: 3}}}}\n"
    );
    fixtures::file(&shell, "file", &file);
    for (set, unchanged) in [(2, 0), (0, 2)] {
        let run = shell.run("import file --skip-unchanged").expect(0);
        let summary = run.json();
        assert_eq!(
            (&summary["set"], &summary["unchanged"]),
            (&json!(set), &json!(unchanged))
        );
        assert_eq!(summary["failed"], json!(0));
        assert_eq!(summary["without_provenance"], json!(1));
        let warning =
            "warning: /bad (entry 2, line 3): imported without generated_by and parameters: ";
        run.errors.assert_contains(warning);
        run.errors.assert_contains("length");
        run.errors.assert_lacks("secret");
    }
    assert_eq!(server.versions("/bad").await[0]["value"], "secret");
    assert_eq!(provenance(&server, "/bad").await[0], Value::Null);
    assert_eq!(provenance(&server, "/good").await[0], DIGEST);
}

#[tokio::test]
async fn a_server_that_rejects_provenance_still_gets_the_value() {
    let stub = Stub::start(|request, _, _| {
        if request.body.contains("generated_by") {
            return Reply::new(422, r#"{"error": "unrecognized parameter 'generated_by'"}"#);
        }
        Reply::new(200, fixtures::VERSION)
    });
    let shell = stub.shell();
    let entry =
        format!("{{name: /a, type: value, value: v, generated_by: {DIGEST}, parameters: {{}}}}");
    fixtures::file(&shell, "file", &format!("credentials: [{entry}]\n"));
    let run = shell.run("import file").expect(0);
    assert_eq!(run.json()["set"], json!(1));
    run.errors.assert_contains("unrecognized parameter");
}

#[tokio::test]
async fn an_entry_with_half_of_the_provenance_fails() {
    let server = Server::reused().await;
    let shell = Shell::of(&server);
    for (fields, reason) in [
        (
            "parameters: {}",
            "generated_by is required if parameters is given",
        ),
        (
            "generated_by: x",
            "parameters is required if generated_by is given",
        ),
        (
            "generated_by: x, parameters: []",
            "parameters must be a mapping",
        ),
        (
            "generated_by: [], parameters: {}",
            "generated_by must be a string",
        ),
    ] {
        let entry = format!("{{name: /a, type: password, value: v, {fields}}}");
        fixtures::file(&shell, "file", &format!("credentials: [{entry}]\n"));
        let run = shell.run("import file").expect(3);
        run.errors.assert_contains(reason);
    }
    assert!(server.versions("/a").await.is_empty());
}

const DIGEST: &str = "sha256:abababababababababababababababababababababababababababababababab";
