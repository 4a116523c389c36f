//! Builds in other languages than Rust, which are repeated only when their inputs have changed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    dist::digest,
    step::{self, StepError},
};

/// The reason why a build has no output.
pub(crate) enum NotBuilt {
    /// The build failed.
    Failed(StepError),
    /// A tool or a download is missing.
    WithoutTools(StepError),
}

/// Builds a file or a folder, unless the existing output was built from the same inputs: files, and folders with all files below
/// them. If a tool is missing, removes the existing output and prints that its build is skipped.
///
/// # Errors
/// If the build fails although its tools are installed.
pub(crate) fn rebuild(
    output: &Path,
    inputs: &[PathBuf],
    build: impl FnOnce(&Path) -> Result<(), NotBuilt>,
) -> Result<(), StepError> {
    let digest = digest_of(inputs)?;
    let built_from = output.with_extension("inputs");
    if output.exists() && fs::read_to_string(&built_from).is_ok_and(|inputs| inputs == digest) {
        return Ok(());
    }
    let _ = fs::remove_file(&built_from);
    remove(output);
    let result = build(output);
    if result.is_err() {
        remove(output);
    }
    match result {
        Ok(()) => fs::write(&built_from, digest)
            .map_err(|cause| StepError::new(built_from.display(), cause)),
        Err(NotBuilt::WithoutTools(StepError(reason))) => {
            eprintln!("xtask: skipped, with its tests: {reason}");
            Ok(())
        }
        Err(NotBuilt::Failed(reason)) => Err(reason),
    }
}

/// Removes a file or a folder. If removing it fails, the next build overwrites it.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    let _ = fs::remove_dir_all(path);
}

/// Returns the files that list the versions of the tools.
pub(crate) fn versions_of_tools() -> PathBuf {
    step::workspace().join("host/xtask/toolchains")
}

fn digest_of(inputs: &[PathBuf]) -> Result<String, StepError> {
    let mut files = Vec::new();
    for input in inputs {
        add_files(input, &mut files)?;
    }
    files.sort();
    let mut digests = String::new();
    for file in files {
        let contents = fs::read(&file).map_err(|cause| StepError::new(file.display(), cause))?;
        digests.push_str(&digest(&contents));
    }
    Ok(digest(digests.as_bytes()))
}

/// Adds a file, or all files below a folder. Follows links and skips files that builds generate.
fn add_files(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), StepError> {
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    let failed = |cause| StepError::new(format!("listing {}", path.display()), cause);
    for entry in fs::read_dir(path).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if !path.ends_with("generated") && !path.ends_with("__pycache__") {
            add_files(&path, files)?;
        }
    }
    Ok(())
}
