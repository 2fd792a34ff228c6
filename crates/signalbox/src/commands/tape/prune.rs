//! `signalbox tape prune` and `tape delete`: remove recorded tapes.

use super::{config, last_tape, running, store};
use crate::cli::{Global, PruneArgs};
use crate::commands::administration;
use crate::failure::Failure;
use crate::output;
use serde_json::json;
use signalbox_assembly::recording::{StorePlace, unix_nanos};
use signalbox_assembly::seal_folder::SealFolder;
use signalbox_engine::record::{Retention, TapeStore};
use std::process::ExitCode;
use std::sync::Arc;

/// Deletes tapes and entries that are too old or exceed the size limit.
pub(super) fn run(global: &Global, args: &PruneArgs) -> Result<ExitCode, Failure> {
    let kept = config(global)?.record.retention;
    let said = args.older_than.is_some() || args.max_size.is_some();
    let retention = Retention {
        max_age: if said { args.older_than } else { kept.max_age },
        max_bytes: if said { args.max_size } else { kept.max_bytes },
        dry_run: args.dry_run,
    };
    let pruned = pruning_store(global, args.dry_run)?.prune(&retention, unix_nanos())?;
    if !args.dry_run {
        let after = json!({"tapes": pruned.tapes.len(), "entries": pruned.entries});
        administration::note(global, ("tape.prune", &pruned.tapes.join(", ")), None, Some(after));
    }
    if global.json {
        let all =
            json!({"tapes": pruned.tapes, "entries": pruned.entries, "bytes": pruned.bytes, "dry_run": args.dry_run});
        output::json(&all)?;
        return Ok(ExitCode::SUCCESS);
    }
    let done = if args.dry_run { "would be deleted" } else { "deleted" };
    let (tapes, entries, bytes) = (pruned.tapes.len(), pruned.entries, pruned.bytes);
    output::result(&format!("{tapes} tapes and {entries} entries {done}, about {bytes} bytes\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Opens the store with the key that signs checkpoints where sealed tapes lose their beginning.
fn pruning_store(global: &Global, dry_run: bool) -> Result<Arc<dyn TapeStore>, Failure> {
    let config = config(global)?;
    let store = store(global)?;
    if dry_run {
        return Ok(store);
    }
    let key = SealFolder::of(&config.data_dir).signing_key().map_err(|error| Failure::Refused(error.to_string()))?;
    Ok(StorePlace::of(&config.record, &config.data_dir).open_for(u64::MAX, Some(key))?)
}

/// Deletes one tape. Refuses a tape that is being written, unless `yes` is set.
pub(super) fn delete(global: &Global, tape: &str, yes: bool) -> Result<ExitCode, Failure> {
    let store = store(global)?;
    let tape = last_tape::find(global, &*store, tape)?;
    if !yes && tape.ended.is_none() && running::tapes(global)?.contains(&tape.id) {
        let id = &tape.id;
        let why = format!("tape {id} is being written; `signalbox tape delete {id} --yes` deletes it anyway");
        return Err(Failure::Refused(why));
    }
    store.remove(&tape.id)?;
    administration::note(global, ("tape.delete", &tape.id), None, None);
    output::result(&format!("deleted {}\n", tape.id))?;
    Ok(ExitCode::SUCCESS)
}
