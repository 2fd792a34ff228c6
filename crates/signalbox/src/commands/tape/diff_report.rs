//! Report of `signalbox tape diff`, as text and as JSON.

use super::{head, moment};
use serde_json::{Value, json};
use signalbox_control::table;
use signalbox_engine::record::TapeInfo;
use signalbox_replay::diff::short;
use signalbox_replay::tape_diff::{CallChange, DiffCounts, Fate, FieldChange, OfferChange, Part, TapeDiff, Timing};

/// Maximum number of fields shown per call in the text report.
const MAX_FIELDS: usize = 20;
/// Maximum number of changed offers in the text report.
const MAX_OFFERS: usize = 200;

/// Formats the report as text.
pub(super) fn as_text(old: &TapeInfo, new: &TapeInfo, found: &TapeDiff) -> String {
    let mut text = about("old", old, found.counts.old) + &about("new", new, found.counts.new);
    for note in &found.notes {
        text.push_str(&format!("note: {}\n", table::harmless(note)));
    }
    if !found.calls.is_empty() {
        let rows: Vec<Vec<String>> = found.calls.iter().flat_map(call_rows).collect();
        text.push('\n');
        text.push_str(&table::render(&["CALL", "NEW", "METHOD", "ABOUT", "TIER", "WHAT"], &rows));
    }
    let unlisted = found.counts.differing.saturating_sub(found.calls.len() as u64);
    if unlisted > 0 {
        text.push_str(&format!("{unlisted} more differ and are not listed; see --limit\n"));
    }
    if !found.offers.is_empty() {
        let rows: Vec<Vec<String>> = found.offers.iter().take(MAX_OFFERS).map(offer_row).collect();
        text.push('\n');
        text.push_str(&table::render(&["BACKEND", "OFFERS", "TIER", "WHAT"], &rows));
        if found.offers.len() > MAX_OFFERS {
            text.push_str(&format!("and {} more; see --json\n", found.offers.len() - MAX_OFFERS));
        }
    }
    if !found.timings.is_empty() {
        let rows: Vec<Vec<String>> = found
            .timings
            .iter()
            .map(|row| {
                let name = row.subject.as_ref().map_or_else(|| row.method.clone(), |subject| format!("  {subject}"));
                let times = |of: fn(&Timing) -> u64| [of(&row.old), of(&row.new)].map(moment::length);
                let [[old50, new50], [old95, new95]] = [times(|one| one.p50), times(|one| one.p95)];
                vec![name, row.old.calls.to_string(), row.new.calls.to_string(), old50, new50, old95, new95]
            })
            .collect();
        text.push('\n');
        text.push_str(&table::render(&["TIME OF", "CALLS", "NEW", "P50", "NEW", "P95", "NEW"], &rows));
    }
    text.push('\n');
    text.push_str(&summary(found));
    text
}

fn about(which: &str, tape: &TapeInfo, calls: u64) -> String {
    let (began, calls) = (moment::shown(tape.started), count(calls, "call"));
    let line = format!("{which}: {} of {}, began {began}, {calls}", tape.id, tape.target);
    format!("{}\n", table::harmless(&line))
}

/// Returns a row for the call with the first difference in its last cell, and a row for each further difference.
fn call_rows(call: &CallChange) -> Vec<Vec<String>> {
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let mut what: Vec<String> = Vec::new();
    match call.fate {
        Fate::Removed => what.push("only on the old tape".to_owned()),
        Fate::Added => what.push("only on the new tape".to_owned()),
        Fate::Moved => what.push("at another place in the order of calls".to_owned()),
        Fate::Rewritten | Fate::Paired => {}
    }
    what.extend(call.outcome.as_ref().map(|(old, new)| format!("outcome: {old} → {new}")));
    what.extend(call.fields.iter().take(MAX_FIELDS).map(field_text));
    let hidden = call.fields.len().saturating_sub(MAX_FIELDS) as u64 + call.more;
    if hidden > 0 {
        what.push(format!("and {hidden} more places"));
    }
    what.extend(call.slower.map(|(old, new)| format!("took: {} → {}", moment::length(old), moment::length(new))));
    let first = [number(call.old), number(call.new), call.method.clone(), call.subject.clone().unwrap_or_default()];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (index, what) in what.into_iter().enumerate() {
        let mut row = if index == 0 { first.to_vec() } else { vec![String::new(); first.len()] };
        row.push(if index == 0 { call.tier.word().to_owned() } else { String::new() });
        row.push(what);
        rows.push(row);
    }
    rows
}

