//! The queue between a proxy and its tap, and the tap's thread.

use super::TapCounts;
use signalbox_engine::{Fact, FactSink};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum size of the queue. Bytes beyond it are still forwarded, but are lost to the tap and counted.
pub const MAX_HELD: usize = 128 * 1024 * 1024;
/// Size charged per chunk in addition to its bytes.
const OVERHEAD: usize = 128;
/// Interval at which unanswered requests are checked.
const TICK: Duration = Duration::from_secs(10);

/// Input lost because the tap did not keep up.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TapLoss {
    /// Number of lost chunks.
    pub chunks: u64,
    /// Number of lost bytes.
    pub bytes: u64,
}

impl std::fmt::Display for TapLoss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes in {} chunks passed and were not recorded: queue_full", self.bytes, self.chunks)
    }
}

/// An input with a size.
pub trait Weigh {
    /// Returns the size in bytes.
    fn weight(&self) -> usize;
}

/// An analysis that converts forwarded traffic into facts.
pub trait Tap: Send + 'static {
    /// Type of its input.
    type Input: Weigh + Send + 'static;

    /// Starts the analysis with the proxy.
    fn begin(&mut self, _at: Instant, _out: &mut Vec<Fact>) {}
    /// Analyses one input that passed the proxy.
    fn take(&mut self, at: Instant, input: Self::Input, out: &mut Vec<Fact>);
    /// Records input that was lost.
    fn lost(&mut self, at: Instant, lost: TapLoss, out: &mut Vec<Fact>);
    /// Handles the passage of time.
    fn tick(&mut self, now: Instant, out: &mut Vec<Fact>);
    /// Ends the analysis and returns its counters.
    fn end(&mut self, at: Instant, out: &mut Vec<Fact>) -> TapCounts;
}

#[derive(Debug, Default)]
struct Gauge {
    held: AtomicUsize,
    lost_chunks: AtomicU64,
    lost_bytes: AtomicU64,
}

/// Sending end of the queue. It never blocks. Clones feed the same tap.
#[derive(Debug)]
pub struct Feed<I> {
    sender: Sender<Option<(Instant, I)>>,
    gauge: Arc<Gauge>,
    max: usize,
}

impl<I> Clone for Feed<I> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), gauge: Arc::clone(&self.gauge), max: self.max }
    }
}

impl<I: Weigh + Send + 'static> Feed<I> {
    /// Starts the thread of a tap, which sends its facts to `sinks`.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub fn start<T: Tap<Input = I>>(tap: T, sinks: Vec<Arc<dyn FactSink>>) -> io::Result<(Self, Running<I>)> {
        Self::bounded(tap, sinks, MAX_HELD)
    }

    fn bounded<T: Tap<Input = I>>(tap: T, sinks: Vec<Arc<dyn FactSink>>, max: usize) -> io::Result<(Self, Running<I>)> {
        let (sender, receiver) = channel();
        let gauge = Arc::new(Gauge::default());
        let feed = Self { sender, gauge: Arc::clone(&gauge), max };
        let work = move || listen(tap, &sinks, &receiver, &gauge);
        let thread = std::thread::Builder::new().name("tap".to_owned()).spawn(work)?;
        Ok((feed.clone(), Running { feed, thread }))
    }

    /// Queues an input, or counts it as lost if the queue is full.
    pub fn push(&self, at: Instant, input: I) {
        let bytes = input.weight();
        let weight = bytes + OVERHEAD;
        let held = self.gauge.held.fetch_add(weight, Ordering::Relaxed);
        // An empty queue accepts a chunk of any size, so that nothing is too large for an idle tap.
        if held > 0 && held + weight > self.max {
            self.gauge.held.fetch_sub(weight, Ordering::Relaxed);
            self.gauge.lost_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            self.gauge.lost_chunks.fetch_add(1, Ordering::Release);
            return;
        }
        // Fails only after the tap has ended.
        let _ = self.sender.send(Some((at, input)));
    }
}

