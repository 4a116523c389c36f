//! `keywright plugin new`.

use std::fs;

use super::Workshop;

#[test]
fn output_lists_the_next_commands_in_each_language() {
    let workshop = Workshop::with(&[]);
    for (language, needed) in [
        ("rust", "rustup target add wasm32-unknown-unknown"),
        ("c", "pip install ziglang"),
        ("js", "npm install"),
        ("python", "pip install -r requirements.txt"),
        ("go", "cd in-go"),
    ] {
        let name = format!("in-{language}");
        let begun = workshop
            .plugin(&["new", &name, "--lang", language])
            .expect(0);
        for expected in [
            needed,
            &format!("cd {name}"),
            "keywright plugin build",
            &format!("keywright plugin test {name}.wasm"),
        ] {
            assert!(begun.output.contains(expected), "{expected}: {begun:#?}");
        }
        let folder = workshop.0.path().join(&name);
        let readme = fs::read_to_string(folder.join("README.md")).unwrap();
        assert!(readme.contains(&format!("--type {name}")), "{readme}");
        let configuration = fs::read_to_string(folder.join("keywright.toml")).unwrap();
        assert!(configuration.contains(&format!("[generators.{name}]")));
    }
}

#[test]
fn invalid_name_or_language_is_rejected() {
    let workshop = Workshop::with(&[]);
    let too_long = "a".repeat(64);
    for (arguments, expected) in [
        (["new", "Token", "--lang", "c"], "starting with a letter"),
        (["new", "1a", "--lang", "c"], "starting with a letter"),
        (["new", "../a", "--lang", "c"], "starting with a letter"),
        (["new", &too_long, "--lang", "c"], "1 to 63 characters"),
        (
            ["new", "token", "--lang", "cobol"],
            "must be rust, c, js, python or go",
        ),
    ] {
        let refused = workshop.plugin(&arguments).expect(2);
        assert!(refused.errors.contains(expected), "{refused:#?}");
    }
    assert_eq!(fs::read_dir(workshop.0.path()).unwrap().count(), 0);
}

#[test]
fn existing_folder_is_not_overwritten() {
    let workshop = Workshop::with(&[]);
    workshop
        .plugin(&["new", "token", "--lang", "python"])
        .expect(0);
    workshop.write("token/plugin.py", "mine");
    for language in ["c", "python"] {
        let refused = workshop
            .plugin(&["new", "token", "--lang", language])
            .expect(1);
        assert!(
            refused.errors.contains("token already exists"),
            "{refused:#?}"
        );
    }
    let folder = workshop.0.path().join("token");
    assert_eq!(fs::read(folder.join("plugin.py")).unwrap(), b"mine");
    assert!(!folder.join("plugin.c").exists());
}
