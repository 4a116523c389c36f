//! The program that tries the API by its own description, in an environment of its own under `target`.

use std::{fs, path::Path, process::Command};

use crate::step::{self, StepFailed};

/// Installs it where that can be done: Python must be there, and the package index be reached. Where it can't be done, the test
/// that needs it says that it is skipped. What is installed already, in the versions that are wanted, is kept.
pub(crate) fn ensure() {
    let wanted = step::workspace().join(REQUIREMENTS);
    let environment = step::workspace().join(ENVIRONMENT);
    let Ok(versions) = fs::read_to_string(&wanted) else {
        eprintln!("xtask: {REQUIREMENTS} can't be read");
        return;
    };
    let installed = environment.join(INSTALLED);
    if fs::read_to_string(&installed).is_ok_and(|kept| kept == versions) {
        return;
    }
    eprintln!("xtask: installing schemathesis to {ENVIRONMENT}");
    let outcome = install(&environment, &wanted).and_then(|()| {
        fs::write(&installed, versions).map_err(|cause| StepFailed::new(INSTALLED, cause))
    });
    if let Err(StepFailed(reason)) = outcome {
        eprintln!(
            "xtask: schemathesis can't be installed, so the test that needs it is skipped: {reason}"
        );
    }
}

/// Installs the packages into a virtual environment, for which Debian has a package; where that can't be installed either, into
/// a plain folder.
fn install(environment: &Path, wanted: &Path) -> Result<(), StepFailed> {
    let _ = fs::remove_dir_all(environment);
    let make = || {
        step::run(
            Command::new("python3")
                .args(["-m", "venv"])
                .arg(environment),
        )
    };
    let is_made = make().is_ok() || {
        let _ = fs::remove_dir_all(environment);
        let package = [
            "install",
            "--yes",
            "--no-install-recommends",
            "python3-venv",
        ];
        step::run(Command::new("apt-get").args(package)).is_ok() && make().is_ok()
    };
    let mut pip = if is_made {
        Command::new(environment.join("bin/python3"))
    } else {
        let _ = fs::remove_dir_all(environment);
        Command::new("python3")
    };
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
    ]);
    pip.arg(wanted);
    if !is_made {
        pip.arg("--target").arg(environment);
    }
    step::run(&mut pip)
}

/// Where it is installed.
const ENVIRONMENT: &str = "target/schemathesis";

/// What is to be installed, each package in its version.
const REQUIREMENTS: &str = "tests/api/description/requirements.txt";

/// What was installed wholly, in the environment.
const INSTALLED: &str = "installed.txt";
