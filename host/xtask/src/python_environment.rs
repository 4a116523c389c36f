//! Environments of Python's below `target`, with packages in versions that a file in the tree names.

use std::{fs, path::Path, process::Command};

use crate::step::{self, StepFailed};

/// An environment.
#[derive(Clone, Copy)]
pub(crate) struct PythonEnvironment {
    /// Its folder, from the workspace's root.
    pub(crate) folder: &'static str,
    /// The file that lists what is to be installed, each package in its version.
    pub(crate) requirements: &'static str,
}

impl PythonEnvironment {
    /// Installs what is wanted into a virtual environment, for which Debian has a package. What is installed already, in the
    /// versions that are wanted, is kept.
    ///
    /// # Errors
    /// When Python is not there, or the package index can't be reached.
    pub(crate) fn ensure(self) -> Result<(), StepFailed> {
        self.ensure_with(|| {
            make(&self.path()).map(|()| Command::new(self.path().join("bin/python3")))
        })
    }

    /// The same, but where no virtual environment can be made, it is a plain folder with the packages.
    ///
    /// # Errors
    /// As [`Self::ensure`].
    pub(crate) fn ensure_in_any_folder(self) -> Result<(), StepFailed> {
        self.ensure_with(|| {
            Ok(if make(&self.path()).is_ok() {
                Command::new(self.path().join("bin/python3"))
            } else {
                let _ = fs::remove_dir_all(self.path());
                let mut python = Command::new("python3");
                python.env("PIP_TARGET", self.path());
                python
            })
        })
    }

    /// `make` makes the environment and gives the Python that installs into it.
    fn ensure_with(
        self,
        make: impl FnOnce() -> Result<Command, StepFailed>,
    ) -> Result<(), StepFailed> {
        let wanted = step::workspace().join(self.requirements);
        let versions = fs::read_to_string(&wanted)
            .map_err(|cause| StepFailed::new(self.requirements, cause))?;
        let installed = self.path().join(INSTALLED);
        if fs::read_to_string(&installed).is_ok_and(|kept| kept == versions) {
            return Ok(());
        }
        eprintln!(
            "xtask: installing the packages in {} to {}",
            self.requirements, self.folder
        );
        let _ = fs::remove_dir_all(self.path());
        let mut python = make()?;
        python.args(["-m", "pip", "install", "--quiet"]);
        python.args(["--disable-pip-version-check", "--requirement"]);
        step::run_over_network(python.arg(wanted))?;
        fs::write(&installed, versions).map_err(|cause| StepFailed::new(INSTALLED, cause))
    }

    fn path(self) -> std::path::PathBuf {
        step::workspace().join(self.folder)
    }
}

fn make(environment: &Path) -> Result<(), StepFailed> {
    let make = || {
        let mut python = Command::new("python3");
        step::run(python.args(["-m", "venv"]).arg(environment))
    };
    make().or_else(|_| {
        let _ = fs::remove_dir_all(environment);
        let mut install = Command::new("apt-get");
        install.args([
            "install",
            "--yes",
            "--no-install-recommends",
            "python3-venv",
        ]);
        step::run_over_network(&mut install).and_then(|()| make())
    })
}

/// What was installed wholly, in the environment.
const INSTALLED: &str = "installed.txt";
