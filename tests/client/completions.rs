//! Completions for shells, and manual pages.

use std::fs;

use keywright_harness::Shell;

#[test]
fn bash_completes_verbs_and_options() {
    let shell = Shell::new();
    let line = "source <(keywright completions bash); COMP_WORDS=(keywright get --me); COMP_CWORD=2; \
                _keywright keywright --me get; echo \"${COMPREPLY[@]}\"";
    assert_eq!(shell.bash(line).expect(0).output, "--member\n");
}

#[test]
fn each_shell_is_told_of_each_verb() {
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
