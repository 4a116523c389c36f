//! The program that tries the API by its own description, in an environment of its own under `target`.

use crate::{python_environment::PythonEnvironment, step::StepFailed};

/// Installs it where that can be done: Python must be there, and the package index be reached. Where it can't be done, the test
/// that needs it says that it is skipped.
pub(crate) fn ensure() {
    if let Err(StepFailed(reason)) = ENVIRONMENT.ensure_in_any_folder() {
        eprintln!(
            "xtask: schemathesis can't be installed, so the test that needs it is skipped: {reason}"
        );
    }
}

/// Where it is installed.
const ENVIRONMENT: PythonEnvironment = PythonEnvironment {
    folder: "target/schemathesis",
    requirements: "tests/api/description/requirements.txt",
};
