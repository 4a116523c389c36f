//! Writes on a separate thread, so that a blocked pipe or disk blocks only that thread.

use std::{
    io::{self, Write},
    mem,
    sync::mpsc as std_mpsc,
    thread,
    time::Duration,
};

use tokio::sync::{mpsc, oneshot};
use zeroize::Zeroizing;

/// The output of an export. If dropped before [`BackgroundWriter::finish`], or after a failed write, it appends
/// [`INCOMPLETE_MARK`], so that no parser accepts the incomplete export.
pub(crate) struct BackgroundWriter {
    buffer: Zeroizing<Vec<u8>>,
    /// `None` once everything is written.
    chunks: Option<mpsc::Sender<Chunk>>,
    written: oneshot::Receiver<io::Result<()>>,
    /// Disconnects when the thread ends.
    ended: std_mpsc::Receiver<()>,
}

struct Chunk {
    bytes: Zeroizing<Vec<u8>>,
    is_last: bool,
}

impl BackgroundWriter {
    pub(crate) fn begin(output: impl Write + Send + 'static) -> io::Result<Self> {
        let (chunks, arriving) = mpsc::channel(CHUNKS_WAITING_MAX);
        let (result, written) = oneshot::channel();
        let (running, ended) = std_mpsc::channel();
        thread::Builder::new()
            .name("export".to_owned())
            .spawn(move || {
                let _ = result.send(write_all(output, arriving));
                drop(running);
            })?;
        Ok(Self {
            buffer: Zeroizing::default(),
            chunks: Some(chunks),
            written,
            ended,
        })
    }

    /// Passes a full buffer to the thread. Waits while the previous chunk is queued.
    pub(crate) async fn pass_on(&mut self) -> io::Result<()> {
        if self.buffer.len() < CHUNK_BYTES {
            return Ok(());
        }
        self.send(false).await
    }

    /// Waits until everything is written.
    pub(crate) async fn finish(mut self) -> io::Result<()> {
        self.send(true).await?;
        self.outcome().await?;
        self.chunks = None;
        Ok(())
    }

    async fn send(&mut self, is_last: bool) -> io::Result<()> {
        let bytes = mem::take(&mut self.buffer);
        let chunk = Chunk { bytes, is_last };
        if let Some(chunks) = &self.chunks
            && chunks.send(chunk).await.is_err()
        {
            return self.outcome().await;
        }
        Ok(())
    }

    async fn outcome(&mut self) -> io::Result<()> {
        let written = (&mut self.written).await;
        written.unwrap_or_else(|_| Err(io::Error::other("the writer thread failed")))
    }
}

impl Write for BackgroundWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for BackgroundWriter {
    fn drop(&mut self) {
        let Some(chunks) = self.chunks.take() else {
            return;
        };
        let bytes = mem::take(&mut self.buffer);
        // If the queue is full, the chunk can be lost: the export is incomplete anyway.
        let _ = chunks.try_send(Chunk {
            bytes,
            is_last: false,
        });
        drop(chunks);
        let _ = self.ended.recv_timeout(DRAIN_TIME_MAX);
    }
}

fn write_all(mut output: impl Write, mut chunks: mpsc::Receiver<Chunk>) -> io::Result<()> {
    while let Some(Chunk { bytes, is_last }) = chunks.blocking_recv() {
        if let Err(cause) = output.write_all(&bytes) {
            // Later writes may succeed, for example if the disk was full.
            let _ = output.write_all(INCOMPLETE_MARK.as_bytes());
            return Err(cause);
        }
        if is_last {
            return output.flush();
        }
    }
    output.write_all(INCOMPLETE_MARK.as_bytes())?;
    output.flush()
}

/// The buffer size from which a chunk is written.
const CHUNK_BYTES: usize = 64 * 1024;

/// The maximum number of queued chunks.
const CHUNKS_WAITING_MAX: usize = 1;

/// How long a dropped export waits for its reader to read the rest.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(2);

/// The end of an incomplete export, which makes it invalid.
///
/// A truncated YAML file can be valid, but no YAML or JSON parser accepts a value that starts with an at sign.
pub(super) const INCOMPLETE_MARK: &str = "\n@ incomplete export\n";

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, PipeWriter, Read, pipe};

    use super::*;

    fn read(mut reader: PipeReader) -> String {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    }

    #[tokio::test]
    async fn a_finished_output_has_all_bytes_in_order() {
        let (reader, writer) = pipe().unwrap();
        let mut output = BackgroundWriter::begin(writer).unwrap();
        let reading = thread::spawn(move || read(reader));
        let mut expected = String::new();
        for index in 0..50_000 {
            let line = format!("{index}\n");
            output.write_all(line.as_bytes()).unwrap();
            output.pass_on().await.unwrap();
            expected.push_str(&line);
        }
        output.finish().await.unwrap();
        assert_eq!(reading.join().unwrap(), expected);
    }

    #[tokio::test]
    async fn a_closed_pipe_is_an_error() {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let mut output = BackgroundWriter::begin(writer).unwrap();
        output.write_all(b"all").unwrap();
        let refused = output.finish().await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::BrokenPipe);
    }

    /// Fails at the first write.
    struct FailsOnce(PipeWriter, bool);

    impl Write for FailsOnce {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if mem::replace(&mut self.1, true) {
                self.0.write(bytes)
            } else {
                Err(io::ErrorKind::StorageFull.into())
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }

    #[tokio::test]
    async fn an_output_is_marked_as_incomplete_after_a_failed_write() {
        let (reader, writer) = pipe().unwrap();
        let mut output = BackgroundWriter::begin(FailsOnce(writer, false)).unwrap();
        output.write_all(b"all").unwrap();
        let failed = output.finish().await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::StorageFull);
        assert_eq!(read(reader), INCOMPLETE_MARK);
    }
}
