//! Help texts.

use std::collections::BTreeSet;

use clap::{Command, Subcommand};
use keywright_client::commands;
use keywright_harness::Shell;

#[test]
fn the_help_of_each_verb_shows_its_tested_examples() {
    let program = commands::Command::augment_subcommands(Command::new("keywright"));
    let mut verbs = Vec::new();
    gather(&program, "", &mut verbs);
    let tested = commands::examples();
    let names: BTreeSet<&str> = tested.iter().map(|verb| verb.verb).collect();
    let there: BTreeSet<&str> = verbs.iter().map(String::as_str).collect();
    assert_eq!(names, there);
    let shell = Shell::new();
    for verb in tested {
        assert!(!verb.examples.is_empty(), "{}", verb.verb);
        let mut arguments: Vec<&str> = verb.verb.split(' ').collect();
        arguments.push("--help");
        let help = shell.run(&arguments).expect(0).output;
        for example in verb.examples {
            assert!(help.contains(example.does), "{}: {help}", verb.verb);
            assert!(help.contains(example.line), "{}: {help}", verb.verb);
        }
    }
}

#[test]
fn help_lists_sorted_verbs_and_exit_statuses() {
    let help = Shell::new().run(&["--help"]).expect(0).output;
    let verbs: Vec<&str> = help
        .split("Commands:")
        .nth(1)
        .unwrap()
        .lines()
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|verb| *verb != "help")
        .collect();
    assert!(verbs.contains(&"get") && verbs.contains(&"serve"), "{help}");
    assert!(verbs.is_sorted(), "{verbs:?}");
    assert!(help.contains(commands::EXIT_STATUSES), "{help}");
}

/// Collects the subcommands without subcommands of their own.
fn gather(command: &Command, above: &str, verbs: &mut Vec<String>) {
    for verb in command.get_subcommands() {
        let name = format!("{above}{}", verb.get_name());
        if verb.has_subcommands() {
            gather(verb, &format!("{name} "), verbs);
        } else {
            verbs.push(name);
        }
    }
}
