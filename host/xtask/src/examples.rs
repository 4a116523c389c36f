//! Building what is in other languages than Rust: the examples, each by the recipe of `keywright plugin build`, and guests of
//! tests.

use std::{
    error::Error,
    fs, iter,
    path::{Path, PathBuf},
    process::Command,
};

use keywright_author::{BuildFailed, build};

use crate::{
    dist::digest,
    guests,
    step::{self, StepFailed},
    toolchains,
};

/// Builds all of them into the folder with the components of guests. What has not changed since is not built again. What a tool is missing
/// for is left out, and so is what was built of it before.
///
/// # Errors
/// When something that has its tools can't be built.
pub(crate) fn build_all() -> Result<(), StepFailed> {
    toolchains::ensure();
    let components = guests::components()?;
    for (component, folder) in PROJECTS {
        let folder = step::workspace().join(folder);
        keep_or_build(&components.join(component), &folder, |output| {
            let built = build(&folder, Some(output), &toolchains::programs());
            built.map(drop).map_err(|failed| {
                let is_missing = matches!(failed, BuildFailed::ToolMissing { .. });
                let reason = StepFailed::new(folder.display(), with_causes(&failed));
                if is_missing {
                    NotBuilt::WithoutTools(reason)
                } else {
                    NotBuilt::Failed(reason)
                }
            })
        })?;
    }
    let folder = step::workspace().join(STARLING_MONKEY);
    keep_or_build(
        &components.join(STARLING_MONKEY_COMPONENT),
        &folder,
        |output| build_with_starling_monkey(&folder, output),
    )
}

/// Each project, by its folder, and what its component is called.
const PROJECTS: [(&str, &str); 5] = [
    ("age.wasm", "examples/age-generator"),
    ("diceware.wasm", "examples/passphrase-generator"),
    ("quickjs.wasm", "tests/guests/quickjs"),
    ("totp.wasm", "examples/totp-generator"),
    ("uuid.wasm", "examples/uuid-generator"),
];

/// A guest of tests that another engine for JavaScript is put into than the one of the recipe.
const STARLING_MONKEY: &str = "tests/guests/starling-monkey";
const STARLING_MONKEY_COMPONENT: &str = "starling-monkey.wasm";
const STARLING_MONKEY_SCRIPT: &str = "build.mjs";

/// What an error says, and what those that caused it say.
fn with_causes(error: &dyn Error) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |said, cause| format!("{said}: {cause}"))
}

enum NotBuilt {
    Failed(StepFailed),
    WithoutTools(StepFailed),
}

/// Builds a component, unless it was built of the same.
fn keep_or_build(
    output: &Path,
    folder: &Path,
    build: impl FnOnce(&Path) -> Result<(), NotBuilt>,
) -> Result<(), StepFailed> {
    let digest = digest_of_inputs(folder)?;
    let made_of = output.with_extension("inputs");
    if output.is_file() && fs::read_to_string(&made_of).is_ok_and(|kept| kept == digest) {
        return Ok(());
    }
    for stale in [output, &made_of] {
        let _ = fs::remove_file(stale);
    }
    match build(output) {
        Ok(()) => {
            fs::write(&made_of, digest).map_err(|cause| StepFailed::new(made_of.display(), cause))
        }
        Err(NotBuilt::WithoutTools(StepFailed(reason))) => {
            eprintln!("xtask: left out, and so are its tests: {reason}");
            Ok(())
        }
        Err(NotBuilt::Failed(reason)) => Err(reason),
    }
}

/// Of all that a project is built of: its own files, the recipes, and the versions of the tools.
fn digest_of_inputs(folder: &Path) -> Result<String, StepFailed> {
    let mut files = Vec::new();
    for folder in [
        folder,
        &step::workspace().join(RECIPES),
        &step::workspace().join(TOOLCHAINS),
    ] {
        add_files(folder, &mut files)?;
    }
    files.sort();
    let mut digests = String::new();
    for file in files {
        let contents = fs::read(&file).map_err(|cause| StepFailed::new(file.display(), cause))?;
        digests.push_str(&digest(&contents));
    }
    Ok(digest(digests.as_bytes()))
}

const RECIPES: &str = "host/author";
/// The versions of the tools, in files.
const TOOLCHAINS: &str = "host/xtask/toolchains";

/// Adds the files below a folder, also those that links lead to, but for what building makes.
fn add_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), StepFailed> {
    let failed = |cause| StepFailed::new(format!("listing {}", folder.display()), cause);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() {
            files.push(path);
        } else if !path.ends_with("generated") && !path.ends_with("__pycache__") {
            add_files(&path, files)?;
        }
    }
    Ok(())
}

fn build_with_starling_monkey(folder: &Path, output: &Path) -> Result<(), NotBuilt> {
    let npm = toolchains::npm_folder();
    if !npm.join("node_modules").is_dir() {
        let reason = format!("{}: componentize-js is not installed", folder.display());
        return Err(NotBuilt::WithoutTools(StepFailed(reason)));
    }
    // Packages are found from where a script lies.
    let script = npm.join(STARLING_MONKEY_SCRIPT);
    fs::copy(folder.join(STARLING_MONKEY_SCRIPT), &script)
        .map_err(|cause| NotBuilt::Failed(StepFailed::new(script.display(), cause)))?;
    let mut node = Command::new("node");
    node.args([&script, &folder.to_owned(), &output.to_owned()]);
    step::run(&mut node).map_err(NotBuilt::Failed)
}
