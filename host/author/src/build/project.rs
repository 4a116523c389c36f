//! The project to build, with its generated files.

use std::{
    fs::{self, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use wit_bindgen_core::{Files, WorldGenerator};

use crate::{component::World, error::ProjectError, programs::Programs};

pub(super) struct Project<'a> {
    pub(super) folder: &'a Path,
    pub(super) programs: &'a Programs,
}

impl Project<'_> {
    /// Generates the bindings for the world. Replaces the bindings of an earlier build.
    pub(super) fn generate(
        &self,
        world: &mut World,
        generator: &mut dyn WorldGenerator,
    ) -> Result<(), ProjectError> {
        let folder = self.recreate_generated()?;
        let mut files = Files::default();
        generator
            .generate(&mut world.resolve, world.id, &mut files)
            .map_err(|cause| {
                ProjectError::new(format!(
                    "could not generate bindings for the WIT of the project: {cause:#}"
                ))
            })?;
        for (name, contents) in files.iter() {
            write(&folder.join(name), contents)?;
        }
        Ok(())
    }

    /// Lists the C sources in the project's folder, in alphabetical order.
    pub(super) fn c_sources(&self) -> Result<Vec<PathBuf>, ProjectError> {
        let failed = |cause| ProjectError::file("list", self.folder, cause);
        let mut sources = Vec::new();
        for entry in fs::read_dir(self.folder).map_err(failed)? {
            let file = entry.map_err(failed)?.path();
            if file.extension() == Some("c".as_ref()) && file.is_file() {
                sources.push(file);
            }
        }
        sources.sort();
        Ok(sources)
    }

    /// Removes the folder for generated files and creates it again.
    pub(super) fn recreate_generated(&self) -> Result<PathBuf, ProjectError> {
        let folder = self.folder.join(GENERATED);
        match fs::remove_dir_all(&folder) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
                Err(ProjectError::file("remove", &folder, cause))
            }
            _ => {
                fs::create_dir_all(&folder)
                    .map_err(|cause| ProjectError::file("create", &folder, cause))?;
                Ok(folder)
            }
        }
    }
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf, ProjectError> {
    path.canonicalize()
        .map_err(|cause| ProjectError::file("find", path, cause))
}

pub(super) fn read(file: &Path) -> Result<Vec<u8>, ProjectError> {
    fs::read(file).map_err(|cause| ProjectError::file("read", file, cause))
}

pub(super) fn write(file: &Path, contents: &[u8]) -> Result<(), ProjectError> {
    let written = file
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(file, contents));
    written.map_err(|cause| ProjectError::file("write", file, cause))
}

/// Writes a whole file, or nothing.
///
/// # Errors
/// Also if the file is not a regular file: the project may contain a link to any file.
pub(super) fn replace(file: &Path, contents: &[u8]) -> Result<(), ProjectError> {
    let replaced = || {
        check_replaceable(file)?;
        let folder = file.parent().unwrap_or("".as_ref());
        let mut new = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)?;
        new.write_all(contents)?;
        new.persist(file)?;
        Ok(())
    };
    replaced().map_err(|cause| ProjectError::file("write", file, cause))
}

/// Checks that a file can be created or replaced.
pub(super) fn check_replaceable(file: &Path) -> io::Result<()> {
    let cause = match fs::symlink_metadata(file) {
        Ok(found) if found.is_dir() => "it is a folder; name a file",
        Ok(found) if !found.is_file() => {
            "it is not a regular file; remove it, or name another file"
        }
        Ok(_) => return Ok(()),
        Err(_) => match file.parent() {
            Some(folder) if folder != Path::new("") && !folder.is_dir() => {
                "its folder does not exist"
            }
            _ => return Ok(()),
        },
    };
    Err(io::Error::other(cause))
}

/// The folder of a project for generated and intermediate files.
pub(super) const GENERATED: &str = "generated";
/// The output of a language's tools, in that folder: a core module, or a component with the imports of its runtime.
pub(super) const BUILT: &str = "built.wasm";
