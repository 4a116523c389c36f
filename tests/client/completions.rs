//! Completions for shells, and manual pages.

use std::fs;

use keywright_harness::{Shell, is_available};

#[test]
fn bash_completes_verbs_and_options() {
    let shell = Shell::new();
    let line = "source <(keywright completions bash); COMP_WORDS=(keywright get --me); COMP_CWORD=2; \
                _keywright keywright --me get; echo \"${COMPREPLY[@]}\"";
    assert_eq!(shell.bash(line).expect(0).output, "--member\n");
}

#[test]
fn fish_completes_verbs_and_options() {
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
fn zsh_completes_verbs_and_options() {
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
    assert!(screen.contains("keywright regenerate"), "{screen}");
}

/// Writes the script for a shell, and returns the name of its file.
fn script_of(shell: &Shell, name: &str) -> String {
    let script = shell.run(&["completions", name]).expect(0).output;
    let file = format!("completions.{name}");
    fs::write(shell.file(&file), script).unwrap();
    file
}

#[test]
fn completions_of_each_shell_include_verbs_and_options() {
    let shell = Shell::new();
    for name in ["bash", "fish", "zsh"] {
        let script = shell.run(&["completions", name]).expect(0).output;
        for word in ["regenerate", "check-config", "ca-cert"] {
            assert!(script.contains(word), "{name}: {word}");
        }
    }
    shell.run(&["completions", "tcsh"]).expect(2);
}

#[test]
fn each_verb_has_a_manual_page() {
    let shell = Shell::new();
    shell.run(&["man-pages", "man"]).expect(0);
    for (page, words) in [
        ("keywright.1", "Exit statuses"),
        ("keywright-get.1", "keywright get /demo/password"),
        ("keywright-serve.1", "config"),
    ] {
        let text = fs::read_to_string(shell.file("man").join(page)).unwrap();
        let text = text.replace("\\-", "-");
        assert!(text.contains(words), "{page}: {text}");
    }
}
