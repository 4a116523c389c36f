//! Runs a development server, built from the workspace.

use std::{os::unix::process::CommandExt, process::Command};

use anyhow::{Context, Result};

use crate::{
    guests::{self, Which},
    step, tested,
};

/// Builds the plugins and the host, then becomes a development server.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (is_release, server_arguments) = match arguments {
        [first, rest @ ..] if first == "--release" => (true, rest),
        all => (false, all),
    };
    let server_arguments = server_arguments
        .strip_prefix(&["--".to_owned()])
        .unwrap_or(server_arguments);
    let guests = || guests::build(Which::Shipped);
    let root = step::workspace();
    let program = if is_release {
        tested::build_with_list(&guests()?, |(variable, value)| {
            step::run(build().arg("--release").env(variable, value))?;
            Ok(root.join("target/release/keywright"))
        })?
    } else {
        step::in_parallel([&|| guests().map(drop), &|| step::run(&mut build())])?;
        root.join("target/debug/keywright")
    };
    let mut server = Command::new(program);
    server
        .args(["develop", "--directory", DEVELOPMENT_FOLDER, "--plugins"])
        .arg(guests::components()?)
        .args(server_arguments)
        .current_dir(root);
    Err(server.exec()).context("starting the server")
}

/// Returns a command that builds the host, with the features of the whole workspace: `cargo xtask` and the tests share them.
fn build() -> Command {
    let mut cargo = step::cargo();
    cargo.args(["build", "--locked", "--workspace", "--bin", "keywright"]);
    cargo
}

/// The folder of the development server, relative to the workspace's root.
const DEVELOPMENT_FOLDER: &str = ".keywright";
