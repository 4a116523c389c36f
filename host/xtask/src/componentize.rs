//! Creates components from core modules.

use std::{fs, path::Path};

use keywright_author::component_of_module;

use crate::step::StepFailed;

/// Creates a component from a core module built with wit-bindgen. Writes it only if it differs from the existing file.
pub(crate) fn componentize(module: &Path, component: &Path) -> Result<(), StepFailed> {
    let doing = || format!("creating a component from {}", module.display());
    let module_bytes = fs::read(module).map_err(|cause| StepFailed::new(doing(), cause))?;
    let bytes =
        component_of_module(&module_bytes).map_err(|cause| StepFailed::new(doing(), cause))?;
    if fs::read(component).is_ok_and(|existing| existing == bytes) {
        return Ok(());
    }
    fs::write(component, bytes).map_err(|cause| StepFailed::new(doing(), cause))
}
