//! Posts to webhooks on behalf of interceptors, within limits.

use bytes::Bytes;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Most questions to webhooks at a time; further ones wait within their own time limit.
pub const MAX_ASKED: usize = 64;
/// Most notifications to webhooks at a time; further ones are dropped and counted.
pub const MAX_TOLD: usize = 256;

/// Why a webhook could not be asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WebhookError {
    /// It took too long.
    #[error("{0} did not answer in time")]
    Late(String),
    /// It could not be reached, or what it said could not be read.
    #[error("{0}")]
    Failed(String),
    /// This gateway was built without a way to post.
    #[error("webhooks are not available here")]
    None,
}

/// The status and the body that came back, or why none did.
pub type Posted = Pin<Box<dyn Future<Output = Result<(u16, Bytes), WebhookError>> + Send>>;

/// Posts JSON to an address.
pub trait Post: Send + Sync {
    /// Posts this body and reads a bounded answer.
    fn post(&self, url: &str, body: Bytes) -> Posted;
}

/// The webhooks of one gateway.
pub struct Webhooks {
    post: Option<Arc<dyn Post>>,
    asking: Semaphore,
    telling: Arc<Semaphore>,
    failed: Arc<AtomicU64>,
}

impl Webhooks {
    /// Webhooks that are posted this way.
    #[must_use]
    pub fn new(post: Option<Arc<dyn Post>>) -> Self {
        Self {
            post,
            asking: Semaphore::new(MAX_ASKED),
            telling: Arc::new(Semaphore::new(MAX_TOLD)),
            failed: Arc::default(),
        }
    }

    /// How many posts failed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    pub(crate) async fn ask(&self, url: &str, body: Bytes, within: Duration) -> Result<(u16, Bytes), WebhookError> {
        let asked = tokio::time::timeout(within, async {
            let _turn = self.asking.acquire().await;
            self.post.as_ref().ok_or(WebhookError::None)?.post(url, body).await
        });
        let answer = asked.await.unwrap_or_else(|_| Err(WebhookError::Late(url.to_owned())));
        if answer.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    /// Notifies a webhook without waiting. False if too many posts are under way.
    pub fn tell(&self, url: &str, body: Bytes, within: Duration) -> bool {
        let (Some(post), Ok(turn)) = (&self.post, Arc::clone(&self.telling).try_acquire_owned()) else { return false };
        let (posted, failed, url) = (post.post(url, body), Arc::clone(&self.failed), url.to_owned());
        tokio::spawn(async move {
            let _turn = turn;
            let told = tokio::time::timeout(within, posted).await;
            if let Err(error) = told.unwrap_or_else(|_| Err(WebhookError::Late(url))) {
                failed.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%error, "could not notify a webhook");
            }
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address that never answers.
    struct Silent;

    impl Post for Silent {
        fn post(&self, _: &str, _: Bytes) -> Posted {
            Box::pin(std::future::pending())
        }
    }

    /// An address that answers after a second.
    struct Slow;

    impl Post for Slow {
        fn post(&self, _: &str, body: Bytes) -> Posted {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok((200, body))
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_web_addresses_are_told_at_a_time() {
        let webhooks = Webhooks::new(Some(Arc::new(Silent)));
        let tell = || webhooks.tell("http://a", Bytes::new(), Duration::from_secs(5));
        assert!((0..MAX_TOLD).all(|_| tell()));
        assert!(!tell(), "one too many");
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert!(tell(), "the others are given up by then");
        assert_eq!(webhooks.failed(), MAX_TOLD as u64);
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_web_addresses_are_asked_at_a_time() {
        let webhooks = Arc::new(Webhooks::new(Some(Arc::new(Slow))));
        let ask = |within: u64| {
            let webhooks = Arc::clone(&webhooks);
            tokio::spawn(
                async move { webhooks.ask("http://a", Bytes::new(), Duration::from_millis(within)).await.is_ok() },
            )
        };
        let first: Vec<_> = (0..MAX_ASKED).map(|_| ask(5_000)).collect();
        tokio::task::yield_now().await;
        let (patient, impatient) = (ask(5_000), ask(1_500));
        for one in first {
            assert!(one.await.unwrap());
        }
        assert!(patient.await.unwrap(), "it waits for its turn");
        assert!(!impatient.await.unwrap(), "its turn does not leave it time enough");
    }
}
