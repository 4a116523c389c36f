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
    guests,
    outdated::{self, NotBuilt, rebuild},
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
        rebuild(&components.join(component), &inputs(&folder), |output| {
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
    rebuild(
        &components.join(STARLING_MONKEY_COMPONENT),
        &inputs(&folder),
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

/// The project's own files, the recipes, and the versions of the tools.
fn inputs(folder: &Path) -> [PathBuf; 3] {
    [
        folder.to_owned(),
        step::workspace().join("host/author"),
        outdated::versions_of_tools(),
    ]
}

/// What an error says, and what those that caused it say.
fn with_causes(error: &dyn Error) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |said, cause| format!("{said}: {cause}"))
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
