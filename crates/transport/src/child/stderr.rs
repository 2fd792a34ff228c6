//! Follows a child's standard error: logs it, and keeps its last lines for the report of its end.

use super::ChildCounts;
use super::printable::printable;
use memchr::memchr;
use signalbox_engine::lock::LockResultExt;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

/// Size of a read.
const CHUNK: usize = 8 * 1024;
/// Maximum number of bytes kept of a line.
const LINE: usize = 2 * 1024;
/// Maximum number of lines kept for the report.
const KEPT: usize = 10;
/// Maximum number of bytes of a line in that report.
const QUOTED: usize = 300;
/// Maximum number of lines logged per second.
pub const LOGGED: u32 = 100;
const LOG_WINDOW: Duration = Duration::from_secs(1);

/// Last lines that a child wrote to its standard error.
#[derive(Debug, Default)]
pub(super) struct LastWords(Mutex<VecDeque<String>>);

impl LastWords {
    /// Returns the line that most likely explains why the child ended: one that names a package that npm cannot find,
    /// else the last one that mentions an error, else the last one.
    pub(super) fn quote(&self) -> Option<String> {
        let lines = self.0.lock().unpoisoned();
        let names_package = |line: &&String| {
            line.contains("is not in this registry")
                || line.contains("could not be found or you do not have permission")
        };
        let says_nothing = |line: &str| line.contains("A complete log of this run can be found in");
        let speaks = |line: &&String| line.to_ascii_lowercase().contains("error") && !says_nothing(line);
        lines.iter().find(names_package).or_else(|| lines.iter().rfind(speaks)).or(lines.back()).cloned()
    }

    /// Returns all kept lines, oldest first.
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.lock().unpoisoned().iter().cloned().collect()
    }

    /// Keeps a line, unless it is blank or a frame of a stack trace, which would push out the error above it.
    fn push(&self, line: &[u8]) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"at ") {
            return;
        }
        let mut lines = self.0.lock().unpoisoned();
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(printable(line, QUOTED));
    }
}

/// State of the task that follows standard error.
pub(super) struct Follower {
    name: Arc<str>,
    words: Arc<LastWords>,
    counts: Arc<ChildCounts>,
    /// Incremented with every chunk, so that the end can wait while output still arrives.
    progress: Arc<AtomicU64>,
}

impl Follower {
    pub(super) fn new(
        name: &Arc<str>,
        words: &Arc<LastWords>,
        counts: &Arc<ChildCounts>,
        progress: &Arc<AtomicU64>,
    ) -> Self {
        Self {
            name: Arc::clone(name),
            words: Arc::clone(words),
            counts: Arc::clone(counts),
            progress: Arc::clone(progress),
        }
    }

    /// Reads until the pipe ends or fails.
    pub(super) async fn run(self, mut pipe: impl AsyncRead + Unpin) {
        let mut allowance = LogAllowance::new(LOGGED, LOG_WINDOW, Instant::now());
        let mut line = Vec::new();
        let mut chunk = vec![0; CHUNK];
        while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
            self.progress.fetch_add(1, Ordering::Relaxed);
            let mut rest = &chunk[..read];
            while let Some(newline) = memchr(b'\n', rest) {
                keep(&mut line, &rest[..newline]);
                self.take(&line, &mut allowance);
                line.clear();
                rest = &rest[newline + 1..];
            }
            keep(&mut line, rest);
        }
        self.take(&line, &mut allowance);
        self.warn_unlogged(allowance.missed());
    }

    fn take(&self, line: &[u8], allowance: &mut LogAllowance) {
        let line = line.trim_ascii_end();
        if line.is_empty() {
            return;
        }
        self.words.push(line);
        match allowance.take(Instant::now()) {
            Some(missed) => {
                self.warn_unlogged(missed);
                let text = printable(line, LINE);
                tracing::info!(target: "signalbox::child_stderr", backend = %self.name, "{text}");
            }
            None => ChildCounts::add(&self.counts.unlogged),
        }
    }

    fn warn_unlogged(&self, lines: u64) {
        if lines > 0 {
            tracing::warn!(backend = %self.name, lines, "the child wrote to stderr too fast; lines were not logged");
        }
    }
}

/// Appends to a line up to the limit. One byte beyond it shows that the line was clipped.
fn keep(line: &mut Vec<u8>, more: &[u8]) {
    let room = (LINE + 1).saturating_sub(line.len());
    line.extend_from_slice(&more[..more.len().min(room)]);
}

