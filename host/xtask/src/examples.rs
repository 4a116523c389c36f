//! Builds the plugins in languages other than Rust: the examples, with the build steps of `keywright plugin build`, and test guests.

use std::{
    error::Error,
    fs, iter,
    path::{Path, PathBuf},
    process::Command,
};

use keywright_author::{BuildError, build};

use crate::{
    guests,
    outdated::{self, NotBuilt, rebuild},
    step::{self, StepError},
    toolchains,
};

/// Builds all these plugins into the folder with the components of guests. Skips unchanged projects. If the tools of a project are
/// missing, skips it and removes its earlier component.
///
/// # Errors
/// If a build fails although its tools are installed.
pub(crate) fn build_all() -> Result<(), StepError> {
    toolchains::ensure();
    let components = guests::components()?;
    for (component, folder) in PROJECTS {
        let folder = step::workspace().join(folder);
        rebuild(&components.join(component), &inputs(&folder), |output| {
            let built = build(&folder, Some(output), &toolchains::programs());
            built.map(drop).map_err(|failed| {
                let is_missing = matches!(failed, BuildError::ToolMissing { .. });
                let reason = StepError::new(folder.display(), with_causes(&failed));
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
        outdated::versions_of_tools(),
    ]
}

fn with_causes(error: &dyn Error) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn build_with_starling_monkey(folder: &Path, output: &Path) -> Result<(), NotBuilt> {
    let npm = toolchains::npm_folder();
    if !npm.join("node_modules").is_dir() {
        let reason = format!("{}: componentize-js is not installed", folder.display());
        return Err(NotBuilt::WithoutTools(StepError(reason)));
    }
    // Node.js resolves packages from the script's folder.
    let script = npm.join(STARLING_MONKEY_SCRIPT);
    fs::copy(folder.join(STARLING_MONKEY_SCRIPT), &script)
        .map_err(|cause| NotBuilt::Failed(StepError::new(script.display(), cause)))?;
    let mut node = Command::new("node");
    node.args([&script, &folder.to_owned(), &output.to_owned()]);
    step::run(&mut node).map_err(NotBuilt::Failed)
}
