//! The audit trail in a file.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use keywright_api::audit::{AppendFailed, AuditSink};

use super::lines::LineWriter;

/// A file that lines are appended to. Others may append to it too, move it away, and have it opened anew.
pub(super) struct FileSink {
    path: PathBuf,
    /// Whether lines must be on the disk when they are said to be written.
    is_synced: bool,
    writer: LineWriter,
}

impl FileSink {
    /// Opens a file, and makes it when it is absent.
    ///
    /// # Errors
    /// When it can't be opened for appending.
    pub(super) fn open(path: PathBuf, is_synced: bool) -> io::Result<Self> {
        let writer = open(&path)?;
        Ok(Self {
            path,
            is_synced,
            writer,
        })
    }

    /// Opens the file anew when somebody has deleted it: what is written to a file without a name is lost.
    fn reopen_if_deleted(&mut self) -> io::Result<()> {
        if self.writer.file().metadata()?.nlink() == 0 {
            self.reopen()?;
        }
        Ok(())
    }
}

impl AuditSink for FileSink {
    fn append(&mut self, lines: &[u8]) -> Result<(), AppendFailed> {
        let nothing_written = |cause| AppendFailed {
            bytes_written: 0,
            cause,
        };
        self.reopen_if_deleted().map_err(nothing_written)?;
        self.writer.append(lines)?;
        if self.is_synced {
            // Where this fails, nobody knows what is on the disk: rather twice there than not at all.
            self.writer.file().sync_data().map_err(nothing_written)?;
        }
        Ok(())
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.writer = open(&self.path)?;
        Ok(())
    }

    /// A disk is waited for, and so may be the reader of a named pipe.
    fn is_prompt(&self) -> bool {
        let metadata = self.writer.file().metadata();
        !self.is_synced && metadata.is_ok_and(|metadata| metadata.is_file())
    }
}

/// Opens a file for appending; one that is made can be read by its owner alone.
fn open(path: &Path) -> io::Result<LineWriter> {
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    let is_torn = is_torn(&file)?;
    Ok(LineWriter::new(file, is_torn))
}

/// Whether the last line of a file has no end: a process was killed while it wrote it.
fn is_torn(file: &File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.read_exact_at(&mut last, metadata.len() - 1)?;
    Ok(last != *b"\n")
}
