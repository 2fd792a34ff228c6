//! Posts to webhooks on behalf of interceptors, within limits.

use crate::caller_places::CallerPlaces;
use bytes::Bytes;
use signalbox_engine::Principal;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Maximum number of concurrent questions to webhooks, of which one caller has at most half. Further ones wait for a
/// turn for at most the timeout of the webhook, and are then refused.
pub const MAX_ASKED: usize = 128;
/// Maximum number of concurrent notifications to webhooks. Further ones are dropped and counted.
pub const MAX_TOLD: usize = 256;

/// Maximum number of attempts to notify a webhook of a held message.
pub const MAX_TRIES: u32 = 6;
/// Time limit for one attempt.
const TRY_TIME: Duration = Duration::from_secs(10);
/// Delay after the first failure. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Reason why a webhook gave no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WebhookError {
    /// The webhook did not answer in time.
    #[error("{0} did not answer in time")]
    Late(String),
    /// The webhook could not be reached, or its answer could not be read.
    #[error("{0}")]
    Failed(String),
    /// No turn came in time, which says nothing about the webhook.
    #[error("its turn did not come: webhooks are asked {MAX_ASKED} questions at a time, {} of one caller", MAX_ASKED / 2)]
    NoTurn,
    /// The gateway was built without an HTTP client for webhooks.
    #[error("webhooks are not available here")]
    None,
}

/// Webhook notification of a held call.
#[derive(Clone, Debug)]
pub struct HoldNotice {
    pub url: Arc<str>,
    /// Body of the request, in JSON.
    pub body: Bytes,
    /// Bearer token for the address, if it needs one.
    pub bearer: Option<Arc<str>>,
}

/// Future of a post: the status and body of the response, or the error.
pub type PostFuture = Pin<Box<dyn Future<Output = Result<(u16, Bytes), WebhookError>> + Send>>;

/// HTTP client that posts JSON.
pub trait WebhookTransport: Send + Sync {
    /// Posts `body` and reads a bounded response. Sends `bearer` as a bearer token, if given.
    fn post(&self, url: &str, body: Bytes, bearer: Option<&str>) -> PostFuture;
}

/// Webhook client of one gateway.
pub struct Webhooks {
    post: Option<Arc<dyn WebhookTransport>>,
    asking: Arc<CallerPlaces>,
    telling: Arc<Semaphore>,
    failed: Arc<AtomicU64>,
}

impl Webhooks {
    /// Creates a webhook client that posts with `post`.
    #[must_use]
    pub fn new(post: Option<Arc<dyn WebhookTransport>>) -> Self {
        Self {
            post,
            asking: CallerPlaces::new(MAX_ASKED),
            telling: Arc::new(Semaphore::new(MAX_TOLD)),
            failed: Arc::default(),
        }
    }

