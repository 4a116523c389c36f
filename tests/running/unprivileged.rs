//! The server as in a container: an unprivileged user with read-only files.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, chown},
    path::{Path, PathBuf},
    process::Command,
};

use keywright_harness::{compiled_plugins, is_available, server_program};

use crate::{
    layout::{Layout, set_mode},
    service::{Service, address_in, health, on_free_ports},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_unprivileged_user_runs_the_server_on_read_only_files() {
    let layout = Layout::new();
    layout.write_configuration(&on_free_ports(&layout.example()));
    let is_root = fs::metadata(layout.root()).unwrap().uid() == 0;
    if is_root && !is_available("setpriv") {
        return;
    }
    let program = install_program(&layout);
    warm_cache(&layout);
    set_mode(layout.root(), 0o755);
    change_owner(&layout, is_root);
    for top in ["etc", "usr"] {
        make_read_only(&layout.path(top));
    }
    let before = modification_times(&layout);

    let mut service = Service::start(&layout, unprivileged(&program, is_root));
    let address = address_in(&service.notified("READY=1"));
    assert_eq!(health(&address).await, "{\"status\":\"UP\"}");
    // Linux makes root the owner of these files if the process is not dumpable.
    for name in ["mem", "environ", "maps"] {
        let file = format!("/proc/{}/{name}", service.process_id());
        assert_eq!(fs::metadata(&file).unwrap().uid(), 0, "{file}");
    }
    service.signal("TERM");
    service.notified("STOPPING=1");
    assert!(service.end().success());

    assert_eq!(modification_times(&layout), before);
    for (path, mode) in [
        ("var/lib/keywright/keywright.db", 0o600),
        ("var/lib/keywright/plugin-cache", 0o700),
        ("var/log/keywright/audit.log", 0o600),
    ] {
        let metadata = fs::metadata(layout.path(path)).unwrap();
        assert_eq!(metadata.mode() & 0o777, mode, "{path}");
        assert!(!is_root || metadata.uid() == UNPRIVILEGED, "{path}");
    }
}

/// Installs the program as a package would.
fn install_program(layout: &Layout) -> PathBuf {
    let folder = layout.path("usr/bin");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("keywright");
    // The program is large, so it is linked if possible.
    if fs::hard_link(server_program(), &program).is_err() {
        fs::copy(server_program(), &program).unwrap();
        set_mode(&program, 0o555);
    }
    program
}

/// Copies plugins that other tests compiled under the same key.
pub(crate) fn warm_cache(layout: &Layout) {
    let cache = layout.path("var/lib/keywright/plugin-cache");
    fs::create_dir(&cache).unwrap();
    set_mode(&cache, 0o700);
    let compiled = fs::read_dir(compiled_plugins());
    for file in compiled.into_iter().flatten() {
        let file = file.unwrap();
        // The copy fails if another test renames its unfinished file meanwhile.
        let _ = fs::copy(file.path(), cache.join(file.file_name()));
    }
}

/// Makes the unprivileged user the owner of the files that the server writes, and of its secrets.
fn change_owner(layout: &Layout, is_root: bool) {
    if !is_root {
        return;
    }
    for folder in ["var", "run", "etc/keywright/tls"] {
        for path in files(&layout.path(folder)) {
            chown(path, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
        }
    }
}

fn make_read_only(folder: &Path) {
    for path in files(folder) {
        let mode = fs::metadata(&path).unwrap().mode();
        // The file may be a link to the built program.
        if !path.ends_with("usr/bin/keywright") {
            set_mode(&path, mode & 0o555);
        }
    }
}

/// Returns the modification times of the files that must not be changed.
fn modification_times(layout: &Layout) -> BTreeMap<PathBuf, i64> {
    let tops = ["etc", "usr"].into_iter();
    let all = tops.flat_map(|top| files(&layout.path(top)));
    all.map(|path| {
        let changed = fs::metadata(&path).unwrap().mtime_nsec();
        (path, changed)
    })
    .collect()
}

/// Returns a folder and everything in it.
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

/// Runs the program as a user without privileges.
fn unprivileged(program: &Path, is_root: bool) -> Command {
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid",
            &UNPRIVILEGED.to_string(),
            "--regid",
            &UNPRIVILEGED.to_string(),
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

pub(crate) const UNPRIVILEGED: u32 = 65_534;
