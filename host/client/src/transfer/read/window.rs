//! A reader that fails if an entry is too long.

use std::{
    cell::Cell,
    io::{self, BufRead, BufReader, Read},
    rc::Rc,
};

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

    /// Whether the current entry is too long.
    pub(super) fn is_exceeded(&self) -> bool {
        self.bytes.get() > super::ENTRY_BYTES_MAX
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

const READ_BYTES: usize = 64 * 1024;
