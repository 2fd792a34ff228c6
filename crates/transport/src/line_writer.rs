//! Writes lines to a pipe. Small lines are gathered; a large one is written without a copy.

use bytes::{Buf as _, Bytes};
use std::io;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

/// Minimum size of a line that is not copied to be joined with others.
const LARGE: usize = 64 * 1024;
/// Maximum capacity that the buffer keeps after a flush.
const KEPT: usize = 256 * 1024;

/// Buffered writer of lines.
pub(crate) struct LineWriter<W> {
    pipe: W,
    gathered: Vec<u8>,
}

impl<W: AsyncWrite + Unpin> LineWriter<W> {
    pub(crate) fn new(pipe: W) -> Self {
        Self { pipe, gathered: Vec::new() }
    }

    /// Adds a line without its line break.
    pub(crate) async fn add(&mut self, line: Bytes) -> io::Result<()> {
        if line.len() < LARGE {
            self.gathered.extend_from_slice(&line);
            self.gathered.push(b'\n');
            return Ok(());
        }
        self.pipe.write_all(&self.gathered).await?;
        self.gathered.clear();
        self.pipe.write_all_buf(&mut line.chain(&b"\n"[..])).await
    }

    /// Writes the gathered lines.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        self.pipe.write_all(&self.gathered).await?;
        self.pipe.flush().await?;
        self.gathered.clear();
        self.gathered.shrink_to(KEPT);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_keep_their_order_whatever_their_size() {
        let lines = ["a".to_owned(), "b".repeat(LARGE), "c".to_owned(), "d".repeat(2 * LARGE)];
        let mut out = Vec::new();
        let mut writer = LineWriter::new(&mut out);
        for line in &lines {
            writer.add(Bytes::from(line.clone())).await.unwrap();
        }
        writer.flush().await.unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), lines.map(|line| line + "\n").concat());
    }
}
