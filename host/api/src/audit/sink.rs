//! Where audit events go.

use std::io;

/// Where the audit trail is written, by one call after the other.
pub trait AuditSink: Send {
    /// Appends lines, each with its line break. When it returns, they are out of this process. With no lines, it sees
    /// whether there could be some.
    ///
    /// # Errors
    /// When not all of them could be written.
    fn append(&mut self, lines: &[u8]) -> Result<(), AppendFailed>;

    /// Opens anew what it writes to, which somebody has moved away. When that fails, it goes on with what it has.
    ///
    /// # Errors
    /// When it can't be opened.
    fn reopen(&mut self) -> io::Result<()>;

    /// Whether an append usually takes no longer than it takes to pass the lines to the system. Threads that serve requests
    /// may then call it, and otherwise a thread of the trail's own does.
    fn is_prompt(&self) -> bool;
}

/// Lines that could not be written, or not all of them.
#[derive(Debug, thiserror::Error)]
#[error("the audit trail could not be written")]
pub struct AppendFailed {
    /// How many bytes, from the first on, stand there as whole lines.
    pub bytes_written: usize,
    /// What went wrong.
    #[source]
    pub cause: io::Error,
}
