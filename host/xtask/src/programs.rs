//! Other programs that tests let judge what the server makes.

use std::{path::PathBuf, process::Command};

use crate::{
    npm_environment::NpmEnvironment,
    schemathesis,
    step::{self, StepFailed},
};

/// Installs the programs that are missing, where that can be done: on Debian, as root. Where it can't, the tests that need
/// them say that they are skipped.
pub(crate) fn ensure() {
    ensure_packages();
    schemathesis::ensure();
    if let Err(StepFailed(reason)) = NODE_PACKAGES.ensure() {
        eprintln!(
            "xtask: {} can't be installed; tests that need it are skipped: {reason}",
            NODE_PACKAGES.folder
        );
    }
}

/// The packages of npm that tests run.
pub(crate) const NODE_PACKAGES: NpmEnvironment = NpmEnvironment {
    folder: "target/test-clients/node",
    pinned: "tests/clients/node",
};

fn ensure_packages() {
    for (program, package) in PROGRAMS {
        if is_installed(program) {
            continue;
        }
        eprintln!("xtask: installing {package} for {program}");
        let mut install = Command::new("apt-get");
        install.args(["install", "--yes", "--no-install-recommends", package]);
        if let Err(StepFailed(reason)) = step::run_over_network(&mut install) {
            eprintln!(
                "xtask: {program} is not there and can't be installed; tests that need it are skipped: {reason}"
            );
        }
    }
}

/// Each program, with Debian's package of it.
const PROGRAMS: [(&str, &str); 14] = [
    ("age-keygen", "age"),
    ("curl", "curl"),
    ("docker-registry", "docker-registry"),
    ("fish", "fish"),
    ("javac", "default-jdk-headless"),
    ("minisign", "minisign"),
    ("mvn", "maven"),
    ("npm", "npm"),
    ("openssl", "openssl"),
    ("postgres", "postgresql"),
    ("setpriv", "util-linux"),
    ("ssh-keygen", "openssh-client"),
    ("systemd-analyze", "systemd"),
    ("zsh", "zsh"),
];

fn is_installed(program: &str) -> bool {
    let on_path = std::env::var_os("PATH");
    let on_path = on_path.iter().flat_map(std::env::split_paths);
    on_path
        .chain(versioned_folders())
        .any(|folder| folder.join(program).is_file())
}

/// Where Debian puts the programs of PostgreSQL, of which several versions may be there.
fn versioned_folders() -> impl Iterator<Item = PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    versions.filter_map(|version| Some(version.ok()?.path().join("bin")))
}
