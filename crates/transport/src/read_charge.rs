//! The charge for what is being read: it grows with the bytes that have come, and goes with each message that is whole.

use bytes::Bytes;
use signalbox_engine::budget::{Charge, OverBudget, Share, WEIGHED};
use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// How long a reader waits for room before what it reads is refused.
pub const WAIT: Duration = Duration::from_secs(5);
/// How often it asks meanwhile.
const AGAIN: Duration = Duration::from_millis(20);

/// What one reader holds.
#[derive(Debug)]
pub(crate) struct ReadCharge {
    share: Option<Arc<Share>>,
    charge: Option<Charge>,
    /// Until when it waits for room, and when it asks next.
    waits: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl ReadCharge {
    /// Nothing is held yet. Without a share nothing is ever charged.
    pub(crate) fn new(share: Option<Arc<Share>>) -> Self {
        Self { share, charge: None, waits: None }
    }

    /// From now on this share is charged.
    pub(crate) fn charge_to(&mut self, share: Arc<Share>) {
        self.share = Some(share);
    }

    /// Charges so many bytes in all, and waits for room where there is none. Few bytes are free.
    pub(crate) async fn cover(&mut self, bytes: usize) -> Result<(), OverBudget> {
        poll_fn(|cx| self.poll_cover(cx, bytes)).await
    }

    fn try_cover(&mut self, bytes: usize) -> Result<(), OverBudget> {
        if bytes < WEIGHED {
            self.charge = None;
            return Ok(());
        }
        match (&mut self.charge, &self.share) {
            (Some(charge), _) => {
                charge.shrink(bytes);
                charge.grow(bytes, bytes)?;
            }
            (None, Some(share)) => self.charge = Some(share.take(bytes, bytes)?),
            (None, None) => {}
        }
        Ok(())
    }

    /// As [`cover`](Self::cover), as a poll.
    pub(crate) fn poll_cover(&mut self, cx: &mut Context<'_>, bytes: usize) -> Poll<Result<(), OverBudget>> {
        loop {
            let Err(error) = self.try_cover(bytes) else {
                self.waits = None;
                return Poll::Ready(Ok(()));
            };
            let now = Instant::now();
            let (deadline, again) = self.waits.get_or_insert_with(|| (now + WAIT, Box::pin(tokio::time::sleep(AGAIN))));
            if now >= *deadline {
                self.waits = None;
                return Poll::Ready(Err(error));
            }
            ready!(again.as_mut().poll(cx));
            again.as_mut().reset(now + AGAIN);
        }
    }

    /// Gives a message that is whole the part of the charge that is its own.
    pub(crate) fn give(&mut self, message: Bytes) -> Bytes {
        match &mut self.charge {
            Some(charge) if message.len() >= WEIGHED => charge.split(message.len()).attach(message),
            _ => message,
        }
    }
}
