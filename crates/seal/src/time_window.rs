//! How far the time of a message may be from ours.

use std::time::Duration;

/// How far the time of a message may be from the receiver's.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TimeWindow {
    /// How old a message may be.
    pub behind: Duration,
    /// How far in the future a message may seem to be made, because clocks differ.
    pub ahead: Duration,
}

/// Why the time of a message is wrong.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongTime {
    /// It was made too long ago.
    #[error("it was made too long ago")]
    TooOld,
    /// It says that it was made in the future.
    #[error("it says that it was made in the future")]
    FromTheFuture,
    /// It has expired.
    #[error("it has expired")]
    Expired,
    /// It expires before it was made.
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
    /// A window that is as wide on both sides.
    #[must_use]
    pub const fn around(either_way: Duration) -> Self {
        Self { behind: either_way, ahead: either_way }
    }

    /// Checks when a message was made and when it expires, all in nanoseconds since 1970.
    ///
    /// # Errors
    /// What is wrong with it.
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
