//! The parts common to both formats: the receiver of entries, errors, limits, and a reader that fails if an entry is too long.

use std::{
    cell::Cell,
    io::{self, BufRead, BufReader, Read},
    ops::ControlFlow,
    rc::Rc,
};

use crate::transfer::entry::{Entry, EntryError};

/// A receiver of entries. It can stop the reading.
pub(crate) type EntryReceiver<'a> = &'a mut dyn FnMut(Result<Entry, EntryError>) -> ControlFlow<()>;

/// The reason why a file can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("could not read the file: {0}")]
    Unreadable(#[from] io::Error),
    #[error("the file was modified during the import")]
    Changed,
    #[error("line {line}, column {column}: {reason}")]
    Malformed {
        line: usize,
        column: usize,
        /// The cause, without content of the file.
        reason: String,
    },
    #[error("the file is empty")]
    Empty,
    #[error("the file has no top-level list `credentials`")]
    NoCredentials,
    #[error("the file has more than one YAML document")]
    SeveralDocuments,
    #[error("an entry is longer than {} KiB, including aliases", ENTRY_BYTES_MAX / 1024)]
    EntryTooLong,
    #[error("the anchored nodes are larger than {} MiB", ANCHORS_BYTES_MAX / 1024 / 1024)]
    AnchorsTooLarge,
}

/// The number of bytes read since the last entry ended.
#[derive(Clone, Default)]
pub(super) struct Window {
    bytes: Rc<Cell<usize>>,
}

impl Window {
    /// Marks the start or the end of an entry.
    pub(super) fn reset(&self) {
        self.bytes.set(0);
    }

    /// Returns whether the current entry is too long.
    pub(super) fn is_exceeded(&self) -> bool {
        self.bytes.get() > ENTRY_BYTES_MAX
    }
}

/// A reader that fails if an entry is too long.
pub(super) struct Windowed<R> {
    reader: BufReader<R>,
    window: Window,
}

impl<R: Read> Windowed<R> {
    pub(super) fn new(input: R, window: Window) -> Self {
        Self {
            reader: BufReader::with_capacity(READ_BYTES, input),
            window,
        }
    }

    fn check(&self) -> io::Result<()> {
        if self.window.is_exceeded() {
            return Err(io::Error::other("an entry is too long"));
        }
        Ok(())
    }
}

impl<R: Read> BufRead for Windowed<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.check()?;
        self.reader.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.window.bytes.set(self.window.bytes.get() + amount);
        self.reader.consume(amount);
    }
}

impl<R: Read> Read for Windowed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        let amount = self.reader.read(buffer)?;
        self.window.bytes.set(self.window.bytes.get() + amount);
        Ok(amount)
    }
}

/// The largest entry, in the file and with all aliases expanded. It bounds the memory for reading.
pub(super) const ENTRY_BYTES_MAX: usize = 1024 * 1024;

/// The maximum total size of all anchored nodes in memory.
pub(super) const ANCHORS_BYTES_MAX: usize = 16 * 1024 * 1024;

const READ_BYTES: usize = 64 * 1024;
