//! The compilation target of guests.

use std::{path::Path, process::Command};

use crate::step::{self, StepFailed};

/// The target triple of every guest.
pub(crate) const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// Installs the target if the toolchain lacks it.
pub(crate) fn ensure() -> Result<(), StepFailed> {
    if is_installed()? {
        return Ok(());
    }
    eprintln!("xtask: adding the target {WASM_TARGET}");
    let mut rustup = Command::new("rustup");
    rustup
        .args(["target", "add", WASM_TARGET])
        .current_dir(step::workspace());
    step::run(&mut rustup).map_err(|StepFailed(cause)| {
        StepFailed(format!(
            "the plugins are built for {WASM_TARGET}, which this toolchain lacks and which could not be added \
             ({cause}). Install it by `rustup target add {WASM_TARGET}`, then try again."
        ))
    })
}

fn is_installed() -> Result<bool, StepFailed> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", WASM_TARGET])
        .current_dir(step::workspace())
        .output()
        .map_err(|cause| StepFailed::new("getting the target's folder from rustc", cause))?;
    let folder = String::from_utf8_lossy(&output.stdout);
    Ok(output.status.success() && Path::new(folder.trim()).is_dir())
}
