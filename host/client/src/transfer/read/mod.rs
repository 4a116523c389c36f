//! Reads exports entry by entry, in memory that does not grow with the file.
//!
//! An import reads a file from its beginning once per pass; see [`super::order`]. Input that can't be read twice, such as a pipe, is
//! copied to memory or, if large, to an unnamed temporary file while the first pass reads it. So the copy ends where the input is
//! malformed.
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
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::Path,
    time::SystemTime,
};

use tempfile::SpooledTempFile;

use super::entry::Format;
pub(crate) use input::FileError;
use input::{ENTRY_BYTES_MAX, EntryReceiver};

/// A file that can be read repeatedly.
pub(crate) struct Source {
    content: Content,
    format: Format,
}

enum Content {
    File { file: File, state: FileState },
    Stream(Stream),
}

/// Input that can be read only once, with a copy of the part that was read.
struct Stream {
    /// The rest of the input; `None` after its end.
    rest: Option<Box<dyn Read + Send>>,
    copy: SpooledTempFile,
}

/// The length and the modification time of a file.
type FileState = (u64, Option<SystemTime>);

impl Source {
    /// Opens a file, or standard input for `-`.
    pub(crate) fn open(path: &Path, format: Option<Format>) -> Result<Self, FileError> {
        let mut content = if path == Path::new("-") {
            Content::Stream(Stream::new(io::stdin()))
        } else {
            let file = File::open(path)?;
            if file.metadata()?.is_file() {
                let state = state_of(&file)?;
                Content::File { file, state }
            } else {
                Content::Stream(Stream::new(file))
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
            Self::Stream(stream) => {
                stream.copy.rewind()?;
                Ok(Box::new(stream))
            }
        }
    }

    /// Detects the format: a file that starts with a brace is JSON. `None` if the file is empty. A file that starts with more
    /// whitespace than an entry may have counts as YAML.
    fn guess(&mut self) -> io::Result<Option<Format>> {
        let mut reader = BufReader::new(self.rewound()?).take(ENTRY_BYTES_MAX as u64);
        loop {
            let buffer = reader.fill_buf()?;
            let Some(&byte) = buffer.first() else {
                return Ok((reader.limit() == 0).then_some(Format::Yaml));
            };
            if !byte.is_ascii_whitespace() {
                let is_json = byte == b'{';
                return Ok(Some(if is_json { Format::Json } else { Format::Yaml }));
            }
            reader.consume(1);
        }
    }
}

impl Stream {
    fn new(input: impl Read + Send + 'static) -> Self {
        Self {
            rest: Some(Box::new(input)),
            copy: SpooledTempFile::new(MEMORY_BYTES_MAX),
        }
    }
}

impl Read for Stream {
    /// Reads the copy and then the rest of the input, which is added to the copy.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let copied = self.copy.read(buffer)?;
        let Some(rest) = self.rest.as_mut().filter(|_| copied == 0) else {
            return Ok(copied);
        };
        let amount = rest.read(buffer)?;
        if amount == 0 && !buffer.is_empty() {
            self.rest = None;
        }
        let bytes = buffer.get(..amount).unwrap_or_default();
        self.copy.write_all(bytes).map_err(|cause| {
            io::Error::other(format!("could not copy it to a temporary file: {cause}"))
        })?;
        Ok(amount)
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