    /// Returns the number of failed posts.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Asks a webhook about a message of this caller. The time spent waiting for a turn does not count against the
    /// webhook.
    pub(crate) async fn ask(
        &self,
        caller: &Principal,
        url: &str,
        body: Bytes,
        within: Duration,
    ) -> Result<(u16, Bytes), WebhookError> {
        let _turn = self.asking.enter(caller, within).await.map_err(|_| WebhookError::NoTurn)?;
        let asked = tokio::time::timeout(within, async {
            self.post.as_ref().ok_or(WebhookError::None)?.post(url, body, None).await
        });
        let answer = asked.await.unwrap_or_else(|_| Err(WebhookError::Late(url.to_owned())));
        if answer.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    /// Notifies a webhook without waiting. Returns false if too many posts are in progress.
    pub fn tell(&self, url: &str, body: Bytes, within: Duration) -> bool {
        let (Some(post), Ok(turn)) = (&self.post, Arc::clone(&self.telling).try_acquire_owned()) else { return false };
        let (posted, failed, url) = (post.post(url, body, None), Arc::clone(&self.failed), url.to_owned());
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

    /// Notifies a webhook of a held message without waiting. Retries with growing delays until the webhook accepts it,
    /// the hold ends, or [`MAX_TRIES`] attempts have failed. Returns false if too many posts are in progress.
    pub fn notify(&self, notice: HoldNotice, until: Instant) -> bool {
        let (Some(post), Ok(turn)) = (&self.post, Arc::clone(&self.telling).try_acquire_owned()) else { return false };
        let (post, failed) = (Arc::clone(post), Arc::clone(&self.failed));
        tokio::spawn(async move {
            let _turn = turn;
            let mut pause = FIRST_PAUSE;
            for tries in 1..=MAX_TRIES {
                let posted = post.post(&notice.url, notice.body.clone(), notice.bearer.as_deref());
                let why = match tokio::time::timeout(TRY_TIME, posted).await {
                    Ok(Ok((200..=299, _))) => return,
                    Ok(Ok((status, _))) => format!("it answered with status {status}"),
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => format!("it did not answer within {} s", TRY_TIME.as_secs()),
                };
                if tries == MAX_TRIES || Instant::now() + pause >= until {
                    failed.fetch_add(1, Ordering::Relaxed);
                    tracing::error!(tries, why, "gave up telling a webhook of a held message");
                    return;
                }
                tracing::debug!(tries, why, "a webhook did not take the notice of a held message");
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// An address that never answers.
    struct Silent;

    impl WebhookTransport for Silent {
        fn post(&self, _: &str, _: Bytes, _: Option<&str>) -> PostFuture {
            Box::pin(std::future::pending())
        }
    }

    /// An address that answers after a second.
    struct Slow;

    impl WebhookTransport for Slow {
        fn post(&self, _: &str, body: Bytes, _: Option<&str>) -> PostFuture {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok((200, body))
            })
        }
    }

    /// An address that answers with these statuses, one after the other, and keeps the tokens that it is shown.
    #[derive(Default)]
    struct Moody {
        statuses: Mutex<Vec<u16>>,
        tokens: Mutex<Vec<Option<String>>>,
    }

    impl WebhookTransport for Moody {
        fn post(&self, _: &str, _: Bytes, bearer: Option<&str>) -> PostFuture {
            self.tokens.lock().unwrap().push(bearer.map(str::to_owned));
            let status = self.statuses.lock().unwrap().pop().unwrap_or(503);
            Box::pin(async move { Ok((status, Bytes::new())) })
        }
    }

    /// A webhook that is told of a held message is tried again, with its token; what it never takes is counted, and no
    /// longer tried once the message waits no more.
    #[tokio::test(start_paused = true)]
    async fn a_notice_of_a_held_message_is_tried_again_within_bounds() {
        for (statuses, within, tries, failed) in
            [(vec![200, 500, 429], 600, 3, 0), (vec![], 600, MAX_TRIES as usize, 1), (vec![], 5, 3, 1)]
        {
            let post = Arc::new(Moody { statuses: Mutex::new(statuses), ..Moody::default() });
            let webhooks = Webhooks::new(Some(Arc::clone(&post) as Arc<dyn WebhookTransport>));
            let notice = HoldNotice { url: "http://a".into(), body: Bytes::new(), bearer: Some("t0ken".into()) };
            assert!(webhooks.notify(notice, Instant::now() + Duration::from_secs(within)));
            tokio::time::sleep(Duration::from_secs(300)).await;
            assert_eq!(*post.tokens.lock().unwrap(), vec![Some("t0ken".to_owned()); tries], "within {within} s");
            assert_eq!(webhooks.failed(), failed, "within {within} s");
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

    /// Asks about a message of this caller, in a task of its own.
    fn ask(
        webhooks: &Arc<Webhooks>,
        caller: &'static str,
        within: u64,
    ) -> tokio::task::JoinHandle<Result<(u16, Bytes), WebhookError>> {
        let webhooks = Arc::clone(webhooks);
        tokio::spawn(async move {
            let within = Duration::from_millis(within);
            webhooks.ask(&Principal::named(caller), "http://a", Bytes::new(), within).await
        })
    }

    /// A question that waited too long for its turn is no failure of the webhook.
    #[tokio::test(start_paused = true)]
    async fn a_caller_asks_half_of_the_questions_and_waits_for_more() {
        let webhooks = Arc::new(Webhooks::new(Some(Arc::new(Slow))));
        let first: Vec<_> = (0..MAX_ASKED / 2).map(|_| ask(&webhooks, "ada", 5_000)).collect();
        tokio::task::yield_now().await;
        let (patient, impatient) = (ask(&webhooks, "ada", 1_500), ask(&webhooks, "ada", 900));
        for one in first {
            assert!(one.await.unwrap().is_ok());
        }
        assert!(patient.await.unwrap().is_ok(), "the wait for its turn does not count for the webhook");
        assert_eq!(impatient.await.unwrap(), Err(WebhookError::NoTurn));
        assert_eq!(webhooks.failed(), 0);
    }

    /// The questions of one caller leave places to others.
    #[tokio::test(start_paused = true)]
    async fn the_questions_of_one_caller_do_not_hold_up_those_of_others() {
        let webhooks = Arc::new(Webhooks::new(Some(Arc::new(Slow))));
        let many: Vec<_> = (0..10 * MAX_ASKED).map(|_| ask(&webhooks, "ada", 5_000)).collect();
        tokio::task::yield_now().await;
        let began = tokio::time::Instant::now();
        assert!(ask(&webhooks, "vic", 2_000).await.unwrap().is_ok());
        assert_eq!(began.elapsed(), Duration::from_secs(1), "no longer than the webhook takes");
        many.iter().for_each(tokio::task::JoinHandle::abort);
    }
}
