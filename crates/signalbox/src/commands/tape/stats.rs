//! `signalbox tape stats`: statistics of one tape or all.

use super::named_tape::NamedTape;
use super::{analysis, moment};
use crate::cli::Global;
use crate::failure::Failure;
use crate::output;
use serde_json::{Value, json};
use signalbox_control::table;
use signalbox_engine::record::{MethodStats, Stats};
use signalbox_tape::analysis::Analysis;
use std::process::ExitCode;

pub(super) fn run(global: &Global, tape: Option<&str>) -> Result<ExitCode, Failure> {
    let named = NamedTape::find(global, tape)?;
    let stats = named.store.stats(named.tape.as_ref().map(|tape| tape.id.as_str()))?;
    let analysis = Analysis::of(&*named.store, &named.tapes()?)?;
    let text = if global.json {
        let mut all = as_json(&stats);
        all["analysis"] = analysis::as_json(&analysis);
        format!("{all}\n")
    } else {
        as_text(&stats) + &analysis::as_text(&analysis)
    };
    output::in_form(global.json, &text)?;
    Ok(ExitCode::SUCCESS)
}

fn as_text(stats: &Stats) -> String {
    let mut rows = vec![row("all calls", &stats.total)];
    rows.extend(stats.methods.iter().map(|(name, numbers)| row(name, numbers)));
    rows.extend(stats.tools.iter().map(|(name, numbers)| row(&format!("  {name}"), numbers)));
    let mut text = table::render(
        &["WHAT", "CALLS", "ERRORS", "AVERAGE", "P50", "P95", "P99", "BYTES IN", "BYTES OUT", "TOKENS, ABOUT"],
        &rows,
    );
    let kinds: Vec<String> = stats.messages.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    text.push_str(&format!("\nmessages: {}\n", kinds.join(", ")));
    for (method, count) in &stats.notifications {
        let (method, came, went) = (table::harmless(method), count.came, count.went);
        text.push_str(&format!("notifications: {method}, {came} came, {went} went\n"));
    }
    text.push_str(&format!("bytes: {} passed, {} stored\n", stats.bytes.0, stats.bytes.1));
    if stats.gaps > 0 {
        text.push_str(&format!("missing: {} facts\n", stats.gaps));
    }
    text
}

fn row(name: &str, numbers: &MethodStats) -> Vec<String> {
    vec![
        name.to_owned(),
        numbers.count.to_string(),
        numbers.errors.to_string(),
        moment::length(numbers.mean),
        moment::length(numbers.p50),
        moment::length(numbers.p95),
        moment::length(numbers.p99),
        numbers.bytes_in.to_string(),
        numbers.bytes_out.to_string(),
        numbers.tokens().to_string(),
    ]
}

pub(super) fn as_json(stats: &Stats) -> Value {
    let one = |numbers: &MethodStats| {
        json!({
            "calls": numbers.count,
            "errors": numbers.errors,
            "average_ns": numbers.mean,
            "p50_ns": numbers.p50,
            "p95_ns": numbers.p95,
            "p99_ns": numbers.p99,
            "bytes_in": numbers.bytes_in,
            "bytes_out": numbers.bytes_out,
            "tokens": numbers.tokens(),
        })
    };
    let named = |list: &[(String, MethodStats)]| -> Value {
        list.iter().map(|(name, numbers)| (name.clone(), one(numbers))).collect::<serde_json::Map<_, _>>().into()
    };
    let messages: serde_json::Map<String, Value> =
        stats.messages.iter().map(|(kind, count)| (kind.clone(), json!(count))).collect();
    let notifications: serde_json::Map<String, Value> = stats
        .notifications
        .iter()
        .map(|(method, count)| (method.clone(), json!({"came": count.came, "went": count.went})))
        .collect();
    json!({
        "total": one(&stats.total),
        "methods": named(&stats.methods),
        "tools": named(&stats.tools),
        "messages": messages,
        "notifications": notifications,
        "gaps": stats.gaps,
        "bytes": {"passed": stats.bytes.0, "kept": stats.bytes.1},
    })
}
