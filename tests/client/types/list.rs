//! `keywright types`.

use keywright_harness::{Options, Server, Shell, component};
use serde_json::Value;

use crate::{
    json_of,
    stub::{Reply, Stub},
};

/// A server that has a type besides the shipped ones.
async fn server() -> Server {
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\"]",
        component("wireguard").display()
    );
    Server::start_with(&Options::default().generator("wireguard", &section)).await
}

#[tokio::test]
async fn in_a_pipe_the_types_come_as_the_server_tells_them() {
    let server = server().await;
    let shell = Shell::of(&server);
    let told = server.get("/api/v1/types").await.expect(200).json();
    assert_eq!(json_of(shell.run(&["types"])), told["types"]);
    let types = told["types"].as_array().unwrap();
    let wireguard = types.iter().find(|one| one["name"] == "wireguard");
    for name in ["wireguard", "WireGuard"] {
        let shown: Value = json_of(shell.run(&["types", name]));
        assert_eq!(Some(&shown), wireguard);
    }
}

#[tokio::test]
async fn what_is_shown_of_a_type_of_its_own_is_what_generate_takes() {
    let server = server().await;
    let shell = Shell::of(&server);
    let generate = |name: &'static str, parameter: &'static str| {
        shell.run(&["generate", name, "-t", "wireguard", "--param", parameter])
    };
    let members = |made: Value| made["value"].as_object().unwrap().len();
    let with = json_of(generate("/with", "preshared_key=true"));
    let key = with["value"]["preshared_key"].as_str().unwrap().to_owned();
    assert_eq!(key.len(), 44, "{key}");
    assert_eq!(server.versions("/with").await[0]["value"], with["value"]);
    let without = json_of(generate("/without", "preshared_key=false"));
    assert_eq!(members(without), members(with) - 1);
    for (parameter, words) in [
        ("preshared_key=perhaps", "preshared_key: "),
        ("preshared_keys=true", "preshared_keys"),
    ] {
        let run = generate("/wrong", parameter).expect(2);
        assert!(run.errors.contains(words), "{run:?}");
        shell.run(&["get", "/wrong"]).expect(4);
    }
}

#[tokio::test]
async fn on_a_terminal_there_is_a_row_for_each_type() {
    let server = server().await;
    let (status, screen) = Shell::of(&server).on_terminal(&["types"]).end();
    assert_eq!(status, Some(0), "{screen}");
    let row = |name: &str| {
        let start = format!("{name} ");
        let line = |line: &&str| line.trim_start_matches("\u{1b}[0m").starts_with(&start);
        screen.lines().find(line).unwrap_or_default().to_owned()
    };
    assert!(row("value").contains("callers"), "{screen}");
    assert!(
        row("password").contains("length, exclude_upper"),
        "{screen}"
    );
    assert!(row("wireguard").contains("preshared_key"), "{screen}");
}

#[tokio::test]
async fn one_type_is_shown_with_what_each_of_its_parameters_takes() {
    let server = server().await;
    let shell = Shell::of(&server);
    let table = |name: &str| {
        let run = shell.run(&["types", name, "--output", "table"]);
        run.expect(0).output
    };
    let wireguard = table("wireguard");
    let parameter = "--param preshared_key  boolean, by default false. Whether to make";
    assert!(wireguard.contains(parameter), "{wireguard}");
    let certificate = table("certificate");
    assert!(
        certificate.contains("integer, 1 to 3650, by default 365."),
        "{certificate}"
    );
    // Callers can't give it.
    assert!(!certificate.contains("--param kept"), "{certificate}");
    let value = table("value");
    assert!(
        value.contains("callers") && !value.contains("--param"),
        "{value}"
    );
}

#[tokio::test]
async fn a_type_that_is_not_there_is_not_found() {
    let server = server().await;
    let run = Shell::of(&server).run(&["types", "absent"]).expect(4);
    assert!(run.errors.contains("absent"), "{}", run.errors);
    assert_eq!(run.output, "");
}

#[tokio::test]
async fn a_server_of_this_api_that_tells_no_types_is_understood() {
    let stub = Stub::start(|_, _, _| Reply::new(404, r#"{"error":"no such thing"}"#));
    let run = stub.shell().run(&["types"]).expect(4);
    let told = "the server does not tell which types it knows";
    assert!(run.errors.contains(told), "{}", run.errors);
}
