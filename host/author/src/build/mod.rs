//! Builds projects into components.

mod compiled;
mod interpreted;
mod project;

use std::path::{Path, PathBuf};

use crate::{
    component::{World, component_of_go_module, component_of_module, stub_wasi_imports},
    error::ProjectError,
    language::Language,
    programs::Programs,
};
use compiled::{c_module, go_module, rust_module};
use interpreted::{javascript_component, python_component, with_randomness};
use project::{Project, absolute, check_replaceable, read, replace};

/// Builds the project in a folder and returns the path of the component: `output`, or a file in the folder with the folder's name.
///
/// Prints the command line and the output of each program that it runs to standard error.
pub fn build(
    folder: &Path,
    output: Option<&Path>,
    programs: &Programs,
) -> Result<PathBuf, ProjectError> {
    let language = Language::of_project(folder)?;
    let output = match output {
        Some(output) => output.to_owned(),
        None => folder
            .join(folder_name(folder)?)
            .with_added_extension("wasm"),
    };
    check_replaceable(&output).map_err(|cause| ProjectError::file("write", &output, cause))?;
    let project = Project { folder, programs };
    let built = match language {
        Language::C => c_module(&project),
        Language::Go => go_module(&project),
        Language::JavaScript => javascript_component(&project),
        Language::Python => python_component(&project),
        Language::Rust => rust_module(&project),
    }?;
    let bytes = read(&built)?;
    let component = match language {
        Language::C | Language::Rust => component_of_module(&bytes),
        Language::Go => component_of_go_module(bytes, &World::of_project(folder)?),
        Language::JavaScript => stub_wasi_imports(bytes),
        Language::Python => with_randomness(bytes),
    };
    let component = component.map_err(|cause| {
        let failure = format!("could not create a component from {}", built.display());
        ProjectError::caused_by(failure, cause)
    })?;
    replace(&output, &component)?;
    Ok(output)
}

/// Returns the name of a folder, even if the path is `.`.
fn folder_name(folder: &Path) -> Result<PathBuf, ProjectError> {
    let full = absolute(folder)?;
    Ok(full.file_name().unwrap_or("plugin".as_ref()).into())
}
