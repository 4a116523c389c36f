//! Runs a development server, built from the workspace.

use std::{os::unix::process::CommandExt, process::Command};

use anyhow::{Context, Result};

use crate::{
    guests::{self, Which},
    step,
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
    let root = step::workspace();
    let (profile, folder) = if is_release {
        ("release", "release")
    } else {
        ("dev", "debug")
    };
    step::in_parallel([&|| guests::build(Which::Shipped).map(drop), &|| {
        build(profile)
    }])?;
    let mut server = Command::new(root.join("target").join(folder).join("keywright"));
    server
        .args(["develop", "--directory", DEVELOPMENT_FOLDER, "--plugins"])
        .arg(guests::components()?)
        .args(server_arguments)
        .current_dir(root);
    Err(server.exec()).context("starting the server")
}

/// Builds the host, with the features of the whole workspace: `cargo xtask` and the tests share them.
fn build(profile: &str) -> Result<()> {
    let mut cargo = step::cargo();
    cargo.args(["build", "--locked", "--workspace", "--bin", "keywright"]);
    step::run(cargo.args(["--profile", profile]))
}

/// The folder of the development server, relative to the workspace's root.
const DEVELOPMENT_FOLDER: &str = ".keywright";
