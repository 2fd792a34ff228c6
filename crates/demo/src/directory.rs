//! The `directory_list` tool, also called `ls`.

use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Map, Value};
use signalbox_embedded::Arguments;
use signalbox_embedded::arguments::{MAX_SAFE, whole_number};
use signalbox_wire::glob::{self, Wildcards};
use tokio::sync::Semaphore;

use super::accounts::Accounts;
use super::entry::{Entry, Kind, RenderedEntry, SortKey};
use super::fault::ToolFault;
use super::root::{Root, is_below};
use super::toolbox::Answer;
use super::walk::{Limits, Plan, WalkResult, walk};

/// Limits of a listing. The number of operations also bounds memory to 256 MB, as an entry has a few kilobytes at most.
pub(super) const LIMITS: Limits = Limits { time: Duration::from_secs(30), operations: 10_000 };

/// Maximum number of levels in a recursive listing.
pub(super) const MAX_DEPTH: u64 = 10;
/// Default number of levels in a recursive listing.
pub(super) const DEFAULT_DEPTH: u64 = 3;
/// Allowed number of entries.
pub(super) const LIMIT: std::ops::RangeInclusive<u64> = 1..=1000;
/// Default number of entries.
pub(super) const DEFAULT_LIMIT: u64 = 100;
/// Maximum length of a name pattern in characters.
pub(super) const MAX_PATTERN: usize = 256;

/// Maximum number of concurrent walks. Further ones wait. A hanging file system can block this many threads.
const MAX_WALKS: usize = 4;

/// Depth above which a recursive listing is no longer low risk.
const LOW_RISK_DEPTH: u64 = 5;

/// Risk level of a call, by how much it could reveal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Risk {
    Low,
    Medium,
    High,
}

impl Risk {
    /// Returns the name of the level.
    pub(super) fn word(self) -> &'static str {
        match self {
            Risk::Low => "Low",
            Risk::Medium => "Medium",
            Risk::High => "High",
        }
    }

    fn assess(path: &Path, recursive: bool, depth: u64) -> Risk {
        if ["/etc", "/root"].iter().any(|high| is_below(path, Path::new(high))) {
            Risk::High
        } else if recursive && depth > LOW_RISK_DEPTH {
            Risk::Medium
        } else {
            Risk::Low
        }
    }
}

/// Tool with its shared state.
#[derive(Debug)]
pub(super) struct DirectoryList {
    root: Arc<Root>,
    accounts: Arc<OnceLock<Accounts>>,
    walks: Arc<Semaphore>,
}

impl DirectoryList {
    /// Creates a tool that lists folders below `root`.
    pub(super) fn new(root: Root) -> DirectoryList {
        DirectoryList { root: Arc::new(root), accounts: Arc::default(), walks: Arc::new(Semaphore::new(MAX_WALKS)) }
    }

    /// Assesses the risk of a call by what it requests, whether or not that is allowed. Returns `None` without a path.
    pub(super) fn risk(&self, arguments: &Map<String, Value>) -> Option<Risk> {
        let path = self.root.imagine(arguments.get("path")?.as_str()?);
        let recursive = arguments.get("recursive").and_then(Value::as_bool).unwrap_or(false);
        let depth = arguments.get("max_depth").and_then(whole_number);
        Some(Risk::assess(&path, recursive, depth.unwrap_or(DEFAULT_DEPTH)))
    }

    /// Checks the arguments and lists the folder. Accesses the file system on a blocking thread only.
    pub(super) async fn run(&self, arguments: &Map<String, Value>, limits: Limits) -> Result<Answer, ToolFault> {
        let listing = Listing::check(arguments)?;
        let started = Instant::now();
        let stop = StopOnDrop::default();
        let (root, accounts, stopped) = (self.root.clone(), self.accounts.clone(), stop.flag.clone());
        let walks = self.walks.clone();
        let work = async move {
            let permit = walks.acquire_owned().await.map_err(|_| ToolFault::Interrupted)?;
            let blocking = tokio::task::spawn_blocking(move || {
                let answer = listing.list(&root, &accounts, limits, &stopped, started);
                drop(permit);
                answer
            });
            blocking.await.map_err(|_| ToolFault::Interrupted)?
        };
        // The walk checks the time itself. This timeout covers a file system that hangs.
        match tokio::time::timeout(limits.time, work).await {
            Ok(answer) => answer,
            Err(_) => Err(ToolFault::ExecutionTimeout(limits.time)),
        }
    }
}

/// Guard that stops a walk on another thread when the caller goes away.
#[derive(Debug, Default)]
struct StopOnDrop {
    flag: Arc<AtomicBool>,
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.flag.store(true, Ordering::Relaxed);
    }
}

