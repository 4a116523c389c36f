//! External programs for tests.

use std::path::PathBuf;

use crate::{
    environments::{NpmEnvironment, PythonEnvironment},
    step::{self, StepError},
};

/// Installs missing programs if possible: on Debian, as root. Otherwise the tests that need them print that they are skipped.
pub(crate) fn ensure() {
    ensure_packages();
    ensure_schemathesis();
    if let Err(StepError(reason)) = NODE_PACKAGES.ensure() {
        eprintln!(
            "xtask: {} can't be installed; tests that need it are skipped: {reason}",
            NODE_PACKAGES.folder
        );
    }
}

/// The npm packages that tests run.
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
        if let Err(StepError(reason)) = step::install_package(package) {
            eprintln!(
                "xtask: {program} is missing and can't be installed; tests that need it are skipped: {reason}"
            );
        }
    }
}

/// The programs, with their Debian packages.
const PROGRAMS: [(&str, &str); 16] = [
    ("age-keygen", "age"),
    ("chromedriver", "chromium-driver"),
    ("chromium", "chromium"),
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

/// Returns Debian's folders for the programs of PostgreSQL, one per installed version.
fn versioned_folders() -> impl Iterator<Item = PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    versions.filter_map(|version| Some(version.ok()?.path().join("bin")))
}

/// Installs schemathesis, which tests the API against its description, if possible: Python must be installed, and the
/// package index reachable. Otherwise the test that needs it prints that it is skipped.
fn ensure_schemathesis() {
    if let Err(StepError(reason)) = SCHEMATHESIS.ensure_in_any_folder() {
        eprintln!(
            "xtask: schemathesis can't be installed, so the test that needs it is skipped: {reason}"
        );
    }
}

const SCHEMATHESIS: PythonEnvironment = PythonEnvironment {
    folder: "target/schemathesis",
    requirements: "tests/api/description/requirements.txt",
};
