//! Writing on a thread of its own: a pipe that nobody reads, or a disk that does not answer, holds up that one alone.

use std::{
    io::{self, Write},
    mem,
    sync::mpsc as std_mpsc,
    thread,
    time::Duration,
};

use tokio::sync::{mpsc, oneshot};
use zeroize::Zeroizing;

use super::GIVEN_UP;

/// What an export is written to. Dropped before it is finished, it ends so that no reader takes it for a whole one.
pub(crate) struct BackgroundWriter {
    gathered: Zeroizing<Vec<u8>>,
    /// None once all is written.
    chunks: Option<mpsc::Sender<Chunk>>,
    /// What became of the writing.
    written: oneshot::Receiver<io::Result<()>>,
    /// Is told, by being dropped, that the thread is at its end.
    ended: std_mpsc::Receiver<()>,
}

struct Chunk {
    bytes: Zeroizing<Vec<u8>>,
    is_last: bool,
}

impl BackgroundWriter {
    /// Writes to this from now on.
    ///
    /// # Errors
    /// When there can't be another thread.
    pub(crate) fn begin(output: impl Write + Send + 'static) -> io::Result<Self> {
        let (chunks, arriving) = mpsc::channel(CHUNKS_WAITING_MAX);
        let (told, written) = oneshot::channel();
        let (at_work, ended) = std_mpsc::channel();
        thread::Builder::new()
            .name("export".to_owned())
            .spawn(move || {
                let _ = told.send(write_all(output, arriving));
                drop(at_work);
            })?;
        Ok(Self {
            gathered: Zeroizing::default(),
            chunks: Some(chunks),
            written,
            ended,
        })
    }

    /// Hands on what was gathered, when it is enough, as soon as what was handed on before is being written.
    ///
    /// # Errors
    /// When something can't be written.
    pub(crate) async fn hand_on(&mut self) -> io::Result<()> {
        if self.gathered.len() < CHUNK_BYTES {
            return Ok(());
        }
        self.send(false).await
    }

    /// Waits until all is written.
    ///
    /// # Errors
    /// When something can't be written.
    pub(crate) async fn finish(mut self) -> io::Result<()> {
        self.send(true).await?;
        self.outcome().await?;
        self.chunks = None;
        Ok(())
    }

    async fn send(&mut self, is_last: bool) -> io::Result<()> {
        let bytes = mem::take(&mut self.gathered);
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
        written.unwrap_or_else(|_| Err(io::Error::other("the thread that writes has failed")))
    }
}

impl Write for BackgroundWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.gathered.extend_from_slice(bytes);
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
        let bytes = mem::take(&mut self.gathered);
        // Where there is no place for it, it is not needed: nobody is to make use of a part.
        let _ = chunks.try_send(Chunk {
            bytes,
            is_last: false,
        });
        drop(chunks);
        let _ = self.ended.recv_timeout(GIVING_UP_MAX);
    }
}

fn write_all(mut output: impl Write, mut chunks: mpsc::Receiver<Chunk>) -> io::Result<()> {
    while let Some(Chunk { bytes, is_last }) = chunks.blocking_recv() {
        output.write_all(&bytes)?;
        if is_last {
            return output.flush();
        }
    }
    output.write_all(GIVEN_UP.as_bytes())?;
    output.flush()
}

/// How much is gathered before it is written.
const CHUNK_BYTES: usize = 64 * 1024;

/// How many chunks may wait for being written.
const CHUNKS_WAITING_MAX: usize = 1;

/// How long whoever reads an export that is given up may take to have its end.
const GIVING_UP_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, Read, pipe};

    use super::*;

    fn read(mut reader: PipeReader) -> String {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    }

    #[tokio::test]
    async fn all_is_written_in_its_order_when_it_is_finished() {
        let (reader, writer) = pipe().unwrap();
        let mut output = BackgroundWriter::begin(writer).unwrap();
        let reading = thread::spawn(move || read(reader));
        let mut expected = String::new();
        for index in 0..50_000 {
            let line = format!("{index}\n");
            output.write_all(line.as_bytes()).unwrap();
            output.hand_on().await.unwrap();
            expected.push_str(&line);
        }
        output.finish().await.unwrap();
        assert_eq!(reading.join().unwrap(), expected);
    }

    #[test]
    fn what_is_dropped_has_the_end_that_nobody_takes_for_one() {
        let (reader, writer) = pipe().unwrap();
        let mut output = BackgroundWriter::begin(writer).unwrap();
        output.write_all(b"part").unwrap();
        drop(output);
        assert_eq!(read(reader), format!("part{GIVEN_UP}"));
    }

    #[tokio::test]
    async fn who_does_not_read_is_not_waited_for_when_it_is_dropped() {
        let (reader, writer) = pipe().unwrap();
        let mut output = BackgroundWriter::begin(writer).unwrap();
        // More than a pipe holds is being written, and as much waits.
        let text = "x".repeat(1024 * 1024);
        for _ in 0..2 {
            output.write_all(text.as_bytes()).unwrap();
            output.hand_on().await.unwrap();
        }
        drop(output);
        drop(reader);
    }

    #[tokio::test]
    async fn that_nobody_is_left_to_read_is_told() {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let mut output = BackgroundWriter::begin(writer).unwrap();
        output.write_all(b"all").unwrap();
        let refused = output.finish().await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::BrokenPipe);
    }
}
