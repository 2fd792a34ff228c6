//! Memory charge of a reader: it grows with the bytes received, and moves to each complete message.

use bytes::Bytes;
use signalbox_engine::budget::{Charge, OverBudget, Share, WEIGHED};
use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Maximum wait for room before the message being read is refused.
pub const WAIT: Duration = Duration::from_secs(5);
/// Interval at which a waiting reader retries.
const AGAIN: Duration = Duration::from_millis(20);

/// Memory charge of one reader.
#[derive(Debug)]
pub(crate) struct ReadCharge {
    share: Option<Arc<Share>>,
    charge: Option<Charge>,
    /// Deadline of the wait for room, and the timer of the next attempt.
    waits: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl ReadCharge {
    /// Creates an empty charge. Without a share nothing is ever charged.
    pub(crate) fn new(share: Option<Arc<Share>>) -> Self {
        Self { share, charge: None, waits: None }
    }

    /// Sets the share to charge.
    pub(crate) fn charge_to(&mut self, share: Arc<Share>) {
        self.share = Some(share);
    }

    /// Adjusts the charge to this total, and waits for room if there is none. Small totals are free.
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

    /// Polling form of [`cover`](Self::cover).
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

    /// Attaches to a complete message its part of the charge.
    pub(crate) fn give(&mut self, message: Bytes) -> Bytes {
        match &mut self.charge {
            Some(charge) if message.len() >= WEIGHED => charge.split(message.len()).attach(message),
            _ => message,
        }
    }
}
