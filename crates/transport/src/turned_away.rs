//! Refuses connections beyond the limit with a reason, and closes them so that the reason arrives.
//!
//! A socket that is closed with unread bytes is reset, and the reset overtakes what was written: a client that has sent
//! its request would see a broken connection instead of the answer. So its bytes are read and discarded for a moment.
//! That costs a task and a descriptor; therefore only a limited number of clients get a reason at a time, and the
//! others are just closed.

use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Maximum number of clients that are being told the reason at a time.
pub const MAX_TOLD: usize = 256;
/// Maximum time for a client to read the reason.
const LAST_WORD: Duration = Duration::from_secs(1);
/// Maximum number of bytes read from a client that still sends.
const UNHEARD: usize = 256 * 1024;

/// Limits how many refused clients are told the reason at a time.
#[derive(Debug, Clone)]
pub struct RefusalSender(Arc<Semaphore>);

impl RefusalSender {
    /// Creates a limit of `most` clients, and at most [`MAX_TOLD`].
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most.min(MAX_TOLD))))
    }

    /// Returns the future that sends this response and closes the socket, or `None` if the limit is reached.
    pub fn send(&self, mut socket: TcpStream, words: Vec<u8>) -> Option<impl Future<Output = ()> + Send + use<>> {
        let permit = Arc::clone(&self.0).try_acquire_owned().ok()?;
        Some(async move {
            let _ = timeout(LAST_WORD, last_words(&mut socket, &words)).await;
            drop(permit);
        })
    }
}

async fn last_words(socket: &mut TcpStream, words: &[u8]) -> std::io::Result<()> {
    socket.write_all(words).await?;
    socket.shutdown().await?;
    let (mut chunk, mut unheard) = ([0; 4096], 0);
    while unheard < UNHEARD {
        match socket.read(&mut chunk).await? {
            0 => break,
            read => unheard += read,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn a_client_that_has_sent_its_request_hears_why_it_is_turned_away() {
        let (mut client, server) = pair().await;
        client.write_all(&[b'x'; 100_000]).await.unwrap();
        let sending = RefusalSender::new(1).send(server, b"no room".to_vec()).unwrap();
        let hearing = async {
            let mut heard = Vec::new();
            client.read_to_end(&mut heard).await.unwrap();
            drop(client);
            heard
        };
        let ((), heard) = tokio::join!(sending, hearing);
        assert_eq!(heard, b"no room");
    }

    #[tokio::test]
    async fn only_so_many_are_told_at_a_time() {
        let refusals = RefusalSender::new(1);
        let (first, second) = (pair().await, pair().await);
        let sending = refusals.send(first.1, Vec::new()).unwrap();
        assert!(refusals.send(second.1, Vec::new()).is_none());
        drop(first.0);
        sending.await;
        assert!(refusals.send(pair().await.1, Vec::new()).is_some());
    }
}
