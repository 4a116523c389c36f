//! External programs for tests, and npm packages and Python environments below `target`, in the versions that files in the repository
//! list.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::step;

/// Packages that are installed together.
#[derive(Clone, Copy)]
pub(crate) struct NpmEnvironment {
    /// The folder of the installation, from the workspace's root.
    pub(crate) folder: &'static str,
    /// The folder with `package.json` and `package-lock.json`.
    pub(crate) pinned: &'static str,
}

impl NpmEnvironment {
    /// Installs the packages, unless they are already installed in these versions.
    pub(crate) fn ensure(self) -> Result<()> {
        let pinned = step::workspace().join(self.pinned);
        install_unless_current(&self.path(), &pinned.join(LOCK), NPM_INSTALLED, |folder| {
            fs::create_dir_all(folder).context(self.folder)?;
            for file in [MANIFEST, LOCK] {
                fs::copy(pinned.join(file), folder.join(file)).context(file)?;
            }
            let mut npm = Command::new("npm");
            // Not `npm ci`, which requires the packages for all other systems, too.
            npm.args(["install", "--no-save", "--ignore-scripts"]);
            npm.args(["--no-audit", "--no-fund", "--loglevel", "error"]);
            step::run_over_network(npm.current_dir(folder))
        })
    }

    /// Returns the folder of the installation.
    pub(crate) fn path(self) -> PathBuf {
        step::workspace().join(self.folder)
    }
}

/// Installs packages into a folder, unless its marker contains the same text as the file that lists their versions.
fn install_unless_current(
    folder: &Path,
    versions: &Path,
    marker: &str,
    install: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let wanted = fs::read_to_string(versions);
    let wanted = wanted.with_context(|| versions.display().to_string())?;
    let marker = folder.join(marker);
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let (shown, target) = (versions.display(), folder.display());
    eprintln!("xtask: installing the packages in {shown} to {target}");
    let _ = fs::remove_dir_all(folder);
    install(folder)?;
    fs::write(&marker, wanted).with_context(|| marker.display().to_string())
}

pub(crate) const MANIFEST: &str = "package.json";
const LOCK: &str = "package-lock.json";

/// The file that marks a complete installation.
const NPM_INSTALLED: &str = "installed.json";

#[derive(Clone, Copy)]
pub(crate) struct PythonEnvironment {
    /// Its folder, from the workspace's root.
    pub(crate) folder: &'static str,
    /// The file that lists the packages with their versions.
    pub(crate) requirements: &'static str,
}

impl PythonEnvironment {
    /// Installs the packages into a virtual environment, unless they are already installed in these versions. On Debian, virtual
    /// environments need a package of their own.
    pub(crate) fn ensure(self) -> Result<()> {
        let requirements = step::workspace().join(self.requirements);
        let folder = step::workspace().join(self.folder);
        install_unless_current(&folder, &requirements, PYTHON_INSTALLED, |folder| {
            make(folder)?;
            let mut python = Command::new(folder.join("bin/python3"));
            python.args(["-m", "pip", "install", "--quiet"]);
            python.args(["--disable-pip-version-check", "--requirement"]);
            step::run_over_network(python.arg(&requirements))
        })
    }
}

fn make(environment: &Path) -> Result<()> {
    let make = || {
        let mut python = Command::new("python3");
        step::run(python.args(["-m", "venv"]).arg(environment))
    };
    make().or_else(|_| {
        let _ = fs::remove_dir_all(environment);
        step::install_package("python3-venv").and_then(|()| make())
    })
}

/// The file that marks a complete installation.
const PYTHON_INSTALLED: &str = "installed.txt";

/// Installs missing programs if possible: on Debian, as root. Otherwise the tests that need them print that they are skipped.
pub(crate) fn ensure_programs() {
    ensure_packages();
    if let Err(reason) = SCHEMATHESIS.ensure() {
        eprintln!(
            "xtask: schemathesis can't be installed, so the test that needs it is skipped: {reason:#}"
        );
    }
    if let Err(reason) = NODE_PACKAGES.ensure() {
        eprintln!(
            "xtask: {} can't be installed; tests that need it are skipped: {reason:#}",
            NODE_PACKAGES.folder
        );
    }
}

/// The npm packages that tests run.
const NODE_PACKAGES: NpmEnvironment = NpmEnvironment {
    folder: "target/test-clients/node",
    pinned: "tests/clients/node",
};

fn ensure_packages() {
    for (program, package) in PROGRAMS {
        if is_installed(program) {
            continue;
        }
        eprintln!("xtask: installing {package} for {program}");
        if let Err(reason) = step::install_package(package) {
            eprintln!(
                "xtask: {program} is missing and can't be installed; tests that need it are skipped: {reason:#}"
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

/// The environment of schemathesis, which tests the API against its description.
const SCHEMATHESIS: PythonEnvironment = PythonEnvironment {
    folder: "target/schemathesis",
    requirements: "tests/api/description/requirements.txt",
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchains;

    #[test]
    fn npm_packages_are_pinned_without_a_registry_name() {
        for packages in [toolchains::NPM, NODE_PACKAGES] {
            let lock = step::workspace().join(packages.pinned).join(LOCK);
            let lock = fs::read_to_string(lock).unwrap();
            assert!(lock.contains("\"integrity\": \"sha512-"));
            assert!(!lock.contains("\"resolved\""));
        }
    }
}
