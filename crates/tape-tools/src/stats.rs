//! `tapes_stats`: counts, errors and durations of calls, in total and by method, tool and tape.

use crate::ask_error::AskError;
use crate::call_line::{millis, name, time};
use crate::own_tapes::{OwnTapes, finished};
use crate::question::{text, when};
use serde_json::{Value, json};
use signalbox_embedded::Arguments;
use signalbox_engine::record::tally::{FinishedExchange, SUCCESS, Tally};
use signalbox_engine::record::{MethodStats, Query, Stats};
use signalbox_tape::analysis::Pages;
use std::cmp::Reverse;

/// Names of the arguments.
pub(crate) const KEYS: [&str; 6] = ["tape", "method", "tool", "backend", "since", "until"];
/// Maximum number of methods, tools and tapes listed.
const MAX_LINES: usize = 50;
/// Maximum number of calls counted, starting with the newest tapes.
const MAX_CALLS: u64 = 200_000;

/// Parsed arguments of `tapes_stats`.
#[derive(Debug)]
pub(crate) struct StatsQuery {
    query: Query,
    tape: Option<String>,
}

impl StatsQuery {
    pub(crate) fn read(reader: &mut Arguments<'_>) -> Option<Self> {
        reader.only(&KEYS);
        let query = Query {
            methods: text(reader, "method").into_iter().collect(),
            subject: text(reader, "tool"),
            backend: text(reader, "backend"),
            since: when(reader, "since"),
            until: when(reader, "until"),
            only_ends: true,
            ..Query::default()
        };
        Some(Self { query, tape: text(reader, "tape") })
    }

    /// Counts the calls on all selected tapes.
    pub(crate) fn answer(&self, own: &OwnTapes<'_>) -> Result<Value, AskError> {
        let (mut all, mut tapes) = (Tally::default(), Vec::new());
        let (mut counted, mut complete) = (0, true);
        for tape in own.tapes(self.tape.as_deref())? {
            let mut here = Tally::default();
            for entry in Pages::new(own.store, own.query(&tape, self.query.clone())) {
                let entry = entry?;
                let Some(end) = finished(&entry).filter(|_| &*entry.principal == own.principal) else { continue };
                if own.is_about_tapes(end.backend.as_deref()) {
                    continue;
                }
                if counted >= MAX_CALLS || own.is_late() {
                    complete = false;
                    break;
                }
                counted += 1;
                let one = FinishedExchange {
                    method: &end.method,
                    subject: end.subject.as_deref(),
                    well: end.outcome == SUCCESS,
                    took: end.took,
                    bytes: (end.bytes_in, end.bytes_out),
                };
                all.add(&one);
                here.add(&one);
            }
            let total = numbers(here).total;
            if total.count > 0 && tapes.len() < MAX_LINES {
                let mut shown = line(&tape.id, &total);
                shown["began"] = time(tape.started).into();
                tapes.push(shown);
            }
            if !complete {
                break;
            }
        }
        let all = numbers(all);
        let total = line("all", &all.total);
        let (methods, tools) = (lines(all.methods), lines(all.tools));
        Ok(json!({"total": total, "methods": methods, "tools": tools, "tapes": tapes, "complete": complete}))
    }
}

fn numbers(tally: Tally) -> Stats {
    let mut stats = Stats::default();
    tally.tell(&mut stats);
    stats
}

/// Formats the entries with the most calls.
fn lines(mut of: Vec<(String, MethodStats)>) -> Vec<Value> {
    of.sort_by_key(|(_, stats)| Reverse(stats.count));
    of.iter().take(MAX_LINES).map(|(name, stats)| line(name, stats)).collect()
}

fn line(of: &str, stats: &MethodStats) -> Value {
    json!({
        "name": name(of),
        "calls": stats.count,
        "errors": stats.errors,
        "mean_ms": millis(stats.mean),
        "p50_ms": millis(stats.p50),
        "p95_ms": millis(stats.p95),
        "p99_ms": millis(stats.p99),
        "bytes_in": stats.bytes_in,
        "bytes_out": stats.bytes_out,
    })
}
