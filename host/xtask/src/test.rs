//! Every test, with everything built that they need.

use crate::{
    guests::{self, EXAMPLE_MANIFEST, Which},
    programs,
    step::{self, StepFailed},
};

/// Builds what the tests need and runs them.
pub(crate) fn test(arguments: &[String]) -> Result<(), StepFailed> {
    programs::ensure();
    guests::build(Which::All)?;
    // With the same packages as the tests, so that their dependencies are built once.
    step::run(step::cargo().args(["build", "--locked", "--workspace", "--bins"]))?;
    step::run(
        step::cargo()
            .args(["test", "--locked", "--workspace", "--no-fail-fast"])
            .args(arguments),
    )?;
    // The same cases once more, with another database behind the server.
    step::run(
        step::cargo()
            .args([
                "test",
                "--locked",
                "--workspace",
                "--no-fail-fast",
                "--test",
                "api",
            ])
            .args(arguments)
            .env("KEYWRIGHT_TEST_STORAGE", "postgres"),
    )?;
    step::run(step::cargo().args(["test", "--locked", "--manifest-path", EXAMPLE_MANIFEST]))
}

/// Writes the golden files anew: the tests that compare them write them when the variable is set.
pub(crate) fn refresh_golden_files() -> Result<(), StepFailed> {
    guests::build(Which::All)?;
    step::run(
        step::cargo()
            .args([
                "test",
                "--locked",
                "--workspace",
                "--lib",
                "--bins",
                "--test",
                "plugins",
                "golden",
            ])
            .env("KEYWRIGHT_REFRESH_GOLDEN_FILES", "1"),
    )
}
