//! Builds projects into components.

mod compiled;
mod interpreted;
mod project;

use std::path::{Path, PathBuf};

use crate::{
    component::{component_of_bare_module, component_of_module, stub_wasi_imports},
    error::BuildError,
    language::Language,
    programs::Programs,
    wit::World,
};
use compiled::{c_module, go_module, rust_module};
use interpreted::{javascript_component, python_component, with_randomness};
use project::{Project, absolute, read, write};

/// Builds the project in a folder and returns the path of the component: `output`, or a file in the folder with the folder's name.
///
/// Prints the command line and the output of each program that it runs to standard error.
pub fn build(
    folder: &Path,
    output: Option<&Path>,
    programs: &Programs,
) -> Result<PathBuf, BuildError> {
    let language = Language::of_project(folder)?;
    let output = match output {
        Some(output) => output.to_owned(),
        None => folder
            .join(folder_name(folder)?)
            .with_added_extension("wasm"),
    };
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
        Language::Go => component_of_bare_module(bytes, &World::of_project(folder)?),
        Language::JavaScript => stub_wasi_imports(bytes),
        Language::Python => with_randomness(bytes),
    };
    let component = component.map_err(|source| BuildError::NotEncodable {
        file: built,
        source,
    })?;
    write(&output, &component)?;
    Ok(output)
}

/// Returns the name of a folder, even if the path is `.`.
fn folder_name(folder: &Path) -> Result<PathBuf, BuildError> {
    let full = absolute(folder)?;
    Ok(full.file_name().unwrap_or("plugin".as_ref()).into())
}
