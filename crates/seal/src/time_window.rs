//! Tolerated difference between the time of a message and the clock.

use std::time::Duration;

/// Tolerated difference between the time of a message and the receiver's clock.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TimeWindow {
    /// Maximum age of a message.
    pub behind: Duration,
    /// Maximum time that a message may be ahead, because clocks differ.
    pub ahead: Duration,
}

/// Reason why the time of a message is wrong.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongTime {
    /// The message is too old.
    #[error("it was made too long ago")]
    TooOld,
    /// The message is from the future.
    #[error("it says that it was made in the future")]
    FromTheFuture,
    /// The message has expired.
    #[error("it has expired")]
    Expired,
    /// The message expires before it was made.
    #[error("it expires before it was made")]
    ExpiresBeforeItWasMade,
}

impl Default for TimeWindow {
    /// 24 hours behind and 5 minutes ahead.
    fn default() -> Self {
        Self { behind: Duration::from_secs(24 * 60 * 60), ahead: Duration::from_secs(5 * 60) }
    }
}

impl TimeWindow {
    /// Creates a window of the same width in both directions.
    #[must_use]
    pub const fn around(either_way: Duration) -> Self {
        Self { behind: either_way, ahead: either_way }
    }

    /// Checks the time and the expiry of a message, all in nanoseconds since 1970.
    ///
    /// # Errors
    /// The reason why the time is wrong.
    pub fn check(&self, made: i64, expires: Option<i64>, now: i64) -> Result<(), WrongTime> {
        let (made, now) = (i128::from(made), i128::from(now));
        let nanos = |duration: Duration| i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX / 4);
        if made > now + nanos(self.ahead) {
            return Err(WrongTime::FromTheFuture);
        }
        if made < now - nanos(self.behind) {
            return Err(WrongTime::TooOld);
        }
        match expires.map(i128::from) {
            Some(expires) if expires <= made => Err(WrongTime::ExpiresBeforeItWasMade),
            Some(expires) if expires <= now => Err(WrongTime::Expired),
            _ => Ok(()),
        }
    }
}
