//! Tapes that running processes write.

use crate::cli::{Global, Which};
use crate::commands::processes;
use crate::failure::Failure;
use http::Method;
use signalbox_control::api::routes::STATUS;
use std::collections::HashSet;

/// Returns the ids of the tapes that processes of this data folder are writing. Skips processes that do not answer.
pub(super) fn tapes(global: &Global) -> Result<HashSet<String>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::Start)?;
    let mut tapes = HashSet::new();
    for process in processes::any(global, &Which::default())? {
        let status = runtime.block_on(process.send(Method::GET, STATUS, None));
        let tape = status.ok().and_then(|status| status["recording"]["tape"].as_str().map(str::to_owned));
        tapes.extend(tape);
    }
    Ok(tapes)
}
