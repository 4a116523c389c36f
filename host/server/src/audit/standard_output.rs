//! The audit trail on standard output.

use std::{fs::File, io, os::fd::AsFd};

use keywright_api::audit::{AppendFailed, AuditSink};

use super::lines::LineWriter;

/// Standard output, without the standard library's buffer.
pub(super) struct StandardOutputSink(LineWriter);

impl StandardOutputSink {
    /// Opens standard output.
    ///
    /// # Errors
    /// If it is closed.
    pub(super) fn open() -> io::Result<Self> {
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self(LineWriter::new(File::from(output), false)))
    }
}

impl AuditSink for StandardOutputSink {
    fn append(&mut self, lines: &[u8]) -> Result<(), AppendFailed> {
        self.0.append(lines)
    }

    /// Does nothing: standard output has no path to reopen.
    fn reopen(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns `false`, because the reader of a pipe may be slow.
    fn is_prompt(&self) -> bool {
        false
    }
}