/// Handle to the thread of a tap.
#[derive(Debug)]
pub struct Running<I> {
    feed: Feed<I>,
    thread: JoinHandle<TapCounts>,
}

impl<I> Running<I> {
    /// Lets the tap process its queue, and returns its counters. Blocks until then.
    #[must_use]
    pub fn finish(self) -> TapCounts {
        let _ = self.feed.sender.send(None);
        self.thread.join().unwrap_or_default()
    }
}

fn listen<T: Tap>(
    mut tap: T,
    sinks: &[Arc<dyn FactSink>],
    receiver: &Receiver<Option<(Instant, T::Input)>>,
    gauge: &Gauge,
) -> TapCounts {
    let mut out = Vec::new();
    let tell = |out: &mut Vec<Fact>| {
        for fact in out.drain(..) {
            for sink in sinks {
                sink.wait_for_room();
                sink.fact(&fact);
            }
        }
    };
    tap.begin(Instant::now(), &mut out);
    let mut ticked = Instant::now();
    loop {
        tell(&mut out);
        let given = receiver.recv_timeout(TICK);
        let now = Instant::now();
        let chunks = gauge.lost_chunks.swap(0, Ordering::Acquire);
        if chunks > 0 {
            let bytes = gauge.lost_bytes.swap(0, Ordering::Relaxed);
            tracing::warn!(chunks, bytes, "recording cannot keep up; some of what passed is missing on the tape");
            tap.lost(now, TapLoss { chunks, bytes }, &mut out);
        }
        match given {
            Ok(Some((at, input))) => {
                let weight = input.weight() + OVERHEAD;
                tap.take(at, input, &mut out);
                gauge.held.fetch_sub(weight, Ordering::Relaxed);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Ok(None) | Err(RecvTimeoutError::Disconnected) => break,
        }
        if now.saturating_duration_since(ticked) >= TICK {
            ticked = now;
            tap.tick(now, &mut out);
        }
    }
    let counts = tap.end(Instant::now(), &mut out);
    tell(&mut out);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Debug)]
    struct Bytes(usize);

    impl Weigh for Bytes {
        fn weight(&self) -> usize {
            self.0
        }
    }

    /// Is told to go on with each chunk, and notes what it is given.
    struct Slow {
        go: Receiver<()>,
        seen: Arc<Mutex<Vec<String>>>,
    }

    impl Tap for Slow {
        type Input = Bytes;

        fn take(&mut self, _: Instant, input: Bytes, _: &mut Vec<Fact>) {
            self.go.recv().unwrap();
            self.seen.lock().unwrap().push(format!("took {}", input.0));
        }

        fn lost(&mut self, _: Instant, lost: TapLoss, _: &mut Vec<Fact>) {
            self.seen.lock().unwrap().push(lost.to_string());
        }

        fn tick(&mut self, _: Instant, _: &mut Vec<Fact>) {}

        fn end(&mut self, _: Instant, _: &mut Vec<Fact>) -> TapCounts {
            TapCounts { messages: 7, ..TapCounts::default() }
        }
    }

    #[test]
    fn what_a_slow_tap_cannot_hold_is_counted_and_nobody_waits_for_it() {
        let (go, going) = channel();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (feed, running) = Feed::bounded(Slow { go: going, seen: Arc::clone(&seen) }, vec![], 1000).unwrap();
        for size in [5000, 1, 2] {
            feed.push(Instant::now(), Bytes(size));
        }
        go.send(()).unwrap();
        while feed.gauge.held.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
        }
        feed.push(Instant::now(), Bytes(9));
        go.send(()).unwrap();
        assert_eq!(running.finish().messages, 7);
        assert_eq!(
            *seen.lock().unwrap(),
            ["3 bytes in 2 chunks passed and were not recorded: queue_full", "took 5000", "took 9"]
        );
    }
}
