//! Help texts with their examples, completions for shells, and manual pages.

use std::{collections::BTreeSet, fs};

use clap::{Command, Subcommand};
use keywright_client::commands;
use keywright_harness::{Application, Server, Shell, Text, is_available};
use serde_json::json;

#[test]
fn the_help_of_each_command_shows_its_tested_examples() {
    let program = commands::Command::augment_subcommands(Command::new("keywright"));
    let mut existing = Vec::new();
    gather(&program, "", &mut existing);
    let tested = commands::examples();
    let names: BTreeSet<&str> = tested.iter().map(|(name, _)| *name).collect();
    let existing: BTreeSet<&str> = existing.iter().map(String::as_str).collect();
    assert_eq!(names, existing);
    let shell = Shell::new();
    for (name, text) in tested {
        let mut arguments: Vec<&str> = name.split(' ').collect();
        arguments.push("--help");
        let help = shell.run(&arguments).expect(0).output;
        let examples = examples(text);
        assert!(!examples.is_empty(), "{name}");
        for example in examples {
            let shown = format!("\n  # {}\n  {}\n", example.does, example.line);
            help.assert_contains(&shown);
        }
    }
}

#[test]
fn help_lists_sorted_commands_and_exit_statuses() {
    let help = Shell::new().run("--help").expect(0).output;
    let names: Vec<&str> = help
        .split("Commands:")
        .nth(1)
        .unwrap()
        .lines()
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(
        names.contains(&"get") && names.contains(&"serve"),
        "{names:?}"
    );
    assert!(names.is_sorted(), "{names:?}");
    help.assert_contains(commands::EXIT_STATUSES);
}

/// Collects the names of the commands without subcommands.
fn gather(command: &Command, above: &str, names: &mut Vec<String>) {
    for subcommand in command.get_subcommands() {
        let name = format!("{above}{}", subcommand.get_name());
        if subcommand.has_subcommands() {
            gather(subcommand, &format!("{name} "), names);
        } else {
            names.push(name);
        }
    }
}

#[tokio::test]
async fn every_example_of_every_command_succeeds() {
    let application = Application::issued();
    let server = Server::start_with(&application.options()).await;
    for (_, text) in commands::examples() {
        for example in examples(text) {
            prepare(&server).await;
            let shell = shell(&server, &application, &example);
            let line = line(&server, example.line);
            let run = shell.bash(&line);
            assert_eq!(run.status, Some(0), "{line}: {run:#?}");
        }
    }
}

#[tokio::test]
async fn first_examples_print_no_json_on_a_terminal() {
    let application = Application::issued();
    let server = Server::start_with(&application.options()).await;
    for (_, text) in commands::examples() {
        let example = &examples(text)[0];
        prepare(&server).await;
        let shell = shell(&server, &application, example).variable("NO_COLOR", "1");
        let line = line(&server, example.line);
        let arguments = ["-euo", "pipefail", "-c", &line];
        let (status, screen) = shell.program_on_terminal("bash", &arguments).end();
        assert_eq!(status, Some(0), "{line}: {screen}");
        let is_json = |line: &str| line.starts_with(['{', '[']);
        assert!(!screen.lines().any(is_json), "{line}: {screen}");
    }
}

/// An example of a command.
struct Example {
    does: &'static str,
    before: Vec<&'static str>,
    line: &'static str,
}

/// Parses the examples of a command: see `help` in `host/client/src/commands/run.rs`.
fn examples(text: &'static str) -> Vec<Example> {
    let mut parts = text.split("# ").map(str::lines);
    let before_all = parts.next().unwrap();
    let before = |line: &'static str| line.strip_prefix("$ ").unwrap();
    let examples = parts.map(|mut lines| {
        let does = lines.next().unwrap();
        let line = lines.next_back().unwrap();
        let before = before_all.clone().chain(lines).map(before).collect();
        Example { does, before, line }
    });
    examples.collect()
}