/// Rate limit: at most `most` events per window; the rest is counted.
#[derive(Debug)]
pub(super) struct LogAllowance {
    most: u32,
    window: Duration,
    since: Instant,
    used: u32,
    missed: u64,
}

impl LogAllowance {
    pub(super) fn new(most: u32, window: Duration, now: Instant) -> Self {
        Self { most, window, since: now, used: 0, missed: 0 }
    }

    /// Requests one event. If granted, returns the number of events denied since the last granted one.
    pub(super) fn take(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.since) >= self.window {
            self.since = now;
            self.used = 0;
        }
        if self.used >= self.most {
            self.missed += 1;
            return None;
        }
        self.used += 1;
        Some(self.missed())
    }

    /// Returns and resets the number of denied events since the last granted one.
    pub(super) fn missed(&mut self) -> u64 {
        std::mem::take(&mut self.missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is quoted after a child has written this, and how many lines of it were not logged.
    async fn follow(text: &str) -> (Option<String>, u64) {
        let (words, counts) = (Arc::default(), Arc::default());
        let follower = Follower::new(&Arc::from("b"), &words, &counts, &Arc::default());
        follower.run(text.as_bytes()).await;
        (words.quote(), counts.unlogged.load(Ordering::Relaxed))
    }

    async fn check(text: &str) -> Option<String> {
        follow(text).await.0
    }

    #[tokio::test]
    async fn a_package_that_npm_does_not_find_is_named() {
        let npm = "npm error code E404\nnpm error 404 Not Found - GET https://registry.example/nosuch - Not found\n\
                   npm error 404\nnpm error 404  'nosuch@*' is not in this registry.\nnpm error 404\n\
                   npm error 404 Note that you can also install from a\nnpm error 404 tarball, folder, http url, or git folder.\n\
                   npm error A complete log of this run can be found in: /home/me/.npm/_logs/debug-0.log\n";
        assert_eq!(check(npm).await.unwrap(), "npm error 404  'nosuch@*' is not in this registry.");
        let newer = npm.replace(
            "'nosuch@*' is not in this registry.",
            "The requested resource 'nosuch@*' could not be found or you do not have permission to access it.",
        );
        assert!(check(&newer).await.unwrap().contains("'nosuch@*'"));
        let other = "npm error code EACCES\nnpm error A complete log of this run can be found in: /x\n";
        assert_eq!(check(other).await.unwrap(), "npm error code EACCES");
    }

    #[tokio::test]
    async fn the_line_that_speaks_of_an_error_is_quoted() {
        assert_eq!(check("").await, None);
        assert_eq!(check("\n \n").await, None);
        assert_eq!(check("one\ntwo\r\n\n").await.as_deref(), Some("two"));
        assert_eq!(check("no newline").await.as_deref(), Some("no newline"));
        let node = format!(
            "node:internal/x:1\n  throw err;\n  ^\n\nError: Cannot find module 'x'\n{}  code: 'X'\n}}\n\nNode.js v22\n",
            "    at Module.load (x)\n".repeat(12)
        );
        assert_eq!(check(&node).await.as_deref(), Some("Error: Cannot find module 'x'"));
    }

    #[tokio::test]
    async fn lines_are_bounded_in_length_and_number() {
        let quoted = check(&"x".repeat(100_000)).await.unwrap();
        assert_eq!(quoted.chars().count(), QUOTED + 1);
        let many = format!("error: old\n{}", "line\n".repeat(KEPT));
        assert_eq!(check(&many).await.as_deref(), Some("line"));
        let mut line = Vec::new();
        keep(&mut line, &[b'x'; 100_000]);
        keep(&mut line, b"y");
        assert_eq!(line.len(), LINE + 1);
    }

    #[tokio::test]
    async fn a_flood_is_counted_and_not_logged() {
        assert_eq!(follow(&"x\n".repeat(50)).await.1, 0);
        assert!(follow(&"x\n".repeat(10_000)).await.1 > 0);
    }

    #[test]
    fn beyond_the_bound_it_counts_until_the_next_window() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut allowance = LogAllowance::new(2, second, start);
        assert_eq!(allowance.take(start), Some(0));
        assert_eq!(allowance.take(start), Some(0));
        assert_eq!(allowance.take(start), None);
        assert_eq!(allowance.take(start + second / 2), None);
        assert_eq!(allowance.take(start + second), Some(2));
        assert_eq!(allowance.take(start + second), Some(0));
        assert_eq!(allowance.take(start + second), None);
        assert_eq!(allowance.missed(), 1);
    }
}
