//! Pacing of the calls of a connection.
//!
//! Timers of tokio have a resolution of milliseconds, so calls that are due half a millisecond apart would come in
//! pairs, and wait for each other. Linux has a finer clock.

use std::io;
use std::time::Duration;

/// Interval timer of one connection. At most one missed call is made up for.
pub use beat::Pace;

#[cfg(target_os = "linux")]
mod beat {
    use super::{Duration, io};
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };
    use std::os::fd::OwnedFd;
    use tokio::io::unix::AsyncFd;

    #[derive(Debug)]
    pub struct Pace(AsyncFd<OwnedFd>);

    impl Pace {
        /// Fires every `pause`, for the first time after `first`.
        pub fn new(pause: Duration, first: Duration) -> io::Result<Self> {
            let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
            let spec = |time: Duration| Timespec {
                tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: time.subsec_nanos().into(),
            };
            // A zero value would disarm the timer.
            let first = first.max(Duration::from_nanos(1));
            let beat = Itimerspec { it_interval: spec(pause), it_value: spec(first) };
            timerfd_settime(&timer, TimerfdTimerFlags::empty(), &beat)?;
            #[expect(
                deprecated,
                reason = "its successor is unsafe, since not every type keeps its descriptor; this one does"
            )]
            let timer = AsyncFd::new(timer)?;
            Ok(Self(timer))
        }

        /// Waits until the next call is due.
        pub async fn wait(&mut self) -> io::Result<()> {
            loop {
                let mut ready = self.0.readable().await?;
                let read = ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut [0; 8])?));
                if let Ok(read) = read {
                    return read.map(drop);
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod beat {
    use super::{Duration, io};
    use tokio::time::Instant;

    #[derive(Debug)]
    pub struct Pace {
        pause: Duration,
        due: Instant,
    }

    impl Pace {
        /// Fires every `pause`, for the first time after `first`.
        pub fn new(pause: Duration, first: Duration) -> io::Result<Self> {
            Ok(Self { pause, due: Instant::now() + first })
        }

        /// Waits until the next call is due.
        pub async fn wait(&mut self) -> io::Result<()> {
            tokio::time::sleep_until(self.due).await;
            self.due = (self.due + self.pause).max(Instant::now());
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[tokio::test]
    async fn a_beat_comes_neither_too_soon_nor_too_often() {
        let started = Instant::now();
        let pause = Duration::from_micros(1_500);
        let mut pace = Pace::new(pause, Duration::ZERO).expect("a timer");
        for beat in 0..20 {
            pace.wait().await.expect("a beat");
            assert!(started.elapsed() >= pause * beat, "beat {beat} after {:?}", started.elapsed());
        }
        // What was missed is one call, however long it took.
        tokio::time::sleep(pause * 10).await;
        pace.wait().await.expect("a beat");
        let behind = Instant::now();
        pace.wait().await.expect("a beat");
        pace.wait().await.expect("a beat");
        assert!(behind.elapsed() >= pause / 2, "{:?}", behind.elapsed());
    }
}
