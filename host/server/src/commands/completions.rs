//! `keywright completions`.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::{cli::Arguments, started::StartRefused};

/// Prints what makes a shell complete the arguments of this program.
pub(crate) fn completions(shell: Shell) -> Result<ExitCode, StartRefused> {
    let mut script = Vec::new();
    generate(shell, &mut Arguments::command(), "keywright", &mut script);
    match io::stdout().write_all(&script) {
        // Whoever reads it has seen enough.
        Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(cause) => Err(StartRefused::while_doing("printing the completions", cause)),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}
