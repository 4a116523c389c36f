//! Starts the audit trail, with a file or standard output as its sink.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write},
    os::{
        fd::AsFd,
        unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use keywright_api::audit::{AppendError, AuditSettings, AuditSink, AuditTrail};
use keywright_core::ports::Clock;
use keywright_storage::sync_folder_of;
use rustix::{
    fs::{OFlags, fcntl_setfl},
    io::Errno,
};

use crate::{
    config::{AuditConfig, AuditSinkKind},
    process::hangup_signal,
    started::{StartupContext, StartupError},
};

pub(crate) fn start(
    config: &AuditConfig,
    clock: Arc<dyn Clock>,
) -> Result<Option<Arc<AuditTrail>>, StartupError> {
    let Some(sink) = sink(config)? else {
        tracing::warn!("the audit trail is off: reads and changes are not recorded");
        return Ok(None);
    };
    let settings = AuditSettings {
        format: config.format,
        on_failure: config.on_failure,
        host: config.host.clone().unwrap_or_else(own_host_name),
        write_time_max: AuditSettings::WRITE_TIME_MAX,
        unwritten_bytes_max: AuditSettings::UNWRITTEN_BYTES_MAX,
    };
    let trail = AuditTrail::start(settings, sink, clock)
        .while_doing("starting the audit trail's thread")?;
    let trail = Arc::new(trail);
    reopen_on_hangup(&trail)?;
    Ok(Some(trail))
}

/// Reopens the trail on SIGHUP, for log rotation.
fn reopen_on_hangup(trail: &Arc<AuditTrail>) -> Result<(), StartupError> {
    let mut hangup = hangup_signal()?;
    let trail = Arc::clone(trail);
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            trail.reopen();
        }
    });
    Ok(())
}

fn sink(config: &AuditConfig) -> Result<Option<Box<dyn AuditSink>>, StartupError> {
    config.check_file()?;
    match (config.sink, &config.file) {
        (AuditSinkKind::File, Some(path)) => {
            let sink = LineSink::open_file(path.clone(), config.sync)
                .on_file("opening the audit trail", path)?;
            Ok(Some(Box::new(sink)))
        }
        (AuditSinkKind::Stdout, _) => {
            let sink = LineSink::open_standard_output().while_doing("opening standard output")?;
            Ok(Some(Box::new(sink)))
        }
        (AuditSinkKind::File | AuditSinkKind::Off, _) => Ok(None),
    }
}

fn own_host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// Appends whole lines to a file or to standard output, even if a write fails in the middle. Other processes may also append to the
/// file, or move it and request that it is reopened.
#[expect(
    clippy::struct_excessive_bools,
    reason = "two properties and two states are independent"
)]
struct LineSink {
    /// The path of the file; `None` for standard output.
    path: Option<PathBuf>,
    /// Whether lines must be on the disk before an append returns.
    is_synced: bool,
    /// Whether an append can't block: a sync waits for the disk, and a pipe may wait for its reader.
    is_prompt: bool,
    output: File,
    /// Whether the last write ended within a line.
    is_torn: bool,
    /// Whether the last attempt to reopen the file failed.
    must_reopen: bool,
}

impl LineSink {
    /// Opens a file, or creates it if it does not exist.
    fn open_file(path: PathBuf, is_synced: bool) -> io::Result<Self> {
        let output = open(&path)?;
        let is_file = output.metadata()?.is_file();
        if is_synced && !is_file {
            let what = "audit.sync requires that it is a regular file";
            return Err(io::Error::other(what));
        }
        if is_synced {
            sync_folder_of(&path)?;
        }
        Ok(Self {
            is_torn: is_torn(&output)?,
            is_prompt: !is_synced && is_file,
            path: Some(path),
            is_synced,
            output,
            must_reopen: false,
        })
    }

    /// Opens standard output, without the standard library's buffer, unless it is closed.
    fn open_standard_output() -> io::Result<Self> {
        Ok(Self {
            path: None,
            is_synced: false,
            is_prompt: false,
            output: File::from(io::stdout().as_fd().try_clone_to_owned()?),
            is_torn: false,
            must_reopen: false,
        })
    }

