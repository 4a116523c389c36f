//! Measurements, in a release build.

use std::process::Command;

use crate::{
    guests::{self, Which},
    step::{self, StepFailed},
};

/// Builds the plugins, the server and the measuring program, and runs it.
pub(crate) fn bench(arguments: &[String]) -> Result<(), StepFailed> {
    guests::build(Which::Shipped)?;
    step::run(step::cargo().args(["build", "--locked", "--workspace", "--bins", "--release"]))?;
    let root = step::workspace();
    // Started directly: cargo would build it once more, with the features that it alone needs.
    let program = root.join("target/release/keywright-bench");
    step::run(Command::new(program).args(arguments).current_dir(root))
}
