//! Reads exports entry by entry, in memory that does not grow with the file.
//!
//! An import reads a file from its beginning once per pass; see [`super::order`]. Input that can't be read twice, such as a pipe, is
//! first copied to memory or, if large, to an unnamed temporary file.
//!
//! At its start and when it completes, each pass checks that the file's length and modification time have not changed since it was opened.
//! This detects writes between and during passes, at the latest at the end of a pass; credentials set by then stay set. It does not
//! detect a write that keeps the length and either happens within one tick of the file system's clock (some milliseconds) or restores
//! the modification time, nor a write on a network file system before its server reports it. Replacing the file, as editors do, has no
//! effect: the opened file is read to its end.

mod json;
mod window;
mod yaml;
mod yaml_node;

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    ops::ControlFlow,
    path::Path,
    time::SystemTime,
};

use tempfile::SpooledTempFile;

use super::{
    entry::{Entry, EntryError},
    format::Format,
};

/// The largest entry, in the file and with all aliases expanded. It bounds the memory for reading.
pub(crate) const ENTRY_BYTES_MAX: usize = 1024 * 1024;

/// The maximum total size of all anchored nodes in memory.
pub(crate) const ANCHORS_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A receiver of entries. It can stop the reading.
pub(crate) type Take<'a> = &'a mut dyn FnMut(Result<Entry, EntryError>) -> ControlFlow<()>;

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

/// Why a file can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// An I/O error occurred.
    #[error("can't be read")]
    Unreadable(#[from] io::Error),
    /// The file was modified between or during passes.
    #[error("the file was modified during the import")]
    Changed,
    /// The syntax is invalid.
    #[error("line {line}, column {column}: {what}")]
    Malformed {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The cause, without content of the file.
        what: String,
    },
    /// The file has no list of credentials.
    #[error("no top-level list `credentials`")]
    NoCredentials,
    /// The file has several YAML documents.
    #[error("more than one YAML document")]
    SeveralDocuments,
    /// An entry is too long.
    #[error("an entry is longer than {} KiB, including aliases", ENTRY_BYTES_MAX / 1024)]
    EntryTooLong,
    /// The anchored nodes are too large.
    #[error("the anchored nodes are larger than {} MiB", ANCHORS_BYTES_MAX / 1024 / 1024)]
    AnchorsTooLarge,
}

impl Source {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    /// When the file can't be opened or copied.
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
            None => content.guess()?,
        };
        Ok(Self { content, format })
    }

    /// Passes all entries to `take`, in order.
    ///
    /// # Errors
    /// When the file can't be read completely. Entries before the error were passed.
    pub(crate) fn read(&mut self, take: Take<'_>) -> Result<(), FileError> {
        self.content.check_unchanged()?;
        let read = read_entries(self.content.rewound()?, self.format, take);
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

    /// Detects the format: a file that starts with a brace is JSON.
    fn guess(&mut self) -> io::Result<Format> {
        let mut reader = BufReader::new(self.rewound()?);
        loop {
            let buffer = reader.fill_buf()?;
            let Some(&byte) = buffer.first() else {
                return Ok(Format::Yaml);
            };
            if !byte.is_ascii_whitespace() {
                let is_json = byte == b'{';
                return Ok(if is_json { Format::Json } else { Format::Yaml });
            }
            reader.consume(1);
        }
    }
}

/// Reads all entries of a stream.
pub(crate) fn read_entries(
    input: impl Read,
    format: Format,
    take: Take<'_>,
) -> Result<(), FileError> {
    match format {
        Format::Json => json::read(input, take),
        Format::Yaml => yaml::read(input, take),
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
