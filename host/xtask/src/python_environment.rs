//! Python environments below `target`, with packages in the versions of a file in the repository.

use std::{fs, path::Path, process::Command};

use crate::step::{self, StepFailed};

/// An environment.
#[derive(Clone, Copy)]
pub(crate) struct PythonEnvironment {
    /// Its folder, from the workspace's root.
    pub(crate) folder: &'static str,
    /// The file that lists the packages with their versions.
    pub(crate) requirements: &'static str,
}

impl PythonEnvironment {
    /// Installs the packages into a virtual environment (Debian has a package for these), unless they are already installed in these
    /// versions.
    ///
    /// # Errors
    /// If Python is missing, or the package index is unreachable.
    pub(crate) fn ensure(self) -> Result<(), StepFailed> {
        self.ensure_with(|| {
            make(&self.path()).map(|()| Command::new(self.path().join("bin/python3")))
        })
    }

    /// As [`Self::ensure`], but uses a plain folder with the packages if no virtual environment can be created.
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

    /// `make` creates the environment, and returns the Python that installs into it.
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

/// The file that marks a complete installation.
const INSTALLED: &str = "installed.txt";
