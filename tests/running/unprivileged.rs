//! The server as a container has it: of a user that may do nothing, on files that nobody can change.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, chown},
    path::{Path, PathBuf},
    process::Command,
};

use keywright_harness::{is_available, server_program, workspace};

use crate::{
    layout::{Layout, set_mode},
    manager::Service,
    service::{address_in, health, on_free_ports},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_rights_runs_the_server_on_a_read_only_tree() {
    let layout = Layout::new();
    layout.write_configuration(&on_free_ports(&layout.example()));
    let is_root = fs::metadata(layout.root()).unwrap().uid() == 0;
    if is_root && !is_available("setpriv") {
        return;
    }
    let program = install_program(&layout);
    warm_cache(&layout);
    set_mode(layout.root(), 0o755);
    give_away(&layout, is_root);
    for top in ["etc", "usr"] {
        make_read_only(&layout.path(top));
    }
    let before = contents(&layout);

    let mut service = Service::start(&layout, unprivileged(&program, is_root));
    let address = address_in(&service.told("READY=1"));
    assert_eq!(health(&address).await, "{\"status\":\"UP\"}");
    service.signal("TERM");
    service.told("STOPPING=1");
    assert!(service.end().success());

    assert_eq!(contents(&layout), before);
    for (path, mode) in [
        ("var/lib/keywright/keywright.db", 0o600),
        ("var/lib/keywright/plugin-cache", 0o700),
        ("var/log/keywright/audit.log", 0o600),
    ] {
        let metadata = fs::metadata(layout.path(path)).unwrap();
        assert_eq!(metadata.mode() & 0o777, mode, "{path}");
        assert!(!is_root || metadata.uid() == NOBODY, "{path}");
    }
}

/// Puts the program where a package would.
fn install_program(layout: &Layout) -> PathBuf {
    let folder = layout.path("usr/bin");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("keywright");
    // It is large, so a second name will do where there can be one.
    if fs::hard_link(server_program(), &program).is_err() {
        fs::copy(server_program(), &program).unwrap();
        set_mode(&program, 0o555);
    }
    program
}

/// What other tests have compiled under the same key need not be compiled again.
fn warm_cache(layout: &Layout) {
    let cache = layout.path("var/lib/keywright/plugin-cache");
    fs::create_dir(&cache).unwrap();
    set_mode(&cache, 0o700);
    let kept = fs::read_dir(workspace().join("target/test-plugin-cache"));
    for file in kept.into_iter().flatten() {
        let file = file.unwrap();
        // Another test may be writing it, and then it is gone under that name.
        let _ = fs::copy(file.path(), cache.join(file.file_name()));
    }
}

/// What the server writes, and the secrets that it alone reads, are its user's.
fn give_away(layout: &Layout, is_root: bool) {
    if !is_root {
        return;
    }
    for folder in ["var", "run", "etc/keywright/tls"] {
        for path in files(&layout.path(folder)) {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
}

fn make_read_only(folder: &Path) {
    for path in files(folder) {
        let mode = fs::metadata(&path).unwrap().mode();
        // The program may be another name of the one that was built.
        if !path.ends_with("usr/bin/keywright") {
            set_mode(&path, mode & 0o555);
        }
    }
}

/// When each file that must not be changed was last changed.
fn contents(layout: &Layout) -> BTreeMap<PathBuf, i64> {
    let tops = ["etc", "usr"].into_iter();
    let all = tops.flat_map(|top| files(&layout.path(top)));
    all.map(|path| {
        let changed = fs::metadata(&path).unwrap().mtime_nsec();
        (path, changed)
    })
    .collect()
}

/// A folder, and everything in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// The program, to be run by a user that has no rights and can't get any.
fn unprivileged(program: &Path, is_root: bool) -> Command {
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid",
            &NOBODY.to_string(),
            "--regid",
            &NOBODY.to_string(),
        ])
        .args([
            "--clear-groups",
            "--no-new-privs",
            "--inh-caps=-all",
            "--bounding-set=-all",
        ])
        .arg(program);
    command
}

const NOBODY: u32 = 65_534;
