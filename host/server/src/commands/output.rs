//! What commands write to standard output.

use std::io::{self, Write};

use crate::started::StartRefused;

/// Writes this. Whoever closed the other end has read enough, which is no failure.
///
/// # Errors
/// When it can't be written for another reason, for instance because a disk is full.
pub(super) fn print(text: &str) -> Result<(), StartRefused> {
    let mut output = io::stdout();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => Err(StartRefused::while_doing(
            "writing to standard output",
            cause,
        )),
        Ok(()) | Err(_) => Ok(()),
    }
}
