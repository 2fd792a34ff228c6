//! The second half of `signalbox tape stats`: call sequences, slow calls, recent anomalies.

use super::moment;
use serde_json::{Value, json};
use signalbox_control::table;
use signalbox_tape::analysis::{Analysis, Anomaly, Oddness, Slow};

/// Maximum number of pairs in the report.
const PAIRS: usize = 10;

/// Formats the analysis as text.
pub(super) fn as_text(analysis: &Analysis) -> String {
    let mut text = String::new();
    let (pairs, others) = analysis.flow.most(PAIRS);
    if !pairs.is_empty() {
        let rows: Vec<Vec<String>> =
            pairs.into_iter().map(|((first, then), count)| vec![first, then, count.to_string()]).collect();
        text.push_str("\nwhat follows what in a session:\n");
        text.push_str(&table::render(&["FIRST", "THEN", "TIMES"], &rows));
        if others > 0 {
            text.push_str(&format!("and {others} other pairs\n"));
        }
    }
    let slowest = analysis.slowest.list();
    if !slowest.is_empty() {
        let rows: Vec<Vec<String>> = slowest.iter().map(row).collect();
        text.push_str("\nslowest calls:\n");
        text.push_str(&table::render(&["TAPE", "CALL", "AT", "METHOD", "ABOUT", "BACKEND", "OUTCOME", "TOOK"], &rows));
    }
    let anomalies = analysis.anomalies.list();
    if !anomalies.is_empty() {
        text.push_str("\nin the last tenth of the time, compared with before:\n");
        anomalies.iter().for_each(|anomaly| text.push_str(&line(anomaly)));
    }
    if analysis.anomalies.beyond() > 0 {
        let beyond = analysis.anomalies.beyond();
        let were = if beyond == 1 { "was" } else { "were" };
        text.push_str(&format!("\n{} of further tools {were} not compared\n", crate::output::counted(beyond, "call")));
    }
    text
}

fn row(slow: &Slow) -> Vec<String> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    vec![
        slow.tape.clone(),
        slow.exchange.map(|number| number.to_string()).unwrap_or_default(),
        moment::shown(slow.at),
        slow.method.clone(),
        text(&slow.subject),
        text(&slow.backend),
        slow.outcome.clone(),
        moment::length(slow.took),
    ]
}

fn line(anomaly: &Anomaly) -> String {
    let what = table::harmless(&anomaly.what);
    let (before, late) = anomaly.calls;
    let how = match anomaly.how {
        Oddness::Slower(was, is) => {
            format!("is slower: p95 about {}, before {}", moment::length(is), moment::length(was))
        }
        Oddness::Fails(was, is) => format!("fails more often: {is:.0} of 100 calls, before {was:.0}"),
    };
    format!("  {what} {how} ({late} calls, before {before})\n")
}

/// Formats the analysis as JSON.
pub(super) fn as_json(analysis: &Analysis) -> Value {
    let (pairs, others) = analysis.flow.most(PAIRS);
    let pairs: Vec<Value> =
        pairs.into_iter().map(|((first, then), times)| json!({"first": first, "then": then, "times": times})).collect();
    let slowest: Vec<Value> = analysis.slowest.list().iter().map(slow_json).collect();
    let anomalies: Vec<Value> = analysis.anomalies.list().iter().map(anomaly_json).collect();
    json!({"pairs": pairs, "other_pairs": others, "slowest": slowest, "anomalies": anomalies, "not_compared": analysis.anomalies.beyond()})
}

fn slow_json(slow: &Slow) -> Value {
    json!({
        "tape": slow.tape,
        "exchange": slow.exchange,
        "at": slow.at,
        "method": slow.method,
        "subject": slow.subject,
        "backend": slow.backend,
        "outcome": slow.outcome,
        "took_ns": slow.took,
    })
}

fn anomaly_json(anomaly: &Anomaly) -> Value {
    let (kind, before, late) = match anomaly.how {
        Oddness::Slower(was, is) => ("p95_ns", json!(was), json!(is)),
        Oddness::Fails(was, is) => ("errors_percent", json!(was), json!(is)),
    };
    json!({
        "what": anomaly.what,
        "measure": kind,
        "before": before,
        "last_tenth": late,
        "calls_before": anomaly.calls.0,
        "calls_last_tenth": anomaly.calls.1,
    })
}
