//! `keywright man-pages`.

use std::{fs, path::Path, process::ExitCode};

use clap::CommandFactory;

use crate::{cli::Arguments, started::StartRefused};

/// Writes the manual pages of the program and its commands: `keywright.1`, `keywright-get.1`, and so on.
pub(crate) fn man_pages(directory: &Path) -> Result<ExitCode, StartRefused> {
    let failed = |cause| StartRefused::file("writing the manual pages to", directory, cause);
    fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(Arguments::command(), directory).map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}
