//! Building: a component of what a project holds.

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

/// Builds the project in a folder and returns the file with its component: the one that is named, or one in the folder that has
/// the name of the folder.
///
/// Each call of another program is shown on standard error before it is made, as one could type it, and so is what that
/// program writes.
///
/// # Errors
/// When the folder holds no project, a program is missing, or something of the project can't be built.
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

/// What is built.
struct Project<'a> {
    folder: &'a Path,
    programs: &'a Programs,
}

impl Project<'_> {
    /// Writes what is generated for its world, in place of what was generated before.
    fn generate(
        &self,
        world: &mut World,
        generator: &mut dyn WorldGenerator,
    ) -> Result<(), BuildFailed> {
        let folder = self.generated_anew()?;
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

    /// The folder for what is generated, empty.
    fn generated_anew(&self) -> Result<PathBuf, BuildFailed> {
        let folder = self.folder.join(GENERATED);
        match fs::remove_dir_all(&folder) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
                Err(BuildFailed::file("emptying", &folder, cause))
            }
            _ => {
                fs::create_dir_all(&folder)
                    .map_err(|cause| BuildFailed::file("making", &folder, cause))?;
                Ok(folder)
            }
        }
    }
}

/// The name of a folder, also of one that is given as `.`.
fn own_name(folder: &Path) -> Result<PathBuf, BuildFailed> {
    let full = absolute(folder)?;
    Ok(full.file_name().unwrap_or("plugin".as_ref()).into())
}

fn absolute(path: &Path) -> Result<PathBuf, BuildFailed> {
    path.canonicalize()
        .map_err(|cause| BuildFailed::file("finding", path, cause))
}

fn read(file: &Path) -> Result<Vec<u8>, BuildFailed> {
    fs::read(file).map_err(|cause| BuildFailed::file("reading", file, cause))
}

fn write(file: &Path, contents: &[u8]) -> Result<(), BuildFailed> {
    let written = file
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(file, contents));
    written.map_err(|cause| BuildFailed::file("writing", file, cause))
}

/// The folder of a project for what is generated, and built on the way.
const GENERATED: &str = "generated";
/// What a language's tools make, in that folder: a core module, or a component that is not closed yet.
const BUILT: &str = "built.wasm";
