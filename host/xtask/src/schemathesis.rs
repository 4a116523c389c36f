//! Installs schemathesis, which tests the API by its description, in its own environment below `target`.

use crate::{python_environment::PythonEnvironment, step::StepFailed};

/// Installs it if possible: Python must be installed, and the package index reachable. Otherwise the test that needs it prints that it
/// is skipped.
pub(crate) fn ensure() {
    if let Err(StepFailed(reason)) = ENVIRONMENT.ensure_in_any_folder() {
        eprintln!(
            "xtask: schemathesis can't be installed, so the test that needs it is skipped: {reason}"
        );
    }
}

/// The environment.
const ENVIRONMENT: PythonEnvironment = PythonEnvironment {
    folder: "target/schemathesis",
    requirements: "tests/api/description/requirements.txt",
};
