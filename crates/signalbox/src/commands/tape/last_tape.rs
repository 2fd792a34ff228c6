//! The tape that `last` means: the newest one with a call, of those that are being written before all others.

use super::running;
use crate::cli::Global;
use crate::failure::Failure;
use signalbox_engine::record::{Query, TapeInfo, TapeStore};
use std::cmp::Reverse;
use std::collections::HashSet;

/// The word for it.
const LAST: &str = "last";
/// Most tapes that are looked at for a call.
const MOST: usize = 200;
/// Methods of requests other than lists and the handshake.
const CALLS: [&str; 5] = ["tools/call", "prompts/get", "resources/read", "completion/complete", "tasks/*"];

/// Finds a tape of the store by what the user calls it.
pub(super) fn find(global: &Global, store: &dyn TapeStore, name: &str) -> Result<TapeInfo, Failure> {
    if name != LAST {
        return Ok(store.tape(name)?);
    }
    // In a thread of its own, because it waits for processes and commands may call this within a runtime.
    let running = std::thread::scope(|scope| scope.spawn(|| running::tapes(global)).join());
    newest(store, &running.unwrap_or_else(|_| Ok(HashSet::new()))?)
}

/// The newest tape with a call, of those that are being written before all others; the newest if none has a call.
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
