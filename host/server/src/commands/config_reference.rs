//! `keywright config-reference`.

use std::process::ExitCode;

use super::output;
use crate::{config::reference, started::StartRefused};

/// Prints the configuration reference.
pub(crate) fn config_reference() -> Result<ExitCode, StartRefused> {
    output::print(&reference::reference())?;
    Ok(ExitCode::SUCCESS)
}