    /// Reopens the file if it was deleted: lines written to a deleted file are lost. Retries a failed reopening.
    fn reopen_if_needed(&mut self) -> io::Result<()> {
        if self.path.is_some() && self.output.metadata()?.nlink() == 0 {
            self.reopen()?;
        } else if self.must_reopen && self.reopen().is_ok() {
            // Until then, lines were written to the old file.
            tracing::info!("reopened the audit trail");
        }
        Ok(())
    }

    /// Writes lines. An incomplete line is ended first, so that lines are never joined.
    fn write_lines(&mut self, lines: &[u8]) -> Result<(), AppendError> {
        if lines.is_empty() {
            return Ok(());
        }
        if self.is_torn {
            write_all(&mut self.output, b"\n").map_err(|(_, cause)| nothing_written(cause))?;
            self.is_torn = false;
        }
        write_all(&mut self.output, lines).map_err(|(bytes, cause)| {
            let bytes_written = whole_lines(lines.get(..bytes).unwrap_or_default());
            self.is_torn = bytes_written < bytes;
            AppendError {
                bytes_written,
                cause,
            }
        })
    }
}

impl AuditSink for LineSink {
    fn append(&mut self, lines: &[u8]) -> Result<(), AppendError> {
        self.reopen_if_needed().map_err(nothing_written)?;
        self.write_lines(lines)?;
        if self.is_synced {
            // If this fails, the state of the disk is unknown. Writing lines twice is better than losing them.
            self.output.sync_data().map_err(nothing_written)?;
        }
        Ok(())
    }

    /// Does nothing for standard output, which has no path.
    fn reopen(&mut self) -> io::Result<()> {
        if let Some(path) = &self.path {
            self.must_reopen = true;
            self.is_prompt = false;
            *self = Self::open_file(path.clone(), self.is_synced)?;
        }
        Ok(())
    }

    fn is_prompt(&self) -> bool {
        self.is_prompt
    }
}

fn nothing_written(cause: io::Error) -> AppendError {
    AppendError {
        bytes_written: 0,
        cause,
    }
}

/// Opens a file for appending. If the file is created, only its owner has access.
///
/// A named pipe must have a reader: if this process opened it for reading, too, events would be lost in its buffer.
fn open(path: &Path) -> io::Result<File> {
    if fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo()) {
        let file = OpenOptions::new()
            .write(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(path)
            .map_err(|cause| match Errno::from_io_error(&cause) {
                Some(Errno::NXIO) => io::Error::other("no process reads the named pipe"),
                _ => cause,
            })?;
        fcntl_setfl(&file, OFlags::empty())?;
        return Ok(file);
    }
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
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

/// Writes all bytes. An error contains the number of bytes written.
fn write_all(file: &mut impl Write, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match file.write(rest) {
            Ok(0) => return Err((written, ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => return Err((written, cause)),
        }
    }
    Ok(())
}

/// Returns the length of the complete lines.
fn whole_lines(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts this many bytes, three at a time, and then fails.
    struct Small(Vec<u8>, usize);

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(3).min(self.1 - self.0.len());
            if count == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.0.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn sync_requires_a_folder_that_can_be_flushed() {
        // The folders of this file system can't be flushed.
        let open = |is_synced| LineSink::open_file("/proc/self/comm".into(), is_synced);
        assert!(open(false).is_ok());
        assert!(open(true).is_err());
    }

    #[test]
    fn only_complete_lines_count_as_written() {
        for (room, bytes, lines) in [(0, 0, 0), (4, 4, 0), (5, 5, 5), (7, 7, 5), (9, 9, 5)] {
            let mut small = Small(Vec::new(), room);
            let (written, _) = write_all(&mut small, b"1234\n6789\n").unwrap_err();
            assert_eq!((written, whole_lines(&small.0)), (bytes, lines), "{room}");
        }
        let mut large = Small(Vec::new(), 10);
        assert!(write_all(&mut large, b"1234\n6789\n").is_ok());
    }
}
