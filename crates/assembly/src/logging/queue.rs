//! The queue between whoever logs and the one thread that writes.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;
use tracing_subscriber::fmt::MakeWriter;

/// Most lines that wait.
const LINES: usize = 4096;
/// How long the end may take for what is still queued.
const FLUSH: Duration = Duration::from_secs(1);

enum Item {
    Line(Vec<u8>),
    End,
}

/// Queues lines; never waits.
#[derive(Clone)]
pub(super) struct Queue {
    lines: SyncSender<Item>,
    lost: Arc<AtomicU64>,
}

/// Writes what is queued when dropped, as long as somebody reads it.
pub struct Flusher {
    lines: SyncSender<Item>,
    ended: Receiver<()>,
}

/// Starts the thread that writes.
pub(super) fn start(output: impl Write + Send + 'static) -> (Queue, Flusher) {
    let (lines, queued) = sync_channel(LINES);
    let (end, ended) = sync_channel(1);
    let lost = Arc::new(AtomicU64::new(0));
    let queue = Queue { lines: lines.clone(), lost: Arc::clone(&lost) };
    let thread = std::thread::Builder::new().name("log".to_owned());
    // Without the thread nothing is logged, but everything else works.
    let _ = thread.spawn(move || {
        write(output, &queued, &lost);
        let _ = end.send(());
    });
    (queue, Flusher { lines, ended })
}

fn write(mut output: impl Write, queued: &Receiver<Item>, lost: &AtomicU64) {
    while let Ok(Item::Line(line)) = queued.recv() {
        let _ = output.write_all(&line);
        let missing = lost.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let _ = writeln!(output, "{missing} log lines were lost because nobody read them in time");
        }
    }
    let _ = output.flush();
}

impl Drop for Flusher {
    fn drop(&mut self) {
        if self.lines.try_send(Item::End).is_ok() {
            let _ = self.ended.recv_timeout(FLUSH);
        }
    }
}

impl Write for Queue {
    /// One call per line: that is how the formatter writes.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Err(TrySendError::Full(_)) = self.lines.try_send(Item::Line(line.to_vec())) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Queue {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::lock::LockResultExt;
    use std::sync::Mutex;

    #[derive(Clone, Default)]
    struct Sink {
        text: Arc<Mutex<Vec<u8>>>,
        gate: Arc<Mutex<()>>,
    }

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _open = self.gate.lock().unpoisoned();
            self.text.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_does_not_read_stops_nobody_and_the_loss_is_said() {
        let sink = Sink::default();
        let closed = sink.gate.lock().unwrap();
        let (mut queue, flusher) = start(sink.clone());
        for _ in 0..LINES + 100 {
            queue.write_all(b"line\n").unwrap();
        }
        drop(closed);
        // Dropping the flusher waits only for a moment, so the last line is waited for here.
        let started = std::time::Instant::now();
        let text = loop {
            let text = String::from_utf8(sink.text.lock().unwrap().clone()).unwrap();
            if text.matches("line\n").count() >= LINES || started.elapsed().as_secs() > 20 {
                break text;
            }
            std::thread::yield_now();
        };
        drop(flusher);
        assert!(text.contains("log lines were lost"));
        assert!(text.matches("line\n").count() >= LINES);
    }
}
