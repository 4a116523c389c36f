//! Rust: cargo compiles a core module.

use std::path::PathBuf;

use serde_json::Value;

use super::{BuildFailed, Project};
use crate::outside::Call;

/// Builds the project's library. Returns the path of the module.
pub(super) fn module(project: &Project<'_>) -> Result<PathBuf, BuildFailed> {
    let cargo = project
        .programs
        .find("cargo")
        .ok_or(BuildFailed::ToolMissing {
            tool: "cargo",
            remedy: "install Rust from https://rustup.rs, then `rustup target add wasm32-unknown-unknown`",
        })?;
    let built = Call::new(project.programs, project.folder, &cargo)
        .arguments(["build", "--release", "--target", TARGET])
        .arguments(["--message-format", "json-render-diagnostics"])
        .output();
    match built {
        Ok(messages) => module_of(&messages).ok_or(BuildFailed::ModuleMissing {
            tool: "cargo",
            rule: "the crate must have a library with crate-type = [\"cdylib\"]",
        }),
        Err(failed) => Err(lacks_target(project).unwrap_or(failed)),
    }
}

/// Returns an error if the build failed because the compiler lacks the target.
fn lacks_target(project: &Project<'_>) -> Option<BuildFailed> {
    let rustc = project.programs.find("rustc")?;
    let folder = Call::new(project.programs, project.folder, &rustc)
        .arguments(["--print", "target-libdir", "--target", TARGET])
        .output()
        .ok()?;
    let folder = PathBuf::from(String::from_utf8_lossy(&folder).trim());
    (!folder.is_dir()).then_some(BuildFailed::ToolMissing {
        tool: "the compiler's target wasm32-unknown-unknown",
        remedy: "`rustup target add wasm32-unknown-unknown`",
    })
}

/// Returns the last module in cargo's messages, one per line: cargo builds the package itself after its dependencies.
fn module_of(messages: &[u8]) -> Option<PathBuf> {
    let messages = String::from_utf8_lossy(messages);
    let files = messages
        .lines()
        .filter_map(|line| keywright_json::read::<Value>(line).ok())
        .filter(|message| {
            message.get("reason").and_then(Value::as_str) == Some("compiler-artifact")
        })
        .filter_map(|artifact| artifact.get("filenames")?.as_array().cloned())
        .flatten();
    let mut modules = files.filter_map(|file| {
        let file = PathBuf::from(file.as_str()?);
        (file.extension()? == "wasm").then_some(file)
    });
    modules.next_back()
}

const TARGET: &str = "wasm32-unknown-unknown";
