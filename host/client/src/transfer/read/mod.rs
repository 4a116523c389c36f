//! Reading exports entry by entry, in memory that does not grow with the file.
//!
//! A file is read from its beginning as often as an import needs it, see [`super::order`]. What can't be read twice, as a
//! pipe, is first kept: in memory, or in a temporary file without a name when there is much of it.
//!
//! Each reading begins and ends by looking whether the file's length and the time of its last write are those from when it was
//! opened. So a write to it is noticed that comes between two readings or during one, at the latest when the reading is at its
//! end; what was set by then stays set. Not noticed is what leaves both as they were: a write that keeps the length and comes
//! within the same tick of the file system's clock (some milliseconds) or is followed by one who puts the time back, and one
//! on a network's file system whose server has not told of it yet. That the name leads to another file meanwhile, as after an
//! editor has saved, changes nothing: what was opened is read to its end.

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
    entry::{Entry, EntryRefused},
    format::Format,
};

/// The longest an entry may be in the file, and with all its aliases put in. It bounds the memory that reading needs.
pub(crate) const ENTRY_BYTES_MAX: usize = 1024 * 1024;

/// The most memory that what aliases refer to may have in all.
pub(crate) const ANCHORS_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What is done with an entry that was read. To break off ends the reading.
pub(crate) type Take<'a> = &'a mut dyn FnMut(Result<Entry, EntryRefused>) -> ControlFlow<()>;

/// A file that can be read as often as is wanted.
pub(crate) struct Source {
    content: Content,
    format: Format,
}

enum Content {
    File { file: File, state: FileState },
    Kept(SpooledTempFile),
}

/// What tells whether a file was changed: its length, and when it was written to last.
type FileState = (u64, Option<SystemTime>);

/// Why a file can't be read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileRefused {
    /// It can't be read.
    #[error("it can't be read")]
    Unreadable(#[from] io::Error),
    /// It was changed between two readings or during one.
    #[error("it was changed while it was read")]
    Changed,
    /// It is not of its form.
    #[error("line {line}, column {column}: {what}")]
    Malformed {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong, without any of the content.
        what: String,
    },
    /// It has no list of credentials.
    #[error("it has no top-level list `credentials`")]
    NoCredentials,
    /// There is more than one document in it.
    #[error("it has more than one YAML document")]
    SeveralDocuments,
    /// One entry is too long.
    #[error("an entry is longer than {} KiB, aliases included", ENTRY_BYTES_MAX / 1024)]
    EntryTooLong,
    /// There is too much that has an anchor.
    #[error("what has anchors is larger than {} MiB", ANCHORS_BYTES_MAX / 1024 / 1024)]
    AnchorsTooLarge,
}

impl Source {
    /// Opens a file, `-` being standard input.
    ///
    /// # Errors
    /// When it can't be opened or kept.
    pub(crate) fn open(path: &Path, format: Option<Format>) -> Result<Self, FileRefused> {
        let mut content = if path == Path::new("-") {
            Content::keep(io::stdin().lock())?
        } else {
            let file = File::open(path)?;
            if file.metadata()?.is_file() {
                let state = state_of(&file)?;
                Content::File { file, state }
            } else {
                Content::keep(file)?
            }
        };
        let format = match format {
            Some(format) => format,
            None => content.guess()?,
        };
        Ok(Self { content, format })
    }

    /// Reads all entries in their order.
    ///
    /// # Errors
    /// Why it can't be read to its end; what was taken before that stays taken.
    pub(crate) fn read(&mut self, take: Take<'_>) -> Result<(), FileRefused> {
        self.content.check_unchanged()?;
        let read = read_entries(self.content.rewound()?, self.format, take);
        // What is half of one file and half of another is likely to be malformed, and that it was changed is why.
        self.content.check_unchanged()?;
        read
    }
}

impl Content {
    fn keep(mut input: impl Read) -> io::Result<Self> {
        let mut kept = SpooledTempFile::new(KEPT_BYTES_MAX);
        io::copy(&mut input, &mut kept)?;
        Ok(Self::Kept(kept))
    }

    fn check_unchanged(&self) -> Result<(), FileRefused> {
        match self {
            Self::File { file, state } if state_of(file)? != *state => Err(FileRefused::Changed),
            _ => Ok(()),
        }
    }

    fn rewound(&mut self) -> io::Result<Box<dyn Read + '_>> {
        match self {
            Self::File { file, .. } => {
                file.seek(SeekFrom::Start(0))?;
                Ok(Box::new(file))
            }
            Self::Kept(kept) => {
                kept.seek(SeekFrom::Start(0))?;
                Ok(Box::new(kept))
            }
        }
    }

    /// A file that begins with a brace is JSON.
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
///
/// # Errors
/// Why it can't be read to its end.
pub(crate) fn read_entries(
    input: impl Read,
    format: Format,
    take: Take<'_>,
) -> Result<(), FileRefused> {
    match format {
        Format::Json => json::read(input, take),
        Format::Yaml => yaml::read(input, take),
    }
}

fn state_of(file: &File) -> io::Result<FileState> {
    let metadata = file.metadata()?;
    Ok((metadata.len(), metadata.modified().ok()))
}

/// How much of what can't be read twice is kept in memory.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

#[cfg(test)]
mod tests;