/// Deletes the credentials of other examples, and stores the credentials below `/demo` that examples require.
async fn prepare(server: &Server) {
    let found = server.get_json("/api/v1/data?path=").await;
    for credential in found["credentials"].as_array().unwrap() {
        let name = credential["name"].as_str().unwrap();
        let deleted = server.delete(&format!("/api/v1/data?name={name}")).await;
        deleted.expect(204);
    }
    for (name, credential_type, value) in [
        ("/demo/password", "password", json!("secret")),
        (
            "/demo/user",
            "user",
            json!({"username": "admin", "password": "secret"}),
        ),
        (
            "/demo/database",
            "json",
            json!({"host": "db.example", "port": 5432}),
        ),
    ] {
        server.stored(name, credential_type, value).await;
    }
}

/// Returns a shell in a new folder with `ca.pem`, `app.pem` and `app-key.pem`, in which the preparations of an example have
/// run.
fn shell(server: &Server, application: &Application, example: &Example) -> Shell {
    let shell = Shell::of(server);
    application.equip(&shell);
    for before in &example.before {
        shell.bash(&line(server, before)).expect(0);
    }
    shell
}

/// Returns a line of an example, for this server.
fn line(server: &Server, line: &str) -> String {
    line.replace(SERVER, server.base_url())
}

const SERVER: &str = "https://keywright.example:8844";

#[test]
fn bash_completes_commands_and_options() {
    let shell = Shell::new();
    let line = "source <(keywright completions bash); COMP_WORDS=(keywright get --me); COMP_CWORD=2; \
                _keywright keywright --me get; echo \"${COMPREPLY[@]}\"";
    assert_eq!(shell.bash(line).expect(0).output, "--member\n");
}

#[test]
fn fish_completes_commands_and_options() {
    if !is_available("fish") {
        return;
    }
    let shell = Shell::new();
    let script = script_of(&shell, "fish");
    shell.bash(&format!("fish --no-execute {script}")).expect(0);
    for (typed, expected) in [
        ("keywright get --me", "--member"),
        ("keywright regen", "regenerate"),
    ] {
        let line =
            format!("fish --no-config -c 'source {script}; complete --do-complete \"{typed}\"'");
        let completed = shell.bash(&line).expect(0).output;
        let words: Vec<_> = completed
            .lines()
            .map(|line| line.split('\t').next())
            .collect();
        assert_eq!(words, [Some(expected)], "{completed}");
    }
}

#[test]
fn zsh_completes_commands_and_options() {
    if !is_available("zsh") {
        return;
    }
    let shell = Shell::new().variable("NO_COLOR", "1");
    let script = script_of(&shell, "zsh");
    shell.bash(&format!("zsh -f -n {script}")).expect(0);
    let mut terminal = shell.program_on_terminal("zsh", &["-f", "-i"]);
    terminal
        .type_line("autoload -Uz compinit && compinit -D -u")
        .type_line(&format!("source {script} && echo re''ady"))
        .expect("ready")
        // Run the completed commands, and check the program's messages.
        .type_line("keywright get --mem\t")
        .expect("a value is required for '--member <")
        .type_line("keywright regen\t--absent")
        .expect("unexpected argument '--absent'")
        .type_line("exit 7");
    let (status, screen) = terminal.end();
    assert_eq!(status, Some(7), "{screen}");
    screen.assert_contains("keywright regenerate");
}

/// Writes the script for a shell, and returns the name of its file.
fn script_of(shell: &Shell, name: &str) -> String {
    let script = shell.run(&["completions", name]).expect(0).output;
    let file = format!("completions.{name}");
    fs::write(shell.file(&file), script).unwrap();
    file
}

#[test]
fn completions_of_each_shell_include_commands_and_options() {
    let shell = Shell::new();
    for name in ["bash", "fish", "zsh"] {
        let script = shell.run(&["completions", name]).expect(0).output;
        for word in ["regenerate", "check-config", "ca-cert"] {
            script.assert_contains(word);
        }
        script.assert_lacks("compile-component");
    }
    shell.run("completions tcsh").expect(2);
}

#[test]
fn each_command_has_a_manual_page() {
    let shell = Shell::new();
    shell.run("man-pages man").expect(0);
    for (page, words) in [
        ("keywright.1", "Exit statuses"),
        ("keywright-get.1", "keywright get /demo/password"),
        ("keywright-serve.1", "config"),
    ] {
        let text = fs::read_to_string(shell.file("man").join(page)).unwrap();
        let text = text.replace("\\-", "-");
        text.assert_contains(words);
    }
}
