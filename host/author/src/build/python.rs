//! Python: componentize-py builds a component that contains `CPython`.
//!
//! Without `--stub-wasi`, the runtime reads the environment and 2,496 random bytes at the start of each call. With it, every
//! WASI import traps, including `wasi:random/random`. So the module is built against a copy of the project's WIT in which that
//! package is renamed, and the import is renamed back in the built component.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{BUILT, BuildFailed, GENERATED, Project, read, write};
use crate::{
    component::{NotEncodable, rename_import},
    outside::Call,
    wit::{self, World},
};

/// Builds a component from the project's module. Returns its path.
pub(super) fn component(project: &Project<'_>) -> Result<PathBuf, BuildFailed> {
    let tool = project
        .programs
        .find("componentize-py")
        .ok_or(BuildFailed::ToolMissing {
            tool: "componentize-py",
            remedy: "`pip install -r requirements.txt`, in an activated virtual environment",
        })?;
    let world = World::of_project(project.folder)?;
    let generated = project.recreate_generated()?;
    copy_renamed(
        &project.folder.join(wit::FOLDER),
        &generated.join(wit::FOLDER),
    )?;
    let built = Path::new(GENERATED).join(BUILT);
    Call::new(project.programs, project.folder, &tool)
        .arguments(["--wit-path".into(), Path::new(GENERATED).join(wit::FOLDER)])
        .arguments(["--world", world.name()])
        .arguments(["componentize", MODULE, "--stub-wasi", "--output"])
        .arguments([&built])
        .run()?;
    Ok(project.folder.join(built))
}

/// Renames the import of the random package back.
pub(super) fn with_randomness(component: Vec<u8>) -> Result<Vec<u8>, NotEncodable> {
    let interface = |package| format!("{package}/random@");
    rename_import(component, &interface(RENAMED), &interface(RANDOM))
}

/// Copies WIT, renaming the random package.
fn copy_renamed(from: &Path, to: &Path) -> Result<(), BuildFailed> {
    let failed = |cause| BuildFailed::file("list", from, cause);
    for entry in fs::read_dir(from).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() {
            copy_renamed(&from, &to)?;
        } else {
            let text = read(&from)?;
            let text = String::from_utf8_lossy(&text).replace(RANDOM, RENAMED);
            write(&to, text.as_bytes())?;
        }
    }
    Ok(())
}

/// The module with the project's code.
const MODULE: &str = "plugin";
const RANDOM: &str = "wasi:random";
const RENAMED: &str = "keywright-host:random";
