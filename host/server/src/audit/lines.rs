//! Writes whole lines to a file, even if a write fails in the middle.

use std::{
    fs::File,
    io::{ErrorKind, Write},
};

use keywright_api::audit::AppendFailed;

/// Writes lines to an open file or pipe.
pub(super) struct LineWriter {
    file: File,
    /// Whether the last write ended within a line.
    is_torn: bool,
}

impl LineWriter {
    /// Creates a writer; `is_torn` is whether the file's last line is incomplete.
    pub(super) fn new(file: File, is_torn: bool) -> Self {
        Self { file, is_torn }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Writes lines. An incomplete line is ended first, so that lines are never joined.
    pub(super) fn append(&mut self, lines: &[u8]) -> Result<(), AppendFailed> {
        if lines.is_empty() {
            return Ok(());
        }
        if self.is_torn {
            write_all(&mut self.file, b"\n").map_err(|(_, cause)| AppendFailed {
                bytes_written: 0,
                cause,
            })?;
            self.is_torn = false;
        }
        write_all(&mut self.file, lines).map_err(|(bytes, cause)| {
            let bytes_written = whole_lines(lines.get(..bytes).unwrap_or_default());
            self.is_torn = bytes_written < bytes;
            AppendFailed {
                bytes_written,
                cause,
            }
        })
    }
}

/// Writes all bytes. An error contains the number of bytes written.
fn write_all(file: &mut impl Write, bytes: &[u8]) -> Result<(), (usize, std::io::Error)> {
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
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let count = bytes.len().min(3).min(self.1 - self.0.len());
            if count == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.0.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
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
