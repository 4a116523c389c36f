//! `keywright config-reference`.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use crate::{config::reference, started::StartRefused};

/// Prints the reference of all settings.
pub(crate) fn config_reference() -> Result<ExitCode, StartRefused> {
    match io::stdout().write_all(reference::reference().as_bytes()) {
        // Whoever reads it has seen enough.
        Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(cause) => Err(StartRefused::while_doing("printing the reference", cause)),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}
