//! Metrics per tool: calls and durations by status, kinds of errors, and warnings (G-28 to G-30).
//!
//! A tool is counted by its qualified name, independent of the client's spelling. Unlisted names, and tools beyond
//! [`MAX_TOOLS`], are counted together, so that a client cannot grow the table with invented names. A spelling that was
//! seen before is found without a lock.

use crate::fact::{FinishedFact, Outcome};
use crate::labelled_durations::{BucketReading, LabelledDurations, TOOL_BOUNDS_US};
use crate::lock::LockResultExt as _;
use crate::metrics::Outcomes;
use signalbox_wire::method;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Maximum number of tools counted separately.
pub const MAX_TOOLS: usize = 1024;
/// Label of all others.
pub const OTHER: &str = "other";
/// Number of places for spellings; more than two for each tool.
const SPELLINGS: usize = 4096;
/// Number of places searched for one spelling.
const PROBES: usize = 8;

/// Every status of a call.
pub const STATUSES: [&str; 9] =
    ["success", "error", "denied", "killed", "rate_limited", "invalid_args", "circuit_open", "timeout", "cancelled"];

/// Returns the status of a call with this outcome, one of [`STATUSES`].
#[must_use]
pub fn status_of(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "success",
        Outcome::ToolError | Outcome::BackendError => "error",
        Outcome::Cancelled => "cancelled",
        Outcome::Fault(reason) => match reason {
            "rate_limited" => "rate_limited",
            "timed_out" => "timeout",
            "breaker_open" => "circuit_open",
            "invalid_params" | "header_mismatch" => "invalid_args",
            "killed" | "quarantined" => "killed",
            "refused" | "denied" | "unauthenticated" | "insufficient_scope" | "sign_in_needed" | "hold_expired" => {
                "denied"
            }
            _ => "error",
        },
    }
}

