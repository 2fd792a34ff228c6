//! Writes lines to a pipe: small ones are gathered, and a large one goes out as it is.

use bytes::{Buf as _, Bytes};
use std::io;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

/// A line of as many bytes is not copied to be joined with others.
const LARGE: usize = 64 * 1024;
/// A larger buffer is given back after use.
const KEPT: usize = 256 * 1024;

/// The writer.
pub(crate) struct LineWriter<W> {
    pipe: W,
    gathered: Vec<u8>,
}

impl<W: AsyncWrite + Unpin> LineWriter<W> {
    pub(crate) fn new(pipe: W) -> Self {
        Self { pipe, gathered: Vec::new() }
    }

    /// Adds a line, which has no line break in it.
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

    /// Writes what was gathered.
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
