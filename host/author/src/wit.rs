//! Reads the WIT of a project.

use std::path::Path;

use wit_parser::{Resolve, WorldId};

use crate::error::BuildError;

/// The folder of a project that contains its WIT.
pub(crate) const FOLDER: &str = "wit";
/// A project's own world. A project without one uses [`GENERATOR_WORLD`].
const OWN_WORLD: &str = "plugin";
const GENERATOR_WORLD: &str = "generator-plugin";

/// A world, with everything that it refers to.
pub(crate) struct World {
    pub(crate) resolve: Resolve,
    pub(crate) id: WorldId,
}

impl World {
    /// Reads the world of a project.
    pub(crate) fn of_project(project: &Path) -> Result<Self, BuildError> {
        let folder = project.join(FOLDER);
        if !folder.is_dir() {
            return Err(BuildError::WitMissing { folder });
        }
        let malformed = |cause: anyhow::Error| BuildError::WitMalformed {
            folder: folder.clone(),
            cause: format!("{cause:#}"),
        };
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(&folder).map_err(malformed)?;
        let worlds = resolve.packages.get(package).map(|package| &package.worlds);
        let of_name = |name| worlds.and_then(|worlds| worlds.get(name).copied());
        let id = of_name(OWN_WORLD)
            .or_else(|| of_name(GENERATOR_WORLD))
            .ok_or_else(|| BuildError::WorldMissing {
                folder: folder.clone(),
            })?;
        Ok(Self { resolve, id })
    }

    /// Returns the name of the world.
    pub(crate) fn name(&self) -> &str {
        self.resolve
            .worlds
            .get(self.id)
            .map_or("", |world| world.name.as_str())
    }
}