/// Arguments that match the schema. [`Root::locate`] checks the path itself, because it owns the order of the checks.
#[derive(Debug, Clone, PartialEq)]
struct Listing {
    path: String,
    recursive: bool,
    max_depth: u64,
    include_hidden: bool,
    filter: Filter,
    sort_by: SortKey,
    descending: bool,
    limit: usize,
}

/// Filter for entries. An absent criterion keeps all.
#[derive(Debug, Clone, Default, PartialEq)]
struct Filter {
    pattern: Option<String>,
    kinds: Vec<Kind>,
    min: Option<u64>,
    max: Option<u64>,
}

impl Filter {
    fn read(reader: &mut Arguments<'_>) -> Filter {
        reader.only(&["pattern", "file_types", "size_range"]);
        let pattern = reader.text("pattern", MAX_PATTERN);
        let kinds = reader.choices("file_types", &Kind::WORDS).unwrap_or_default();
        let range = reader.section("size_range", |range| {
            range.only(&["min", "max"]);
            let ends = (range.whole("min", 0..=MAX_SAFE), range.whole("max", 0..=MAX_SAFE));
            if let (Some(min), Some(max)) = ends
                && min > max
            {
                range.problem(format!("`filter.size_range.min` is {min}, more than `max`, which is {max}"));
            }
            ends
        });
        let (min, max) = range.unwrap_or_default();
        Filter { pattern, kinds, min, max }
    }

    fn keeps(&self, entry: &Entry) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| glob::fits(pattern, &entry.name, Wildcards::StarAndQuestion))
            && (self.kinds.is_empty() || self.kinds.contains(&entry.kind))
            && self.min.is_none_or(|min| entry.size >= min)
            && self.max.is_none_or(|max| entry.size <= max)
    }
}

impl Listing {
    fn check(arguments: &Map<String, Value>) -> Result<Listing, ToolFault> {
        const KNOWN: [&str; 7] = ["path", "recursive", "max_depth", "include_hidden", "filter", "sort", "limit"];
        let mut reader = Arguments::new("directory_list", arguments);
        reader.only(&KNOWN);
        // The length is checked later, so that a path that is too long gets its own error code.
        let path = reader.text("path", usize::MAX);
        if !arguments.contains_key("path") {
            reader.problem("`path` is missing; `.` lists the root folder".to_owned());
        }
        let recursive = reader.flag("recursive").unwrap_or(false);
        let max_depth = reader.whole("max_depth", 1..=MAX_SAFE).unwrap_or(DEFAULT_DEPTH);
        let include_hidden = reader.flag("include_hidden").unwrap_or(false);
        let filter = reader.section("filter", Filter::read).unwrap_or_default();
        let (by, order) = reader.section("sort", read_sort).unwrap_or_default();
        let limit = reader.whole("limit", LIMIT).unwrap_or(DEFAULT_LIMIT);
        reader.finish()?;
        if max_depth > MAX_DEPTH {
            return Err(ToolFault::DepthLimitExceeded { asked: max_depth, limit: MAX_DEPTH });
        }
        Ok(Listing {
            path: path.unwrap_or_default(),
            recursive,
            max_depth,
            include_hidden,
            filter,
            sort_by: by.unwrap_or(SortKey::Name),
            descending: order.unwrap_or(false),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
        })
    }

    fn list(
        self,
        root: &Root,
        accounts: &OnceLock<Accounts>,
        limits: Limits,
        stop: &AtomicBool,
        started: Instant,
    ) -> Result<Answer, ToolFault> {
        let place = root.locate(&self.path)?;
        let plan = Plan {
            shown: self.path.trim_end_matches('/').to_owned(),
            depth: if self.recursive { self.max_depth } else { 1 },
            hidden: self.include_hidden,
        };
        let found = walk(root, &place, &plan, limits, stop)?;
        let skipped = found.skipped;
        let output = self.arrange(found, accounts.get_or_init(Accounts::load), started);
        let structured = serde_json::to_value(output).map_err(|_| ToolFault::Interrupted)?;
        Ok(Answer::structured(structured).with_skipped(skipped))
    }

    fn arrange(self, found: WalkResult, accounts: &Accounts, started: Instant) -> Output {
        let total_entries = found.entries.len();
        let mut entries = found.entries;
        entries.retain(|entry| self.filter.keeps(entry));
        entries.sort_by(|a, b| {
            let order = a.compare(b, self.sort_by);
            if self.descending { order.reverse() } else { order }
        });
        let filtered_entries = entries.len();
        entries.truncate(self.limit);
        let truncated = found.exhausted || entries.len() < filtered_entries;
        let entries = entries.into_iter().map(|entry| entry.render(accounts)).collect();
        Output {
            path: self.path,
            entries,
            metadata: Metadata {
                total_entries,
                filtered_entries,
                execution_time: started.elapsed().as_secs_f64(),
                truncated,
            },
        }
    }
}

