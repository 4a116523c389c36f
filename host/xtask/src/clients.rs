//! Builds the clients in other languages, which tests run against a server.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    outdated::{self, NotBuilt, rebuild},
    step::{self, StepError},
    toolchains,
};

/// Builds all clients to `target/clients`. Skips a client if a tool is missing or a library cannot be downloaded.
pub(crate) fn build_all() -> Result<(), StepError> {
    let outputs = step::workspace().join(OUTPUTS);
    fs::create_dir_all(&outputs).map_err(|cause| StepError::new(outputs.display(), cause))?;
    for (name, build) in CLIENTS {
        let folder = step::workspace().join(SOURCES).join(name);
        let inputs = [
            folder.clone(),
            step::workspace().join(RECIPES),
            outdated::versions_of_tools(),
        ];
        rebuild(&outputs.join(name), &inputs, |output| {
            build(&folder, output)
        })?;
    }
    Ok(())
}

type Build = fn(&Path, &Path) -> Result<(), NotBuilt>;

/// Each client, by the name of its folder and of its output.
const CLIENTS: [(&str, Build); 3] = [
    ("go", build_go),
    ("java", build_java),
    ("kubernetes", build_go),
];

const SOURCES: &str = "tests/clients";
const OUTPUTS: &str = "target/clients";
const RECIPES: &str = "host/xtask/src/clients.rs";

fn build_go(folder: &Path, output: &Path) -> Result<(), NotBuilt> {
    let go = |arguments: &[&str]| {
        let mut go = toolchains::command("go");
        go.args(arguments)
            .current_dir(folder)
            .env("GOFLAGS", "-mod=readonly")
            .env("CGO_ENABLED", "0");
        go
    };
    step::run_over_network(&mut go(&["mod", "download"])).map_err(NotBuilt::WithoutTools)?;
    // Without optimizations and debug information, the Kubernetes libraries build in two thirds of the time.
    let flags = ["-gcflags=all=-N -l", "-ldflags=-s -w"];
    let mut build = go(&["build"]);
    build.args(flags).arg("-o").arg(output).arg(".");
    step::run(&mut build).map_err(NotBuilt::Failed)
}

/// Writes compiled classes and the libraries that they need to a folder.
fn build_java(folder: &Path, output: &Path) -> Result<(), NotBuilt> {
    let (classes, libraries) = (output.join("classes"), output.join("libraries"));
    let mut maven = Command::new("mvn");
    maven
        .args(["--batch-mode", "--quiet", "dependency:copy-dependencies"])
        .arg(format!("-DoutputDirectory={}", libraries.display()))
        .current_dir(folder);
    step::run_over_network(&mut maven).map_err(NotBuilt::WithoutTools)?;
    let mut compiler = Command::new("javac");
    compiler
        .args(["--release", "17", "-Xlint:all", "-Werror", "-d"])
        .arg(&classes)
        .arg("--class-path")
        .arg(libraries.join("*"))
        .args(java_sources(&folder.join("src/spring")).map_err(NotBuilt::Failed)?);
    step::run(&mut compiler).map_err(NotBuilt::Failed)
}

fn java_sources(folder: &Path) -> Result<Vec<PathBuf>, StepError> {
    let entries = fs::read_dir(folder).map_err(|cause| StepError::new(folder.display(), cause))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}
