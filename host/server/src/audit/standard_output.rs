//! The audit trail on standard output.

use std::{fs::File, io, os::fd::AsFd};

use keywright_api::audit::{AppendFailed, AuditSink};

use super::lines::LineWriter;

/// Standard output, without the buffer that the standard library puts before it.
pub(super) struct StandardOutputSink(LineWriter);

impl StandardOutputSink {
    /// Takes standard output.
    ///
    /// # Errors
    /// When it is closed.
    pub(super) fn open() -> io::Result<Self> {
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self(LineWriter::new(File::from(output), false)))
    }
}

impl AuditSink for StandardOutputSink {
    fn append(&mut self, lines: &[u8]) -> Result<(), AppendFailed> {
        self.0.append(lines)
    }

    /// There is nothing to open: whoever reads it decides where it goes.
    fn reopen(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The reader of a pipe may take its time.
    fn is_prompt(&self) -> bool {
        false
    }
}
