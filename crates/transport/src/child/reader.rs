use super::printable::printable;
use super::stderr::LogAllowance;
use super::{ChildCounts, ChildSpec};
use crate::read_charge::ReadCharge;
use bytes::Bytes;
use signalbox_engine::budget::OverBudget;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::LinkEvents;
use signalbox_wire::line::{LineDecoder, LineError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

/// Size of a read, which is the capacity of a pipe.
const CHUNK: usize = 64 * 1024;
/// Maximum number of bytes shown of a line that is not a message.
const SHOWN: usize = 200;
/// Maximum number of warnings about discarded lines, per window.
const COMPLAINTS: u32 = 10;
const COMPLAINT_WINDOW: Duration = Duration::from_secs(60);

/// State of the reading task.
pub(super) struct Reader {
    name: Arc<str>,
    max_message: usize,
    events: Arc<dyn LinkEvents>,
    counts: Arc<ChildCounts>,
    /// Incremented with every chunk, so that the end can wait while output still arrives.
    progress: Arc<AtomicU64>,
}

impl Reader {
    pub(super) fn new(
        spec: &ChildSpec,
        events: &Arc<dyn LinkEvents>,
        counts: &Arc<ChildCounts>,
        progress: &Arc<AtomicU64>,
    ) -> Self {
        Self {
            name: Arc::clone(&spec.name),
            max_message: spec.max_message,
            events: Arc::clone(events),
            counts: Arc::clone(counts),
            progress: Arc::clone(progress),
        }
    }

    /// Reads until the pipe ends.
    pub(super) async fn run(self, mut pipe: impl AsyncRead + Unpin) {
        let mut lines = Lines::new(self);
        let mut decoder = LineDecoder::new(lines.reader.max_message);
        let mut chunk = vec![0; CHUNK];
        let mut charge = ReadCharge::new(lines.reader.events.share());
        loop {
            match pipe.read(&mut chunk).await {
                Ok(0) => break,
                Ok(read) => {
                    lines.reader.progress.fetch_add(1, Ordering::Relaxed);
                    decoder.push(&chunk[..read]);
                }
                Err(error) => {
                    tracing::warn!(backend = %lines.reader.name, %error, "the child's output cannot be read");
                    break;
                }
            }
            if let Err(error) = charge.cover(decoder.buffered()).await {
                lines.reader.events.dropped("no_room");
                lines.no_room = Some(error);
                decoder.skip_line();
            }
            while let Some(line) = decoder.next_line() {
                let line = line.map(|line| charge.give(line));
                if let Some(room) = lines.reader.events.room() {
                    room.await;
                }
                lines.take(line);
            }
        }
        while let Some(line) = decoder.finish() {
            lines.take(line);
        }
        lines.sum_up();
    }
}

/// Separates messages from other lines.
struct Lines {
    reader: Reader,
    complaints: LogAllowance,
    skipped: u64,
    /// Set while a line is skipped for lack of room rather than for its length.
    no_room: Option<OverBudget>,
}

impl Lines {
    fn new(reader: Reader) -> Self {
        Self {
            reader,
            complaints: LogAllowance::new(COMPLAINTS, COMPLAINT_WINDOW, Instant::now()),
            skipped: 0,
            no_room: None,
        }
    }

    fn take(&mut self, line: Result<Bytes, LineError>) {
        match line {
            Ok(line) if may_be_message(&line) => self.reader.events.received(line, None, None),
            Ok(line) => self.skip(&line),
            Err(error) => self.complain(&error),
        }
    }

    /// Counts a line that is not a message. Many servers print a banner to standard output: the first such line is
    /// worth a warning, a thousand are not.
    fn skip(&mut self, line: &[u8]) {
        self.skipped += 1;
        ChildCounts::add(&self.reader.counts.not_json);
        let shown = printable(line, SHOWN);
        if self.skipped == 1 {
            tracing::warn!(
                target: "signalbox::child_stdout",
                backend = %self.reader.name,
                line = %shown,
                "the child writes something that is not JSON to its standard output; such lines are skipped"
            );
        }
        self.reader.events.stray_line(shown);
    }

    /// Fails the request that the line would have answered, if that can be determined.
    fn complain(&mut self, error: &LineError) {
        let LineError::TooLong { line, .. } = error;
        let (kind, why) = match self.no_room.take() {
            Some(over) => (FaultKind::Overloaded, over.to_string()),
            // The backend did answer; the size of the answer depends on the call.
            None => (FaultKind::BackendRefused, error.to_string()),
        };
        let name = &self.reader.name;
        if let Some(key) = line.answers() {
            let fault = Fault::new(kind, format!("the answer of backend `{name}` is not taken: {why}"));
            self.reader.events.failed(key, fault.with_str("backend", name));
        }
        ChildCounts::add(&self.reader.counts.too_long);
        if let Some(missed) = self.complaints.take(Instant::now()) {
            tracing::warn!(backend = %name, unlogged = missed, "a line of the child's output is skipped: {why}");
        }
    }

    fn sum_up(&self) {
        if self.skipped > 1 {
            let (backend, lines) = (&self.reader.name, self.skipped);
            tracing::info!(%backend, lines, "lines of the child's standard output were not JSON and were skipped");
        }
    }
}

fn may_be_message(line: &[u8]) -> bool {
    matches!(line.trim_ascii_start().first(), Some(b'{' | b'['))
}
