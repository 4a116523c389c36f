//! `keywright completions`.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::{cli::Arguments, started::StartRefused};

/// Prints a shell completion script.
pub(crate) fn completions(shell: Shell) -> Result<ExitCode, StartRefused> {
    let mut script = Vec::new();
    generate(shell, &mut Arguments::command(), "keywright", &mut script);
    match io::stdout().write_all(&script) {
        // The reader closed the pipe.
        Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(cause) => Err(StartRefused::while_doing(
            "printing the completion script",
            cause,
        )),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}
