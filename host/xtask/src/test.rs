//! Every test, with everything built that they need.

use crate::{
    guests::{self, EXAMPLE_MANIFEST, Which},
    step::{self, StepFailed},
};

/// Builds what the tests need and runs them.
pub(crate) fn test(arguments: &[String]) -> Result<(), StepFailed> {
    guests::build(Which::All)?;
    step::run(
        step::cargo()
            .args(["test", "--locked", "--workspace", "--no-fail-fast"])
            .args(arguments),
    )?;
    step::run(step::cargo().args(["test", "--locked", "--manifest-path", EXAMPLE_MANIFEST]))
}

/// Writes the golden files anew: the tests that compare them write them when the variable is set.
pub(crate) fn refresh_golden_files() -> Result<(), StepFailed> {
    guests::build(Which::All)?;
    step::run(
        step::cargo()
            .args(["test", "--locked", "--package", "keywright-tests", "golden"])
            .env("KEYWRIGHT_REFRESH_GOLDEN_FILES", "1"),
    )
}