/// Metrics of one tool.
#[derive(Clone, Debug)]
pub struct ToolReading {
    /// Qualified name of the tool.
    pub tool: Arc<str>,
    /// Histograms of durations by status.
    pub took: Vec<(&'static str, BucketReading)>,
    /// Number of calls that did not end with a plain result, by kind of error.
    pub errors: Vec<(&'static str, u64)>,
    /// Number of calls that exceeded the duration threshold.
    pub slow: u64,
    /// Number of calls after which the tool's process exceeded the memory threshold.
    pub high_memory: u64,
}

#[derive(Debug)]
struct ToolCell {
    tool: Arc<str>,
    backend: Arc<str>,
    took: LabelledDurations,
    errors: Outcomes,
    slow: AtomicU64,
    high_memory: AtomicU64,
    /// Number of calls that ended since the memory of the backend was last measured.
    unmeasured: AtomicU64,
}

impl ToolCell {
    fn new(tool: &str, backend: &str) -> Self {
        Self {
            tool: tool.into(),
            backend: backend.into(),
            took: LabelledDurations::new(TOOL_BOUNDS_US),
            errors: Outcomes::default(),
            slow: AtomicU64::new(0),
            high_memory: AtomicU64::new(0),
            unmeasured: AtomicU64::new(0),
        }
    }

    fn read(&self) -> ToolReading {
        ToolReading {
            tool: Arc::clone(&self.tool),
            took: self.took.read(),
            errors: self.errors.read(),
            slow: self.slow.load(Ordering::Relaxed),
            high_memory: self.high_memory.load(Ordering::Relaxed),
        }
    }
}

/// Client's spelling of a tool of a backend, with the counters of that tool.
#[derive(Debug)]
struct Spelling {
    backend: Arc<str>,
    name: Box<str>,
    cell: Arc<ToolCell>,
}

/// Table of the metrics of all tools.
#[derive(Debug)]
pub struct ToolMetrics {
    spellings: Box<[OnceLock<Spelling>]>,
    tools: Mutex<BTreeMap<Arc<str>, Arc<ToolCell>>>,
    others: Arc<ToolCell>,
    /// Thresholds in microseconds and bytes; 0 for none.
    slow_us: AtomicU64,
    high_memory: AtomicU64,
}

impl Default for ToolMetrics {
    fn default() -> Self {
        Self {
            spellings: (0..SPELLINGS).map(|_| OnceLock::new()).collect(),
            tools: Mutex::default(),
            others: Arc::new(ToolCell::new(OTHER, "")),
            slow_us: AtomicU64::new(0),
            high_memory: AtomicU64::new(0),
        }
    }
}

impl ToolMetrics {
    /// Sets the thresholds for warnings: the duration of a call, and the memory of a process after a call in bytes.
    pub fn warn_above(&self, slow: Option<Duration>, high_memory: Option<u64>) {
        let slow = slow.map_or(0, |slow| u64::try_from(slow.as_micros()).unwrap_or(u64::MAX));
        self.slow_us.store(slow, Ordering::Relaxed);
        self.high_memory.store(high_memory.unwrap_or(0), Ordering::Relaxed);
    }

    /// Counts the end of a tool call; other exchanges are ignored. `qualified` maps a backend's name to a listed tool,
    /// and is called for new spellings. Returns true if the memory of its backend is to be measured.
    pub fn add(&self, finished: &FinishedFact, qualified: impl FnOnce(&str) -> Option<String>) -> bool {
        if finished.method != method::TOOLS_CALL {
            return false;
        }
        let cell = match (&finished.backend, finished.subject.as_deref()) {
            (Some(backend), Some(name)) => self.cell(backend, name, qualified),
            _ => None,
        };
        let cell = cell.as_deref().unwrap_or(&self.others);
        cell.took.add(status_of(finished.outcome), finished.took);
        if finished.outcome != Outcome::Ok {
            cell.errors.add(finished.outcome.label());
        }
        let slow = self.slow_us.load(Ordering::Relaxed);
        if slow > 0 && finished.took.as_micros() > u128::from(slow) {
            cell.slow.fetch_add(1, Ordering::Relaxed);
        }
        let measured = self.high_memory.load(Ordering::Relaxed) > 0 && !cell.backend.is_empty();
        if measured {
            cell.unmeasured.fetch_add(1, Ordering::Relaxed);
        }
        measured
    }

    /// Measures the memory of every backend whose tools were called since the last measurement, and counts the calls
    /// after which it exceeded the threshold. `memory` is called once for each.
    pub fn measure(&self, memory: impl Fn(&str) -> Option<u64>) {
        let most = self.high_memory.load(Ordering::Relaxed);
        let cells: Vec<Arc<ToolCell>> = self.tools.lock().unpoisoned().values().cloned().collect();
        let mut known = BTreeMap::<Arc<str>, Option<u64>>::new();
        for cell in cells {
            let calls = cell.unmeasured.swap(0, Ordering::Relaxed);
            if calls == 0 || most == 0 {
                continue;
            }
            let held = known.entry(Arc::clone(&cell.backend)).or_insert_with(|| memory(&cell.backend));
            if held.is_some_and(|held| held > most) {
                cell.high_memory.fetch_add(calls, Ordering::Relaxed);
            }
        }
    }

    /// Returns a sorted copy of all tools. Those counted together come last, if there are any.
    #[must_use]
    pub fn read(&self) -> Vec<ToolReading> {
        let mut all: Vec<ToolReading> = self.tools.lock().unpoisoned().values().map(|cell| cell.read()).collect();
        let others = self.others.read();
        all.extend((!others.took.is_empty()).then_some(others));
        all
    }

    fn cell(
        &self,
        backend: &Arc<str>,
        name: &str,
        qualified: impl FnOnce(&str) -> Option<String>,
    ) -> Option<Arc<ToolCell>> {
        let first = place_of(backend, name);
        let places = (0..PROBES).filter_map(|step| self.spellings.get((first + step) % SPELLINGS));
        let is_this = |known: &Spelling| known.backend == *backend && *known.name == *name;
        for place in places.clone() {
            match place.get() {
                Some(known) if is_this(known) => return Some(Arc::clone(&known.cell)),
                Some(_) => {}
                None => break,
            }
        }
        let cell = self.listed_cell(&qualified(name)?, backend)?;
        // If there is no place left, the next call of this spelling takes the slow path again.
        for place in places {
            let new = || Spelling { backend: Arc::clone(backend), name: name.into(), cell: Arc::clone(&cell) };
            if is_this(place.get_or_init(new)) {
                break;
            }
        }
        Some(cell)
    }

    /// Returns the counters of a listed tool; `None` if there are too many tools already.
    fn listed_cell(&self, tool: &str, backend: &str) -> Option<Arc<ToolCell>> {
        let mut tools = self.tools.lock().unpoisoned();
        if let Some(cell) = tools.get(tool) {
            return Some(Arc::clone(cell));
        }
        if tools.len() >= MAX_TOOLS {
            return None;
        }
        let cell = Arc::new(ToolCell::new(tool, backend));
        tools.insert(Arc::clone(&cell.tool), Arc::clone(&cell));
        Some(cell)
    }
}

/// Returns the first place to search for a spelling (FNV-1a). Only listed names get a place, so that clients cannot
/// choose them.
fn place_of(backend: &str, name: &str) -> usize {
    let bytes = backend.bytes().chain([0]).chain(name.bytes());
    let hash = bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    usize::try_from(hash % SPELLINGS as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Caller;
    use crate::keys::{ExchangeId, SessionKey};
    use signalbox_wire::Era;
    use std::time::Instant;

    fn ended(name: &str, outcome: Outcome, ms: u64) -> FinishedFact {
        FinishedFact {
            at: Instant::now(),
            session: SessionKey(1),
            caller: Caller::anonymous("http"),
            client: None,
            operation: ExchangeId(1),
            round: 1,
            exchange: ExchangeId(1),
            era: Era::Legacy,
            method: method::TOOLS_CALL.into(),
            subject: Some(name.into()),
            backend: Some("a".into()),
            outcome,
            took: Duration::from_millis(ms),
            bytes_in: 10,
            bytes_out: 20,
            trace: None,
            unreached: None,
        }
    }

    /// The tools of the backend `a` begin with `t`.
    fn listed(name: &str) -> Option<String> {
        let own = name.strip_prefix("a__").unwrap_or(name);
        own.starts_with('t').then(|| format!("a__{own}"))
    }

    fn add(metrics: &ToolMetrics, finished: &FinishedFact) -> bool {
        metrics.add(finished, listed)
    }

    /// Proves G-28 and G-29.
    #[test]
    fn a_tool_is_counted_by_its_qualified_name_and_status() {
        let metrics = ToolMetrics::default();
        for name in ["tell", "a__tell", "tell"] {
            add(&metrics, &ended(name, Outcome::Ok, 30));
        }
        add(&metrics, &ended("tell", Outcome::Fault("rate_limited"), 1));
        add(&metrics, &ended("made up", Outcome::Fault("unknown_tool"), 1));
        add(&metrics, &FinishedFact { method: method::TOOLS_LIST.into(), ..ended("tell", Outcome::Ok, 1) });
        let read = metrics.read();
        let names: Vec<&str> = read.iter().map(|tool| &*tool.tool).collect();
        assert_eq!(names, ["a__tell", "other"]);
        let by_status: Vec<_> = read[0].took.iter().map(|(status, took)| (*status, took.count)).collect();
        assert_eq!(by_status, [("success", 3), ("rate_limited", 1)]);
        assert_eq!(read[0].errors, [("rate_limited", 1)]);
        let (bounds, took) = (TOOL_BOUNDS_US, &read[0].took[0].1);
        assert_eq!((took.within[4], took.within[5], took.total_us), ((bounds[4], 0), (bounds[5], 3), 90_000));
    }

    /// Proves G-30.
    #[test]
    fn slow_calls_and_large_processes_are_warned_about() {
        let metrics = ToolMetrics::default();
        assert!(!add(&metrics, &ended("tell", Outcome::Ok, 5_000)), "nothing is looked at before somebody wants it");
        metrics.warn_above(Some(Duration::from_secs(1)), Some(1_000));
        assert!(add(&metrics, &ended("tell", Outcome::Ok, 1_000)));
        assert!(add(&metrics, &ended("tell", Outcome::Ok, 1_001)));
        assert!(!add(&metrics, &ended("made up", Outcome::Ok, 2_000)), "nobody knows whose memory that would be");
        metrics.measure(|backend| (backend == "a").then_some(1_000));
        assert_eq!((metrics.read()[0].slow, metrics.read()[0].high_memory), (1, 0));
        add(&metrics, &ended("tell", Outcome::Ok, 1));
        add(&metrics, &ended("tell", Outcome::Ok, 1));
        metrics.measure(|_| Some(1_001));
        metrics.measure(|_| Some(1_001));
        assert_eq!(metrics.read()[0].high_memory, 2, "each call is counted once");
        add(&metrics, &ended("tell", Outcome::Ok, 1));
        metrics.measure(|_| None);
        assert_eq!((metrics.read()[0].high_memory, metrics.read()[1].slow), (2, 1));
    }

    #[test]
    fn tools_beyond_the_bound_are_counted_together() {
        let metrics = ToolMetrics::default();
        for number in 0..MAX_TOOLS + 10 {
            for spelled in [format!("t{number}"), format!("a__t{number}")] {
                add(&metrics, &ended(&spelled, Outcome::Ok, 1));
            }
        }
        let read = metrics.read();
        assert_eq!(read.len(), MAX_TOOLS + 1);
        let counts: Vec<u64> = read.iter().map(|tool| tool.took.iter().map(|(_, took)| took.count).sum()).collect();
        assert!(counts[..MAX_TOOLS].iter().all(|count| *count == 2), "both spellings are the same tool");
        assert_eq!((counts[MAX_TOOLS], &*read[MAX_TOOLS].tool), (20, OTHER));
    }

    #[test]
    fn every_reason_has_a_status_of_the_closed_set() {
        for reason in ["rate_limited", "timed_out", "refused", "denied", "invalid_params", "killed", "anything"] {
            assert!(STATUSES.contains(&status_of(Outcome::Fault(reason))), "{reason}");
        }
        for outcome in [Outcome::Ok, Outcome::ToolError, Outcome::BackendError, Outcome::Cancelled] {
            assert!(STATUSES.contains(&status_of(outcome)), "{outcome:?}");
        }
    }
}
