//! What the servers wrote down: every run of a tool, under the tag of the call, and every violation.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// The journal of one server, which may be several processes.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// How many violations were read.
    read: AtomicUsize,
}

impl Journal {
    /// The journal in this file, which need not exist yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path, read: AtomicUsize::new(0) }
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Everything in it.
    fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// How often this happened under this tag.
    pub fn count(&self, event: &str, tag: &str) -> usize {
        self.events().iter().filter(|line| line["event"] == event && line["tag"] == tag).count()
    }

    /// Waits until this happened under this tag.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn wait(&self, event: &str, tag: &str, patience: Duration) -> anyhow::Result<()> {
        let looking = async {
            while self.count(event, tag) == 0 {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(patience, looking).await.with_context(|| format!("the server never told: {event}"))
    }

    /// The violations that were not read before.
    pub fn violations(&self) -> Vec<String> {
        let events = self.events();
        let violations = events.iter().filter(|line| line["event"] == "violation");
        let mut all: Vec<String> = violations.filter_map(|line| line["what"].as_str()).map(str::to_owned).collect();
        let read = self.read.swap(all.len(), Ordering::Relaxed);
        all.split_off(read.min(all.len()))
    }
}
