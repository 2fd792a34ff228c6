//! Connections beyond the limit: each hears why, and is closed so that the reason arrives.
//!
//! A socket that is closed while something unread lies in it is reset, and a reset overtakes what was written: a client that
//! had sent its request would see a broken connection instead of the answer. So what it sends is read and thrown away for a
//! moment. That costs a task and a descriptor, hence only so many are treated like that at a time; the rest is just closed.

use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Most clients that are told at a time why they are turned away.
pub const MAX_TOLD: usize = 256;
/// How long a client may take to hear why.
const LAST_WORD: Duration = Duration::from_secs(1);
/// Most bytes that are read of one that still talks.
const UNHEARD: usize = 256 * 1024;

/// The way out.
#[derive(Debug, Clone)]
pub struct Exit(Arc<Semaphore>);

impl Exit {
    /// Tells at most so many clients at a time, and no more than [`MAX_TOLD`].
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most.min(MAX_TOLD))))
    }

    /// What has to be run so that the client hears this; nothing where too many are being told already.
    pub fn tell(&self, mut socket: TcpStream, words: Vec<u8>) -> Option<impl Future<Output = ()> + Send + use<>> {
        let told = Arc::clone(&self.0).try_acquire_owned().ok()?;
        Some(async move {
            let _ = timeout(LAST_WORD, last_words(&mut socket, &words)).await;
            drop(told);
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
        let telling = Exit::new(1).tell(server, b"no room".to_vec()).unwrap();
        let hearing = async {
            let mut heard = Vec::new();
            client.read_to_end(&mut heard).await.unwrap();
            drop(client);
            heard
        };
        let ((), heard) = tokio::join!(telling, hearing);
        assert_eq!(heard, b"no room");
    }

    #[tokio::test]
    async fn only_so_many_are_told_at_a_time() {
        let exit = Exit::new(1);
        let (first, second) = (pair().await, pair().await);
        let telling = exit.tell(first.1, Vec::new()).unwrap();
        assert!(exit.tell(second.1, Vec::new()).is_none());
        drop(first.0);
        telling.await;
        assert!(exit.tell(pair().await.1, Vec::new()).is_some());
    }
}
