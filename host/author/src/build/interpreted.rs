//! Interpreted languages, whose tools produce a component that contains the interpreter: JavaScript with jco and `QuickJS`, Python
//! with componentize-py and `CPython`.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::project::{BUILT, GENERATED, Project, absolute, read, write};
use crate::{
    component::{WIT_FOLDER, WIT_LEVELS, World, rename_import},
    error::ProjectError,
    programs::{Call, Program},
};

/// Builds a component from the project's module. Returns its path.
pub(super) fn javascript_component(project: &Project<'_>) -> Result<PathBuf, ProjectError> {
    let jco = jco(project).ok_or(ProjectError::ToolMissing {
        tool: "jco",
        remedy: "run `npm install` in the project's folder, or `npm install --global @bytecodealliance/jco`",
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
        .arguments(["--wit".as_ref(), folder.join(WIT_FOLDER).as_os_str()])
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
fn entry(folder: &Path) -> Result<String, ProjectError> {
    let file = folder.join("package.json");
    let manifest: Value = keywright_json::read_bytes(&read(&file)?)
        .map_err(|cause| ProjectError::new(format!("{}: {cause}", file.display())))?;
    let main = manifest.get("main").and_then(Value::as_str);
    let main = main.ok_or_else(|| {
        ProjectError::new(format!(
            "{} must be a JSON object whose field `main` is the name of a file",
            file.display()
        ))
    })?;
    if !folder.join(main).is_file() {
        let failure = format!(
            "{}: main names {main}, which does not exist",
            file.display()
        );
        return Err(ProjectError::new(failure));
    }
    Ok(main.to_owned())
}

/// Builds a component from the project's module. Returns its path.
///
/// Without `--stub-wasi`, the runtime reads the environment and 2,496 random bytes at the start of each call. With it, every
/// WASI import traps, including `wasi:random/random`. So the module is built against a copy of the project's WIT in which that
/// package is renamed, and the import is renamed back in the built component.
pub(super) fn python_component(project: &Project<'_>) -> Result<PathBuf, ProjectError> {
    let tool = project
        .programs
        .find("componentize-py")
        .ok_or(ProjectError::ToolMissing {
            tool: "componentize-py",
            remedy: "run `pip install -r requirements.txt` in an activated virtual environment",
        })?;
    let world = World::of_project(project.folder)?;
    let generated = project.recreate_generated()?;
    copy_renamed(
        &project.folder.join(WIT_FOLDER),
        &generated.join(WIT_FOLDER),
        WIT_LEVELS,
    )?;
    let entry = generated.join(PYTHON_ENTRY).with_extension("py");
    write(&entry, PYTHON_ENTRY_TEXT)?;
    let built = Path::new(GENERATED).join(BUILT);
    let (status, output) = Call::new(project.programs, project.folder, &tool)
        .arguments(["--wit-path".into(), Path::new(GENERATED).join(WIT_FOLDER)])
        .arguments(["--world", world.name()])
        .arguments(["componentize", PYTHON_ENTRY, "--python-path", "."])
        .arguments(["--python-path", GENERATED, "--stub-wasi", "--output"])
        .arguments([&built])
        .captured()?;
    if status.success() {
        return Ok(project.folder.join(built));
    }
    Err(import_failure(&output).unwrap_or_else(|| {
        // Standard error may be closed.
        let _ = io::stderr().write_all(output.as_bytes());
        ProjectError::new(format!("componentize-py failed ({status})"))
    }))
}

/// Finds the exception of the project's module in the output of componentize-py, which continues with its own backtrace.
fn import_failure(output: &str) -> Option<ProjectError> {
    let (traceback, causes) = output.split_once("Caused by:\n")?;
    let cause = causes.lines().next()?.trim();
    if let Some(class) = cause.strip_prefix(CLASS_MISSING) {
        let class = class.trim_matches('\'');
        return Some(ProjectError::new(format!("plugin.py has no class {class}")));
    }
    let mut locations = traceback.lines().filter_map(|line| {
        // The folder of the project is the first one in the search path.
        let (file, line) = line
            .trim()
            .strip_prefix("File \"/0/")?
            .split_once("\", line ")?;
        Some(format!("{file}:{}", line.split(',').next()?))
    });
    let is_missing = cause.starts_with("ImportError") || cause.starts_with("ModuleNotFoundError");
    // The last location is the innermost one.
    let location = locations.next_back();
    let location = location.unwrap_or_else(|| "plugin.py".to_owned());
    let hint = if is_missing { NATIVE_HINT } else { "" };
    Some(ProjectError::new(format!(
        "could not import {location}: {cause}{hint}"
    )))
}

/// Restores the name of the import that [`copy_renamed`] renamed.
pub(super) fn with_randomness(component: Vec<u8>) -> Result<Vec<u8>, ProjectError> {
    let interface = |package| format!("{package}/random@");
    rename_import(component, &interface(RENAMED), &interface(RANDOM))
}

/// Copies WIT with another name for the random package, because `componentize-py --stub-wasi` stubs every WASI import. Copies no
/// other files, because a downloaded project can contain links to secrets, and the component could contain the copies.
///
/// `levels` limits the folders in this folder, because links can lead back to it.
fn copy_renamed(from: &Path, to: &Path, levels: u8) -> Result<(), ProjectError> {
    let failed = |cause| ProjectError::file("list", from, cause);
    for entry in fs::read_dir(from).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() {
            if levels > 0 {
                copy_renamed(&from, &to, levels - 1)?;
            }
        } else if from.extension() == Some("wit".as_ref()) {
            let text = read(&from)?;
            let text = String::from_utf8_lossy(&text).replace(RANDOM, RENAMED);
            write(&to, text.as_bytes())?;
        }
    }
    Ok(())
}

/// The module that runs the project's module, `plugin`, and prints exceptions.
const PYTHON_ENTRY: &str = "keywright_entry";
const PYTHON_ENTRY_TEXT: &[u8] = include_bytes!("keywright_entry.py");
/// The start of the exception if the project's module lacks a class for an export.
const CLASS_MISSING: &str = "AttributeError: module 'keywright_entry' has no attribute ";
/// The most common reasons why a module can't be imported.
const NATIVE_HINT: &str = "; if it is not installed, add it to requirements.txt and run `pip install -r requirements.txt`; modules in C \
     or Rust can't be used, only packages in pure Python";
const RANDOM: &str = "wasi:random";
const RENAMED: &str = "keywright-host:random";