fn field_text(field: &FieldChange) -> String {
    let part = if field.part == Part::Request { "request " } else { "" };
    format!("{part}{}: {} → {}", field.pointer, field.recorded, field.new)
}

fn offer_row(offer: &OfferChange) -> Vec<String> {
    let change = &offer.change;
    let value = |value: &Option<Value>| value.as_ref().map(short);
    let mut what = if change.pointer.is_empty() { String::new() } else { format!("{}: ", change.pointer) };
    what.push_str(&change.reason);
    if let (Some(old), Some(new)) = (value(&change.recorded), value(&change.new)) {
        what.push_str(&format!(" ({old} → {new})"));
    }
    let backend = offer.backend.clone().unwrap_or_else(|| "(as clients saw it)".to_owned());
    vec![backend, change.subject.clone(), change.tier.word().to_owned(), what]
}

fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn summary(found: &TapeDiff) -> String {
    let DiffCounts { paired, differing, breaking, removed, added, moved, slower, not_comparable, masked, .. } =
        found.counts;
    let mut lines = vec![format!("{} compared, {differing} differ", count(paired, "call"))];
    let details = [
        (breaking, "breaking"),
        (removed, "only on the old tape"),
        (added, "only on the new tape"),
        (moved, "in another order"),
        (slower, "slower than allowed"),
    ];
    let told: Vec<String> =
        details.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if !told.is_empty() {
        lines[0].push_str(&format!(" ({})", told.join(", ")));
    }
    if not_comparable > 0 {
        lines.push(format!("{} not comparable: a message is not on its tape", count(not_comparable, "call")));
    }
    if masked > 0 {
        lines.push(format!("{} not compared: redacted or encrypted", count(masked, "place")));
    }
    if !found.offers.is_empty() {
        let breaking = found.offers.iter().filter(|offer| offer.change.tier.word() == "breaking").count();
        lines
            .push(format!("{} of what servers offer, {breaking} breaking", count(found.offers.len() as u64, "change")));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Formats the report as JSON.
pub(super) fn as_json(old: &TapeInfo, new: &TapeInfo, found: &TapeDiff) -> Value {
    let counts = &found.counts;
    let timing = |one: &Timing| json!({"calls": one.calls, "p50_ns": one.p50, "p95_ns": one.p95});
    let timings: Vec<Value> = found
        .timings
        .iter()
        .map(|row| json!({"method": row.method, "tool": row.subject, "old": timing(&row.old), "new": timing(&row.new)}))
        .collect();
    json!({
        "same": found.is_same(),
        "breaking": found.is_breaking(),
        "old": head(old, None),
        "new": head(new, None),
        "notes": found.notes,
        "counts": {
            "old": counts.old,
            "new": counts.new,
            "paired": counts.paired,
            "differing": counts.differing,
            "breaking": counts.breaking,
            "removed": counts.removed,
            "added": counts.added,
            "moved": counts.moved,
            "slower": counts.slower,
            "not_comparable": counts.not_comparable,
            "masked": counts.masked,
        },
        "calls": found.calls.iter().map(call_json).collect::<Vec<_>>(),
        "offers": found.offers.iter().map(offer_json).collect::<Vec<_>>(),
        "timings": timings,
    })
}

fn call_json(call: &CallChange) -> Value {
    let field = |field: &FieldChange| {
        let part = if field.part == Part::Request { "request" } else { "answer" };
        let [recorded, new] = &field.values;
        json!({
            "in": part, "pointer": field.pointer, "kind": field.kind.word(), "tier": field.tier.word(),
            "recorded": recorded, "new": new, "shown": [field.recorded, field.new],
        })
    };
    json!({
        "fate": call.fate.word(),
        "old": call.old,
        "new": call.new,
        "method": call.method,
        "about": call.subject,
        "tier": call.tier.word(),
        "outcome": call.outcome.as_ref().map(|(old, new)| [old, new]),
        "slower_ns": call.slower.map(|(old, new)| [old, new]),
        "fields": call.fields.iter().map(field).collect::<Vec<_>>(),
        "more": call.more,
    })
}

fn offer_json(offer: &OfferChange) -> Value {
    let change = &offer.change;
    json!({
        "backend": offer.backend,
        "about": change.subject,
        "pointer": change.pointer,
        "tier": change.tier.word(),
        "reason": change.reason,
        "recorded": change.recorded,
        "new": change.new,
    })
}
