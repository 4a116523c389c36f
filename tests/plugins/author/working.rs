//! The cache of compiled components that `keywright plugin …` uses, and its progress on a terminal.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    time::SystemTime,
};

use keywright_harness::{Shell, Text, component, run_program};
use tempfile::TempDir;

/// Returns the compiled components in a cache, with the times of their last change.
fn compiled(cache: &Path) -> Vec<(String, SystemTime)> {
    let entries = fs::read_dir(cache.join("keywright/plugins")).unwrap();
    let entries = entries.map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.path().extension() == Some("cwasm".as_ref()));
    files
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, entry.metadata().unwrap().modified().unwrap())
        })
        .collect()
}

#[test]
fn component_is_compiled_once_for_all_commands() {
    let folder = TempDir::new().unwrap();
    let cache = folder.path().join("cache");
    let variables = [("XDG_CACHE_HOME", cache.to_str().unwrap())];
    let file = component("password");
    let plugin = |arguments: &[&str]| {
        let arguments = [&["plugin"], arguments, &[file.to_str().unwrap()]].concat();
        run_program(folder.path(), &arguments, &variables).expect(0)
    };
    plugin(&["run"]);
    let first = compiled(&cache);
    assert_eq!(first.len(), 1);
    for command in [&["bench", "--calls", "1"][..], &["test"], &["inspect"]] {
        plugin(command);
        assert_eq!(compiled(&cache), first, "{command:?}");
    }
    let plugins = cache.join("keywright/plugins");
    for (path, mode) in [(plugins.clone(), 0o700), (plugins.join("key"), 0o600)] {
        let found = fs::metadata(&path).unwrap().mode() & 0o777;
        assert_eq!(found, mode, "{path:?}");
    }

    // Compiled code is trusted, so a folder that others can write to is not used.
    fs::set_permissions(&plugins, fs::Permissions::from_mode(0o777)).unwrap();
    let run = plugin(&["run"]);
    for expected in [
        "compiled components are not cached",
        "must have the mode 0700",
    ] {
        run.errors.assert_contains(expected);
    }
    assert_eq!(compiled(&cache), first);

    fs::set_permissions(&plugins, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(plugins.join("key"), "short").unwrap();
    let run = plugin(&["run"]);
    run.errors
        .assert_contains("the file key must have 32 bytes");
}

#[test]
fn progress_is_shown_only_on_a_terminal() {
    let file = component("password");
    let arguments = ["plugin", "test", file.to_str().unwrap()];
    let shell = Shell::new();
    let (status, screen) = shell.on_terminal(&arguments).end();
    assert_eq!(status, Some(0), "{screen}");
    screen.assert_contains("its values are random, with at least 160 bits: ");
    let run = shell.run(&arguments).expect(0);
    assert_eq!(run.errors, "");
}
