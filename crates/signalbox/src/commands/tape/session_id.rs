//! Finds a session by the id that its client was given.

use super::config;
use super::named_tape::NamedTape;
use crate::cli::Global;
use crate::failure::Failure;
use signalbox_assembly::recording::session_hash;

/// Returns the tape and the number of the session, the newest if several have the id. Tapes store a keyed hash of the
/// id, older ones the id itself.
pub(super) fn find(global: &Global, named: &NamedTape, id: &str) -> Result<(String, u64), Failure> {
    let hash = session_hash(&config(global)?.data_dir).map_err(Failure::Start)?.of(id);
    for tape in named.tapes()?.iter().rev() {
        let known = |external: &Option<String>| external.as_ref().is_some_and(|known| *known == hash || known == id);
        let found = named.store.sessions(&tape.id)?.into_iter().rev().find(|(_, session)| known(&session.external));
        if let Some((number, _)) = found {
            return Ok((tape.id.clone(), number));
        }
    }
    Err(Failure::Usage("no session of these tapes has this id".to_owned()))
}
