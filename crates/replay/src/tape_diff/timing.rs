//! Compares the durations of calls on two tapes.

use super::names::{Name, Names};
use super::tape_index::Call;
use signalbox_engine::percentiles::rank;
use std::collections::BTreeMap;

/// Maximum number of rows for methods, and again for tools.
const MAX_ROWS: usize = 100;

/// Duration statistics for a set of calls.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Timing {
    pub calls: u64,
    /// Median duration in nanoseconds.
    pub p50: u64,
    /// 95th percentile of the durations in nanoseconds.
    pub p95: u64,
}

/// Durations of one method or tool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimingRow {
    pub method: String,
    /// Tool or prompt, or `None` for the row of the whole method.
    pub subject: Option<String>,
    pub old: Timing,
    pub new: Timing,
}

/// Returns a row for each method, followed by a row for each tool and prompt, busiest first.
pub(super) fn table(old: &[Call], new: &[Call], names: &Names) -> Vec<TimingRow> {
    let mut rows: BTreeMap<(bool, String, Option<String>), [Vec<u64>; 2]> = BTreeMap::new();
    for (side, calls) in [old, new].into_iter().enumerate() {
        for call in calls {
            let Name { method, subject } = names.name(call.name);
            let mut add = |is_tool: bool, subject: Option<String>| {
                let times = rows.entry((is_tool, method.to_string(), subject)).or_default();
                times[side].push(call.took);
            };
            add(false, None);
            if let Some(subject) = subject.filter(|_| matches!(&*method, "tools/call" | "prompts/get")) {
                add(true, Some(subject.to_string()));
            }
        }
    }
    let mut shown: Vec<(bool, TimingRow)> = rows
        .into_iter()
        .map(|((is_tool, method, subject), [old, new])| {
            (is_tool, TimingRow { method, subject, old: timing(old), new: timing(new) })
        })
        .collect();
    shown.sort_by_key(|(is_tool, row)| (*is_tool, std::cmp::Reverse(row.old.calls + row.new.calls)));
    let methods = shown.iter().filter(|(is_tool, _)| !is_tool).take(MAX_ROWS);
    let tools = shown.iter().filter(|(is_tool, _)| *is_tool).take(MAX_ROWS);
    methods.chain(tools).map(|(_, row)| row.clone()).collect()
}

fn timing(mut times: Vec<u64>) -> Timing {
    times.sort_unstable();
    let calls = times.len() as u64;
    let at = |percent| usize::try_from(rank(calls, percent) - 1).ok().and_then(|place| times.get(place)).copied();
    Timing { calls, p50: at(50).unwrap_or_default(), p95: at(95).unwrap_or_default() }
}
