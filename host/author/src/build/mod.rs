//! Builds projects into components.

mod c;
mod failed;
mod go;
mod javascript;
mod python;
mod rust;

use std::{
    fs,
    path::{Path, PathBuf},
};

pub use failed::BuildFailed;
use wit_bindgen_core::{Files, WorldGenerator};

use crate::{
    component::{close, component_of_bare_module, component_of_module},
    language::Language,
    outside::Programs,
    wit::World,
};

/// Builds the project in a folder and returns the path of the component: `output`, or a file in the folder with the folder's name.
///
/// Prints the command line and the output of each program that it runs to standard error.
pub fn build(
    folder: &Path,
    output: Option<&Path>,
    programs: &Programs,
) -> Result<PathBuf, BuildFailed> {
    let language = Language::of_project(folder)?;
    let output = match output {
        Some(output) => output.to_owned(),
        None => folder.join(own_name(folder)?).with_added_extension("wasm"),
    };
    let project = Project { folder, programs };
    let built = match language {
        Language::C => c::module(&project),
        Language::Go => go::module(&project),
        Language::JavaScript => javascript::component(&project),
        Language::Python => python::component(&project),
        Language::Rust => rust::module(&project),
    }?;
    let bytes = read(&built)?;
    let component = match language {
        Language::C | Language::Rust => component_of_module(&bytes),
        Language::Go => component_of_bare_module(bytes, &World::of_project(folder)?),
        Language::JavaScript => close(bytes),
        Language::Python => python::with_randomness(bytes),
    };
    let component = component.map_err(|source| BuildFailed::NotEncodable {
        file: built,
        source,
    })?;
    write(&output, &component)?;
    Ok(output)
}

/// The project to build.
struct Project<'a> {
    folder: &'a Path,
    programs: &'a Programs,
}

impl Project<'_> {
    /// Generates the bindings for the world, replacing those of an earlier build.
    fn generate(
        &self,
        world: &mut World,
        generator: &mut dyn WorldGenerator,
    ) -> Result<(), BuildFailed> {
        let folder = self.recreate_generated()?;
        let mut files = Files::default();
        generator
            .generate(&mut world.resolve, world.id, &mut files)
            .map_err(|cause| BuildFailed::NotBound {
                cause: format!("{cause:#}"),
            })?;
        for (name, contents) in files.iter() {
            write(&folder.join(name), contents)?;
        }
        Ok(())
    }

    /// Removes the folder for generated files and creates it again.
    fn recreate_generated(&self) -> Result<PathBuf, BuildFailed> {
        let folder = self.folder.join(GENERATED);
        match fs::remove_dir_all(&folder) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
                Err(BuildFailed::file("remove", &folder, cause))
            }
            _ => {
                fs::create_dir_all(&folder)
                    .map_err(|cause| BuildFailed::file("create", &folder, cause))?;
                Ok(folder)
            }
        }
    }
}

/// Returns the name of a folder, even if the path is `.`.
fn own_name(folder: &Path) -> Result<PathBuf, BuildFailed> {
    let full = absolute(folder)?;
    Ok(full.file_name().unwrap_or("plugin".as_ref()).into())
}

fn absolute(path: &Path) -> Result<PathBuf, BuildFailed> {
    path.canonicalize()
        .map_err(|cause| BuildFailed::file("find", path, cause))
}

fn read(file: &Path) -> Result<Vec<u8>, BuildFailed> {
    fs::read(file).map_err(|cause| BuildFailed::file("read", file, cause))
}

fn write(file: &Path, contents: &[u8]) -> Result<(), BuildFailed> {
    let written = file
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(file, contents));
    written.map_err(|cause| BuildFailed::file("write", file, cause))
}

/// The folder of a project for generated and intermediate files.
const GENERATED: &str = "generated";
/// The output of a language's tools, in that folder: a core module, or a component with the imports of its runtime.
const BUILT: &str = "built.wasm";
