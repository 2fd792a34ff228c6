//! `signalbox tape search --facets`: counts the matches of a search by their properties.

use crate::failure::Failure;
use crate::output;
use serde_json::{Map, Value, json};
use signalbox_control::table;
use signalbox_engine::record::{Query, TapeStore};
use signalbox_tape::analysis::{Facets, ValueCounts, facets_of};
use std::fmt::Display;
use std::process::ExitCode;

/// Maximum number of values per property in the JSON.
const MOST: usize = 1_000;

pub(super) fn run(json: bool, store: &dyn TapeStore, query: &Query) -> Result<ExitCode, Failure> {
    let facets = facets_of(store, query)?;
    let text = if json { format!("{}\n", as_json(&facets)) } else { as_text(&facets, query.limit.unwrap_or(MOST)) };
    output::in_form(json, &text)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn as_text(facets: &Facets, most: usize) -> String {
    let mut rows = Vec::new();
    rows_of("method", &facets.methods, most, &mut rows);
    rows_of("about", &facets.subjects, most, &mut rows);
    rows_of("backend", &facets.backends, most, &mut rows);
    rows_of("principal", &facets.principals, most, &mut rows);
    rows_of("outcome", &facets.outcomes, most, &mut rows);
    rows_of("error code", &facets.codes, most, &mut rows);
    let mut text = table::render(&["BY", "VALUE", "CALLS"], &rows);
    text.push_str(&format!("\n{}, {} entries\n", output::counted(facets.calls, "call"), facets.entries));
    if facets.uncounted > 0 {
        text.push_str("too many calls to tell apart; narrow the search\n");
    }
    text
}

fn rows_of<K: Ord + Clone + Display>(by: &str, counts: &ValueCounts<K>, most: usize, rows: &mut Vec<Vec<String>>) {
    let (values, others) = counts.most(most);
    for (value, count) in values {
        rows.push(vec![by.to_owned(), value.to_string(), count.to_string()]);
    }
    if others > 0 {
        rows.push(vec![by.to_owned(), "(others)".to_owned(), others.to_string()]);
    }
}

pub(super) fn as_json(facets: &Facets) -> Value {
    json!({
        "calls": facets.calls,
        "entries": facets.entries,
        "uncounted": facets.uncounted,
        "methods": values(&facets.methods),
        "subjects": values(&facets.subjects),
        "backends": values(&facets.backends),
        "principals": values(&facets.principals),
        "outcomes": values(&facets.outcomes),
        "error_codes": values(&facets.codes),
    })
}

fn values<K: Ord + Clone + Display>(counts: &ValueCounts<K>) -> Value {
    let (values, others) = counts.most(MOST);
    let values: Map<String, Value> =
        values.into_iter().map(|(value, count)| (value.to_string(), json!(count))).collect();
    json!({"values": values, "others": others})
}
