//! Builds example plugins, test guests and clients in languages other than Rust. Skips builds whose inputs have not changed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Error, Result, anyhow};
use keywright_author::{ProjectError, build};

use crate::{dist::digest, guests, step, toolchains};

/// The reason why a build has no output.
enum NotBuilt {
    Failed(Error),
    /// A tool or a download is missing.
    WithoutTools(Error),
}

/// Builds a file or a folder, unless the existing output was built from the same inputs: files, and folders with all files below
/// them. If a tool is missing, removes the existing output and prints that its build is skipped.
///
/// # Errors
/// If the build fails although its tools are installed.
fn rebuild(
    output: &Path,
    inputs: &[PathBuf],
    build: impl FnOnce(&Path) -> Result<(), NotBuilt>,
) -> Result<()> {
    let digest = digest_of(inputs)?;
    let built_from = output.with_extension("inputs");
    if output.exists() && fs::read_to_string(&built_from).is_ok_and(|inputs| inputs == digest) {
        return Ok(());
    }
    let _ = fs::remove_file(&built_from);
    remove(output);
    let result = build(output);
    if result.is_err() {
        remove(output);
    }
    match result {
        Ok(()) => fs::write(&built_from, digest).with_context(|| built_from.display().to_string()),
        Err(NotBuilt::WithoutTools(reason)) => {
            eprintln!("xtask: skipped, with its tests: {reason:#}");
            Ok(())
        }
        Err(NotBuilt::Failed(reason)) => Err(reason),
    }
}

/// Removes a file or a folder. If removing it fails, the next build overwrites it.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    let _ = fs::remove_dir_all(path);
}

/// Returns the folder with the lists of the tools' versions.
fn versions_of_tools() -> PathBuf {
    step::workspace().join("host/xtask/toolchains")
}

fn digest_of(inputs: &[PathBuf]) -> Result<String> {
    let mut files = Vec::new();
    for input in inputs {
        add_files(input, &mut files)?;
    }
    files.sort();
    let mut digests = String::new();
    for file in files {
        let contents = fs::read(&file).with_context(|| file.display().to_string())?;
        digests.push_str(&digest(&contents));
    }
    Ok(digest(digests.as_bytes()))
}

/// Adds a file, or all files below a folder. Follows links and skips files that builds generate.
fn add_files(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    let doing = || format!("listing {}", path.display());
    for entry in fs::read_dir(path).with_context(doing)? {
        let path = entry.with_context(doing)?.path();
        if !path.ends_with("generated") && !path.ends_with("__pycache__") {
            add_files(&path, files)?;
        }
    }
    Ok(())
}

/// Builds the plugins into the folder with the components of guests. Skips unchanged projects. If the tools of a project are
/// missing, skips it and removes its earlier component.
///
/// # Errors
/// If a build fails although its tools are installed.
pub(crate) fn build_plugins() -> Result<()> {
    toolchains::ensure();
    let components = guests::components()?;
    for (component, folder) in PROJECTS {
        let folder = step::workspace().join(folder);
        rebuild(&components.join(component), &inputs(&folder), |output| {
            let built = build(&folder, Some(output), &toolchains::programs());
            built.map(drop).map_err(|failed| {
                let is_missing = matches!(failed, ProjectError::ToolMissing { .. });
                let reason = Error::new(failed).context(folder.display().to_string());
                if is_missing {
                    NotBuilt::WithoutTools(reason)
                } else {
                    NotBuilt::Failed(reason)
                }
            })
        })?;
    }
    let folder = step::workspace().join(STARLING_MONKEY);
    rebuild(
        &components.join(STARLING_MONKEY_COMPONENT),
        &inputs(&folder),
        |output| build_with_starling_monkey(&folder, output),
    )
}

/// The component and the folder of each project.
const PROJECTS: [(&str, &str); 5] = [
    ("age.wasm", "examples/age-generator"),
    ("diceware.wasm", "examples/passphrase-generator"),
    ("quickjs.wasm", "tests/guests/quickjs"),
    ("totp.wasm", "examples/totp-generator"),
    ("uuid.wasm", "examples/uuid-generator"),
];

/// A test guest that uses the JavaScript engine `StarlingMonkey`. `keywright plugin build` uses `QuickJS`.
const STARLING_MONKEY: &str = "tests/guests/starling-monkey";
const STARLING_MONKEY_COMPONENT: &str = "starling-monkey.wasm";
const STARLING_MONKEY_SCRIPT: &str = "build.mjs";

/// Returns the inputs of a build: the project's own files, the build steps, and the versions of the tools.
fn inputs(folder: &Path) -> [PathBuf; 3] {
    [
        folder.to_owned(),
        step::workspace().join("host/author"),
        versions_of_tools(),
    ]
}

fn build_with_starling_monkey(folder: &Path, output: &Path) -> Result<(), NotBuilt> {
    let npm = toolchains::npm_folder();
    if !npm.join("node_modules").is_dir() {
        let reason = anyhow!("{}: componentize-js is not installed", folder.display());
        return Err(NotBuilt::WithoutTools(reason));
    }
    // Node.js resolves packages from the script's folder.
    let script = npm.join(STARLING_MONKEY_SCRIPT);
    fs::copy(folder.join(STARLING_MONKEY_SCRIPT), &script)
        .with_context(|| script.display().to_string())
        .map_err(NotBuilt::Failed)?;
    let mut node = toolchains::command("node");
    node.args([&script, &folder.to_owned(), &output.to_owned()]);
    step::run(&mut node).map_err(NotBuilt::Failed)
}

/// Builds all clients to `target/clients`. Skips a client if a tool is missing or a library can't be downloaded.
pub(crate) fn build_clients() -> Result<()> {
    let outputs = step::workspace().join(OUTPUTS);
    fs::create_dir_all(&outputs).with_context(|| outputs.display().to_string())?;
    for (name, build) in CLIENTS {
        let folder = step::workspace().join(SOURCES).join(name);
        let inputs = [
            folder.clone(),
            step::workspace().join(RECIPES),
            versions_of_tools(),
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
const RECIPES: &str = "host/xtask/src/other_languages.rs";

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

fn java_sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}
