//! Making components of core modules.

use std::{fs, path::Path};

use keywright_author::component_of_module;

use crate::step::StepFailed;

/// Makes a component of a core module that wit-bindgen built, and writes it where it differs from what is there.
pub(crate) fn componentize(module: &Path, component: &Path) -> Result<(), StepFailed> {
    let doing = || format!("making a component of {}", module.display());
    let module_bytes = fs::read(module).map_err(|cause| StepFailed::new(doing(), cause))?;
    let bytes =
        component_of_module(&module_bytes).map_err(|cause| StepFailed::new(doing(), cause))?;
    if fs::read(component).is_ok_and(|existing| existing == bytes) {
        return Ok(());
    }
    fs::write(component, bytes).map_err(|cause| StepFailed::new(doing(), cause))
}
