//! Python: componentize-py makes a component that holds `CPython`.
//!
//! Without `--stub-wasi`, the runtime asks for an environment and 2,496 random bytes at the start of each call. With it,
//! whatever is imported of WASI traps, and so would `wasi:random/random`. So the module is built against a copy of the
//! project's WIT in which that package has another name, which the component then has no more.

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

/// Puts the project's module into a component and returns the file with it.
pub(super) fn component(project: &Project<'_>) -> Result<PathBuf, BuildFailed> {
    let tool = project
        .programs
        .find("componentize-py")
        .ok_or(BuildFailed::ToolMissing {
            tool: "componentize-py",
            remedy: "`pip install -r requirements.txt`, in a virtual environment that is active",
        })?;
    let world = World::of_project(project.folder)?;
    let generated = project.generated_anew()?;
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

/// The component that draws from `wasi:random/random` again.
pub(super) fn with_randomness(component: Vec<u8>) -> Result<Vec<u8>, NotEncodable> {
    let interface = |package| format!("{package}/random@");
    rename_import(component, &interface(RENAMED), &interface(RANDOM))
}

/// Copies WIT, with the package of the host's randomness under its other name.
fn copy_renamed(from: &Path, to: &Path) -> Result<(), BuildFailed> {
    let failed = |cause| BuildFailed::file("listing", from, cause);
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
