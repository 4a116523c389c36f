//! Python: componentize-py makes a component that holds CPython.

use std::path::{Path, PathBuf};

use super::{BUILT, BuildFailed, GENERATED, Project};
use crate::{
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
    project.generated_anew()?;
    let built = Path::new(GENERATED).join(BUILT);
    Call::new(project.programs, project.folder, &tool)
        .arguments(["--wit-path", wit::FOLDER, "--world", world.name()])
        .arguments(["componentize", MODULE, "--output"])
        .arguments([&built])
        .run()?;
    Ok(project.folder.join(built))
}

/// The module with the project's code.
const MODULE: &str = "plugin";
