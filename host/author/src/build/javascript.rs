//! JavaScript: jco builds a component that contains `QuickJS`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{BUILT, BuildFailed, GENERATED, Project, absolute, read};
use crate::{
    outside::{Call, Program},
    wit::{self, World},
};

/// Builds a component from the project's module. Returns its path.
pub(super) fn component(project: &Project<'_>) -> Result<PathBuf, BuildFailed> {
    let jco = jco(project).ok_or(BuildFailed::ToolMissing {
        tool: "jco",
        remedy: "`npm install` in the project's folder, or `npm install --global @bytecodealliance/jco`",
    })?;
    let world = World::of_project(project.folder)?;
    let generated = project.recreate_generated()?;
    // jco resolves relative paths twice.
    let folder = absolute(project.folder)?;
    let built = absolute(&generated)?.join(BUILT);
    Call::new(project.programs, project.folder, &jco)
        .arguments([
            "componentize".as_ref(),
            folder.join(entry(project.folder)?).as_os_str(),
        ])
        .arguments(["--wit".as_ref(), folder.join(wit::FOLDER).as_os_str()])
        .arguments(["--world-name", world.name()])
        .arguments(["--backend", "quickjs", "--backend-qjs-disable-async"])
        .arguments(["--out".as_ref(), built.as_os_str()])
        .run()?;
    Ok(project.folder.join(GENERATED).join(BUILT))
}

/// Finds the project's own jco, or the installed one.
fn jco(project: &Project<'_>) -> Option<Program> {
    let own = Path::new("node_modules/.bin/jco");
    let file = project.folder.join(own).canonicalize().ok();
    file.and_then(|file| Program::at(file, own))
        .or_else(|| project.programs.find("jco"))
}

/// Reads the path of the module from the manifest: `main`.
fn entry(folder: &Path) -> Result<String, BuildFailed> {
    let file = folder.join("package.json");
    let manifest: Option<Value> = keywright_json::read_bytes(&read(&file)?).ok();
    let main = manifest
        .as_ref()
        .and_then(|manifest| manifest.get("main")?.as_str());
    main.map(str::to_owned)
        .ok_or(BuildFailed::ManifestMalformed {
            file,
            rule: "must be a JSON object whose field `main` is the name of a file",
        })
}