type Sort = (Option<SortKey>, Option<bool>);

fn read_sort(reader: &mut Arguments<'_>) -> Sort {
    const KEYS: [(&str, SortKey); 4] =
        [("name", SortKey::Name), ("size", SortKey::Size), ("modified", SortKey::Modified), ("type", SortKey::Type)];
    reader.only(&["by", "order"]);
    let by = reader.choice("by", &KEYS);
    (by, reader.choice("order", &[("asc", false), ("desc", true)]))
}

/// Structured content of a result. The field names are part of the tool's output schema.
#[derive(Debug, Serialize)]
struct Output {
    path: String,
    entries: Vec<RenderedEntry>,
    metadata: Metadata,
}

#[derive(Debug, Serialize)]
struct Metadata {
    /// Number of entries seen by the walk.
    total_entries: usize,
    /// Number of entries kept by the filter.
    filtered_entries: usize,
    execution_time: f64,
    truncated: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(arguments: Value) -> Result<Listing, ToolFault> {
        Listing::check(arguments.as_object().expect("an object"))
    }

    /// Proves GO-2.
    #[test]
    fn the_arguments_have_their_defaults() {
        let listing = check(json!({"path": "."})).expect("it fits");
        assert!(!listing.recursive && !listing.include_hidden && !listing.descending);
        assert_eq!((listing.max_depth, listing.limit, listing.sort_by), (3, 100, SortKey::Name));
        assert_eq!(listing.filter, Filter::default());
    }

    /// Proves GO-2.
    #[test]
    fn what_does_not_fit_is_refused() {
        for bad in [
            json!({}),
            json!({"path": 1}),
            json!({"path": ".", "recursive": "yes"}),
            json!({"path": ".", "max_depth": 0}),
            json!({"path": ".", "include_hidden": null}),
            json!({"path": ".", "limit": 0}),
            json!({"path": ".", "limit": 1001}),
            json!({"path": ".", "depth": 1}),
            json!({"path": ".", "filter": []}),
            json!({"path": ".", "filter": {"pattern": "x".repeat(257)}}),
            json!({"path": ".", "filter": {"file_types": ["folder"]}}),
            json!({"path": ".", "filter": {"file_types": "file"}}),
            json!({"path": ".", "filter": {"size_range": {"min": -1}}}),
            json!({"path": ".", "filter": {"size_range": {"min": 2, "max": 1}}}),
            json!({"path": ".", "filter": {"size_range": {"from": 2}}}),
            json!({"path": ".", "sort": {"by": "age"}}),
            json!({"path": ".", "sort": {"order": "up"}}),
        ] {
            let fault = check(bad.clone());
            assert!(matches!(&fault, Err(ToolFault::InvalidArguments(all)) if all.0.len() == 1), "{bad}: {fault:?}");
        }
        let deep = check(json!({"path": ".", "max_depth": 11}));
        assert_eq!(deep, Err(ToolFault::DepthLimitExceeded { asked: 11, limit: 10 }));
    }

    /// Proves GO-5.
    #[tokio::test]
    async fn a_call_that_takes_too_long_is_given_up() {
        let folder = crate::tests::Folder::new();
        let tool = DirectoryList::new(Root::open(folder.path(), None).expect("the root opens"));
        let limits = Limits { time: Duration::ZERO, ..LIMITS };
        let arguments = json!({"path": "."});
        let late = tool.run(arguments.as_object().expect("an object"), limits).await;
        assert_eq!(late, Err(ToolFault::ExecutionTimeout(Duration::ZERO)));
    }

    #[test]
    fn a_caller_that_goes_away_leaves_word() {
        let stop = StopOnDrop::default();
        let flag = stop.flag.clone();
        assert!(!flag.load(Ordering::Relaxed));
        drop(stop);
        assert!(flag.load(Ordering::Relaxed));
    }

    /// Proves GO-5.
    #[test]
    fn the_limits_are_the_specified_numbers() {
        assert_eq!((LIMITS.time.as_secs(), LIMITS.operations), (30, 10_000));
    }

    /// Proves GO-6.
    #[test]
    fn risk_follows_path_and_depth() {
        for (path, recursive, depth, risk) in [
            ("/etc", false, 1, Risk::High),
            ("/root/x", true, 10, Risk::High),
            ("/etcetera", false, 1, Risk::Low),
            ("/srv", true, 6, Risk::Medium),
            ("/srv", true, 5, Risk::Low),
            ("/srv", false, 10, Risk::Low),
        ] {
            assert_eq!(Risk::assess(Path::new(path), recursive, depth), risk, "{path}");
        }
    }
}
