//! Reads exports entry by entry, in memory that does not grow with the file.
//!
//! An import reads a file from its beginning once per pass; see [`super::order`]. Input that can't be read twice, such as a pipe, is
//! first copied to memory or, if large, to an unnamed temporary file.
//!
//! At its start and after its last entry, each pass checks that the file's length and modification time have not changed since
//! it was opened. This detects writes between and during passes; credentials set by then stay set. It does not detect:
//!
//! - a write that keeps the length and happens within one tick of the file system's clock (some milliseconds);
//! - a write that keeps the length and restores the modification time;
//! - a write on a network file system that its server has not reported yet.
//!
//! Replacing the file, as editors do, has no effect: the opened file is read to its end.

mod input;
mod json;
mod yaml;

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::Path,
    time::SystemTime,
};

use tempfile::SpooledTempFile;

use super::entry::Format;
use input::EntryReceiver;
pub(crate) use input::FileError;

/// A file that can be read repeatedly.
pub(crate) struct Source {
    content: Content,
    format: Format,
}

enum Content {
    File { file: File, state: FileState },
    Copied(SpooledTempFile),
}

/// The length and the modification time of a file.
type FileState = (u64, Option<SystemTime>);

impl Source {
    /// Opens a file, or standard input for `-`.
    pub(crate) fn open(path: &Path, format: Option<Format>) -> Result<Self, FileError> {
        let mut content = if path == Path::new("-") {
            Content::copy(io::stdin().lock())?
        } else {
            let file = File::open(path)?;
            if file.metadata()?.is_file() {
                let state = state_of(&file)?;
                Content::File { file, state }
            } else {
                Content::copy(file)?
            }
        };
        let format = match format {
            Some(format) => format,
            None => content.guess()?.ok_or(FileError::Empty)?,
        };
        Ok(Self { content, format })
    }

    /// Passes all entries to `receive`, in order.
    ///
    /// # Errors
    /// When the file can't be read completely. Entries before the error were passed.
    pub(crate) fn read(&mut self, receive: EntryReceiver<'_>) -> Result<(), FileError> {
        self.content.check_unchanged()?;
        let read = read_entries(self.content.rewound()?, self.format, receive);
        // A modification explains a syntax error, so it takes precedence.
        self.content.check_unchanged()?;
        read
    }
}

impl Content {
    fn copy(mut input: impl Read) -> io::Result<Self> {
        let mut copied = SpooledTempFile::new(MEMORY_BYTES_MAX);
        io::copy(&mut input, &mut copied)?;
        Ok(Self::Copied(copied))
    }

    fn check_unchanged(&self) -> Result<(), FileError> {
        match self {
            Self::File { file, state } if state_of(file)? != *state => Err(FileError::Changed),
            _ => Ok(()),
        }
    }

    fn rewound(&mut self) -> io::Result<Box<dyn Read + '_>> {
        match self {
            Self::File { file, .. } => {
                file.seek(SeekFrom::Start(0))?;
                Ok(Box::new(file))
            }
            Self::Copied(copied) => {
                copied.seek(SeekFrom::Start(0))?;
                Ok(Box::new(copied))
            }
        }
    }

    /// Detects the format: a file that starts with a brace is JSON. `None` if the file is empty.
    fn guess(&mut self) -> io::Result<Option<Format>> {
        let mut reader = BufReader::new(self.rewound()?);
        loop {
            let buffer = reader.fill_buf()?;
            let Some(&byte) = buffer.first() else {
                return Ok(None);
            };
            if !byte.is_ascii_whitespace() {
                let is_json = byte == b'{';
                return Ok(Some(if is_json { Format::Json } else { Format::Yaml }));
            }
            reader.consume(1);
        }
    }
}

pub(crate) fn read_entries(
    input: impl Read,
    format: Format,
    receive: EntryReceiver<'_>,
) -> Result<(), FileError> {
    match format {
        Format::Json => json::read(input, receive),
        Format::Yaml => yaml::read(input, receive),
    }
}

fn state_of(file: &File) -> io::Result<FileState> {
    let metadata = file.metadata()?;
    Ok((metadata.len(), metadata.modified().ok()))
}

/// The largest copy of an input in memory; larger copies go to a temporary file.
const MEMORY_BYTES_MAX: usize = 16 * 1024 * 1024;

#[cfg(test)]
mod tests;
