//! Measurements, in a release build.

use crate::{
    guests::{self, Which},
    step::{self, StepFailed},
};

/// Builds the server, the plugins and the measuring program, and runs it.
pub(crate) fn bench(arguments: &[String]) -> Result<(), StepFailed> {
    guests::build(Which::All)?;
    step::run(step::cargo().args([
        "build",
        "--locked",
        "--release",
        "--package",
        "keywright-server",
    ]))?;
    step::run(
        step::cargo()
            .args([
                "run",
                "--locked",
                "--release",
                "--package",
                "keywright-bench",
                "--",
            ])
            .args(arguments),
    )
}
