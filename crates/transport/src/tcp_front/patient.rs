//! A writer that gives up on a reader that takes nothing for too long.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::time::{Sleep, sleep};

/// The writer. There is a timer only while the reader takes nothing.
pub(super) struct Patient<W> {
    output: W,
    most: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<W> Patient<W> {
    /// Waits for the reader for this long at most.
    pub(super) fn new(output: W, most: Duration) -> Self {
        Self { output, most, waiting: None }
    }

    /// What became of an attempt; one that waits for too long fails.
    fn judge<T>(&mut self, cx: &mut Context<'_>, tried: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if tried.is_ready() {
            self.waiting = None;
            return tried;
        }
        let most = self.most;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(most)));
        ready!(waiting.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Patient<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.output).poll_write(cx, bytes);
        self.judge(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.output).poll_flush(cx);
        self.judge(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    #[tokio::test]
    async fn a_reader_that_takes_nothing_is_given_up_and_a_slow_one_is_not() {
        let (output, mut input) = duplex(4);
        let mut output = Patient::new(output, Duration::from_millis(50));
        let error = output.write_all(b"too much").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let reading = async {
            let mut rest = Vec::new();
            input.read_to_end(&mut rest).await.unwrap();
            rest
        };
        let writing = async {
            output.write_all(b"goes on").await.unwrap();
            drop(output);
        };
        let (rest, ()) = tokio::join!(reading, writing);
        assert_eq!(rest, b"too goes on");
    }
}
