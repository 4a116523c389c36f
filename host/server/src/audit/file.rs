//! The audit trail in a file.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use keywright_api::audit::{AppendFailed, AuditSink};

use super::lines::LineWriter;

/// A file that lines are appended to. Other processes may also append to it, or move it and have it reopened.
pub(super) struct FileSink {
    path: PathBuf,
    /// Whether lines must be on the disk before an append returns.
    is_synced: bool,
    writer: LineWriter,
}

impl FileSink {
    /// Opens a file, or creates it if it does not exist.
    ///
    /// # Errors
    /// If it can't be opened for appending.
    pub(super) fn open(path: PathBuf, is_synced: bool) -> io::Result<Self> {
        let writer = open(&path)?;
        Ok(Self {
            path,
            is_synced,
            writer,
        })
    }

    /// Reopens the file if it was deleted: lines written to a deleted file are lost.
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
            // If this fails, the state of the disk is unknown. Writing lines twice is better than losing them.
            self.writer.file().sync_data().map_err(nothing_written)?;
        }
        Ok(())
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.writer = open(&self.path)?;
        Ok(())
    }

    /// A sync waits for the disk, and a write to a named pipe may wait for its reader.
    fn is_prompt(&self) -> bool {
        let metadata = self.writer.file().metadata();
        !self.is_synced && metadata.is_ok_and(|metadata| metadata.is_file())
    }
}

/// Opens a file for appending. If the file is created, only its owner has access.
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

/// Returns whether the last line of a file is incomplete, because a process was killed while writing it.
fn is_torn(file: &File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.read_exact_at(&mut last, metadata.len() - 1)?;
    Ok(last != *b"\n")
}
