//! The interface of sinks of audit events.

use std::io;

/// A sink to which the audit trail is written, one call at a time.
pub trait AuditSink: Send {
    /// Appends lines, each with its line break. On success, the lines have left this process. Without lines, checks whether
    /// the sink works.
    ///
    /// # Errors
    /// If not all lines could be written.
    fn append(&mut self, lines: &[u8]) -> Result<(), AppendFailed>;

    /// Reopens the file that the sink writes to, for example after it was moved. If that fails, the sink keeps the old file.
    ///
    /// # Errors
    /// If the file can't be opened.
    fn reopen(&mut self) -> io::Result<()>;

    /// Returns whether an append usually takes no longer than passing the lines to the operating system. If so, threads that
    /// serve requests may call it; otherwise, only the trail's own thread does.
    fn is_prompt(&self) -> bool;
}

/// Some or all of the lines could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the audit trail could not be written")]
pub struct AppendFailed {
    /// The number of bytes, from the start of the lines, that were written as complete lines.
    pub bytes_written: usize,
    /// The cause.
    #[source]
    pub cause: io::Error,
}
