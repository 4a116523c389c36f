//! npm packages below `target`, in the versions of a lock file in the repository.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::step::{self, StepFailed};

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
    ///
    /// # Errors
    /// If npm is missing, or its registry is unreachable.
    pub(crate) fn ensure(self) -> Result<(), StepFailed> {
        let (pinned, folder) = (step::workspace().join(self.pinned), self.path());
        let wanted = read(&pinned.join(LOCK))?;
        let installed = folder.join(INSTALLED);
        if fs::read_to_string(&installed).is_ok_and(|kept| kept == wanted) {
            return Ok(());
        }
        eprintln!(
            "xtask: installing the packages in {}/{LOCK} to {}",
            self.pinned, self.folder
        );
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|cause| StepFailed::new(self.folder, cause))?;
        for file in [MANIFEST, LOCK] {
            fs::copy(pinned.join(file), folder.join(file))
                .map_err(|cause| StepFailed::new(file, cause))?;
        }
        let mut npm = Command::new("npm");
        // Not `npm ci`, which requires the packages for all other systems, too.
        npm.args(["install", "--no-save", "--ignore-scripts"]);
        npm.args(["--no-audit", "--no-fund", "--loglevel", "error"]);
        step::run_over_network(npm.current_dir(&folder))?;
        fs::write(&installed, wanted).map_err(|cause| StepFailed::new(INSTALLED, cause))
    }

    /// The folder of the installation.
    pub(crate) fn path(self) -> PathBuf {
        step::workspace().join(self.folder)
    }
}

fn read(path: &Path) -> Result<String, StepFailed> {
    fs::read_to_string(path).map_err(|cause| StepFailed::new(path.display(), cause))
}

pub(crate) const MANIFEST: &str = "package.json";
const LOCK: &str = "package-lock.json";

/// The file that marks a complete installation.
const INSTALLED: &str = "installed.json";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{programs, toolchains};

    #[test]
    fn npm_packages_are_pinned_without_a_registry_name() {
        for packages in [toolchains::NPM, programs::NODE_PACKAGES] {
            let lock = step::workspace().join(packages.pinned).join(LOCK);
            let lock = fs::read_to_string(lock).unwrap();
            assert!(lock.contains("\"integrity\": \"sha512-"));
            assert!(!lock.contains("\"resolved\""));
        }
    }
}
