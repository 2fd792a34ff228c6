//! What differs from run to run, and is therefore no sign of a change.

use crate::diff::Comparison;
use crate::paths::{Paths, escaped};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The paths at which the answers to the same call differ between runs, with `*` for the places of items.
#[must_use]
pub fn volatile_paths(runs: &[BTreeMap<u64, Value>], comparison: &Comparison) -> Paths {
    let mut found = BTreeSet::new();
    let Some((first, others)) = runs.split_first() else { return Paths::default() };
    for (call, answer) in first {
        for other in others.iter().filter_map(|run| run.get(call)) {
            let differences = comparison.compare_messages(answer.into(), other.into());
            found.extend(differences.list.iter().map(|difference| general(&difference.pointer)));
        }
    }
    let mut paths = Paths::default();
    // A pointer is a path unless it is too long, and then it ignores nothing.
    found.iter().for_each(|path| _ = paths.add(path));
    paths
}

/// A pointer in which the places of items are left open.
fn general(pointer: &str) -> String {
    let is_index = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let part = |part: &str| match is_index(part) {
        true => "/*".to_owned(),
        false => format!("/{part}"),
    };
    let path: String = pointer.split('/').skip(1).map(part).collect();
    if path.is_empty() { format!("/{}", escaped("result")) } else { path }
}
