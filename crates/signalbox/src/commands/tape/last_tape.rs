//! Resolves `last`: the newest tape with a call. Tapes that are being written come before all others.

use super::running;
use crate::cli::Global;
use crate::failure::Failure;
use signalbox_engine::record::{Query, TapeInfo, TapeStore};
use std::cmp::Reverse;
use std::collections::HashSet;

/// Name that means the newest tape.
const LAST: &str = "last";
/// Maximum number of tapes searched for a call.
const MOST: usize = 200;
/// Methods of requests, except lists and the handshake.
const CALLS: [&str; 5] = ["tools/call", "prompts/get", "resources/read", "completion/complete", "tasks/*"];

/// Finds a stored tape by id, or by `last`.
pub(super) fn find(global: &Global, store: &dyn TapeStore, name: &str) -> Result<TapeInfo, Failure> {
    if name != LAST {
        return Ok(store.tape(name)?);
    }
    // Use a separate thread: the query blocks on a runtime of its own, and callers may be inside one.
    let running = std::thread::scope(|scope| scope.spawn(|| running::tapes(global)).join());
    newest(store, &running.unwrap_or_else(|_| Ok(HashSet::new()))?)
}

/// Returns the newest tape with a call; tapes that are being written come first. Returns the newest tape if none has a
/// call.
pub(super) fn newest(store: &dyn TapeStore, running: &HashSet<String>) -> Result<TapeInfo, Failure> {
    let mut tapes: Vec<TapeInfo> = store.tapes()?.into_iter().map(|(tape, _)| tape).collect();
    tapes.sort_by_key(|tape| (Reverse(running.contains(&tape.id)), Reverse(tape.started)));
    for tape in tapes.into_iter().take(MOST) {
        let methods = CALLS.map(str::to_owned).to_vec();
        let query = Query { tape: Some(tape.id.clone()), methods, limit: Some(1), ..Query::default() };
        if !store.find(&query)?.hits.is_empty() {
            return Ok(tape);
        }
    }
    Ok(store.tape(LAST)?)
}
