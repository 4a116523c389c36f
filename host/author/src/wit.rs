//! The WIT of a project, read for whatever needs to know its world.

use std::path::Path;

use wit_parser::{Resolve, WorldId};

use crate::build::BuildFailed;

/// The folder of a project with its WIT.
pub(crate) const FOLDER: &str = "wit";
/// The world in it that a project may write down for itself; without one it is that of a plain generator.
const OWN_WORLD: &str = "plugin";
const GENERATOR_WORLD: &str = "generator-plugin";

/// A world, with all that it refers to.
pub(crate) struct World {
    pub(crate) resolve: Resolve,
    pub(crate) id: WorldId,
}

impl World {
    /// Reads the world of a project.
    ///
    /// # Errors
    /// When its WIT is not there, is wrong, or holds no world for plugins.
    pub(crate) fn of_project(project: &Path) -> Result<Self, BuildFailed> {
        let folder = project.join(FOLDER);
        if !folder.is_dir() {
            return Err(BuildFailed::WitMissing { folder });
        }
        let malformed = |cause: anyhow::Error| BuildFailed::WitMalformed {
            folder: folder.clone(),
            cause: format!("{cause:#}"),
        };
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(&folder).map_err(malformed)?;
        let worlds = resolve.packages.get(package).map(|package| &package.worlds);
        let of_name = |name| worlds.and_then(|worlds| worlds.get(name).copied());
        let id = of_name(OWN_WORLD)
            .or_else(|| of_name(GENERATOR_WORLD))
            .ok_or_else(|| BuildFailed::WorldMissing {
                folder: folder.clone(),
            })?;
        Ok(Self { resolve, id })
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &str {
        self.resolve
            .worlds
            .get(self.id)
            .map_or("", |world| world.name.as_str())
    }
}
