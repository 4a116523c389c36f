//! The shipped plugins that derive values from other credentials.

use std::fs;

use keywright_harness::{
    Commanded, Options, ReusedServer, Server, Text, component, run_program, workspace,
};
use serde_json::json;

use crate::inputs::{find_derived_from, set};

async fn shipped() -> ReusedServer {
    Server::reused_with(&Options::default().beyond_the_specification()).await
}

/// Returns the hash that OpenSSL computes from a password and the salt of another hash.
fn openssl_hash(password: &str, hash: &str) -> String {
    let salt = hash.split('$').nth(2).unwrap();
    let arguments = ["passwd", "-6", "-salt", salt, "-stdin"];
    let printed = Commanded::run("openssl", &arguments, password)
        .expect(0)
        .output;
    printed.trim().to_owned()
}

#[tokio::test]
async fn htpasswd_lines_have_hashes_that_openssl_confirms() {
    let server = shipped().await;
    let user = server.generate("/user", "user", json!({"username": "ada"}));
    let user = user.await.expect(200).json();
    set(&server, "/password", "pä$s w0rd").await;
    let unusable = json!({"username": "a:b", "password": "x"});
    server.stored("/unusable", "user", unusable).await;
    for (parameters, username, password) in [
        (
            json!({"credential": "/user"}),
            "ada",
            user["value"]["password"].as_str().unwrap(),
        ),
        (
            json!({"credential": "password", "username": "grace"}),
            "grace",
            "pä$s w0rd",
        ),
        (
            json!({"credential": "/unusable", "username": "eve"}),
            "eve",
            "x",
        ),
    ] {
        let name = format!("/line/{username}");
        let made = server.generate(&name, "htpasswd", parameters).await;
        let value = made.expect(200).json()["value"].clone();
        let hash = value["password_hash"].as_str().unwrap();
        assert_eq!(openssl_hash(password, hash), hash);
        assert_ne!(openssl_hash("another", hash), hash);
        assert_eq!(value["line"], format!("{username}:{hash}"));
    }
    for (parameters, named) in [
        (json!({"credential": "/password"}), "username"),
        (
            json!({"credential": "/user", "username": "a:b"}),
            "username",
        ),
        (
            json!({"credential": "/user", "username": "a\nb"}),
            "username",
        ),
        (json!({}), "credential"),
        (json!({"credential": "/line/ada"}), "credential"),
    ] {
        let refused = server.generate("/refused", "htpasswd", parameters).await;
        refused.expect_error(400, named);
    }
}

#[tokio::test]
async fn connection_strings_follow_their_credentials() {
    let server = shipped().await;
    let user = json!({"username": "ada", "password": "p@ss/1"});
    server.stored("/user", "user", user).await;
    let value = json!({"host": "db.example", "port": 5432});
    server.stored("/db", "json", value).await;
    let parameters = json!({
        "template": "postgres://{user.username}:{user.password}@{db.host}:{db.port}/app",
        "credentials": {"user": "/user", "db": "/db"},
    });
    let generate = async || {
        let made = server
            .generate("/url", "connection-string", parameters.clone())
            .await;
        made.expect(200).json()
    };
    let first = generate().await;
    assert_eq!(
        first["value"],
        "postgres://ada:p%40ss%2F1@db.example:5432/app"
    );
    assert_eq!(generate().await["id"], first["id"]);
    let user = json!({"username": "ada", "password": "renewed"});
    server.stored("/user", "user", user).await;
    let actual = find_derived_from(&server, "/user").await;
    assert_eq!(actual, json!([["/url", true]]));
    let actual = find_derived_from(&server, "/db").await;
    assert_eq!(actual, json!([["/url", false]]));
    assert_eq!(
        generate().await["value"],
        "postgres://ada:renewed@db.example:5432/app"
    );
    for (template, named) in [
        (
            "{user.absent}",
            "template has the placeholder {user.absent}, which names a missing field",
        ),
        ("{user}", "template"),
        (
            "{user",
            "template must have a closing brace for each opening brace; write all other braces",
        ),
        ("{other}", "credentials"),
    ] {
        let parameters = json!({"template": template, "credentials": {"user": "/user"}});
        let refused = server
            .generate("/refused", "connection-string", parameters)
            .await;
        let error = refused.expect(400).error();
        error.assert_contains(named);
        error.assert_lacks("renewed");
    }
}

#[tokio::test]
async fn a_connection_string_beyond_the_limit_of_a_value_is_400() {
    const LIMIT: usize = 65_536;
    let server = shipped().await;
    let generate = async |template: &str| {
        let parameters = json!({"template": template, "credentials": {"a": "/long"}});
        server
            .generate("/url", "connection-string", parameters)
            .await
    };
    set(&server, "/long", &" ".repeat(LIMIT / 3)).await;
    let longest = generate("{a}b").await.expect(200).json();
    assert_eq!(longest["value"].as_str().unwrap().len(), LIMIT);
    generate("{a}bc").await.expect_error(400, "template");
    set(&server, "/long", &" ".repeat(60_000)).await;
    for repeated in [1, 1_301] {
        let template = "{a}".repeat(repeated);
        generate(&template).await.expect_error(400, "template");
    }
}

#[test]
fn plugins_with_inputs_are_tested_with_examples_or_given_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let vectors = folder.path().join("vectors.json");
    let user = json!({"type": "user", "value": {"username": "ada", "password": "p@ss"}});
    let parameters = json!({
        "template": "{u.username}:{u.password}",
        "credentials": {"u": "/user"},
    });
    let expectations = json!([
        {"parameters": parameters, "value": "example:an%20example"},
        {"parameters": parameters, "inputs": {"user": user}, "value": "ada:p%40ss"},
        {"parameters": parameters, "inputs": {"/user": {"type": "json", "value": {}}}, "refused": "template"},
    ]);
    fs::write(&vectors, expectations.to_string()).unwrap();
    let file = component("connection-string");
    let file = file.to_str().unwrap();
    let arguments = [
        "plugin",
        "test",
        file,
        "--vectors",
        vectors.to_str().unwrap(),
    ];
    let run = run_program(&workspace(), &arguments, &[]).expect(0);
    run.output.assert_contains("test vector 3");

    let parameters = parameters.to_string();
    let inputs = json!({"/user": user}).to_string();
    let arguments = [
        "plugin",
        "run",
        file,
        "--parameters",
        &parameters,
        "--inputs",
        &inputs,
    ];
    let run = run_program(&workspace(), &arguments, &[]).expect(0);
    run.output.assert_lacks("p%40ss");
    let arguments = [&arguments[..], &["--reveal"]].concat();
    let run = run_program(&workspace(), &arguments, &[]).expect(0);
    assert_eq!(run.output.trim(), r#""ada:p%40ss""#);

    let run = run_program(&workspace(), &["plugin", "inspect", file], &[]).expect(0);
    run.output.assert_contains("grants = [\"inputs\"]");
    run.output
        .assert_contains("named by the parameters credentials");
    let random = component("deriving");
    let arguments = ["plugin", "test", random.to_str().unwrap()];
    run_program(&workspace(), &arguments, &[]).expect(0);
}
