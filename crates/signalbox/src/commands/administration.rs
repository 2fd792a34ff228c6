//! What commands change in the files of a data folder is written to the audit log of the configuration, by the command itself: no
//! gateway need run, and one that does is told by nobody who changed the file.

use super::{load, processes};
use crate::cli::Global;
use crate::failure::Failure;
use crate::output;
use serde_json::Value;
use signalbox_assembly::auditing::Auditing;
use signalbox_audit::{AdminAction, AdminOrigin, AdminOutcome};
use signalbox_config::Overrides;
use std::process::ExitCode;

/// Writes down what a command did, if it did not fail.
pub(super) fn note_done(
    global: &Global,
    done: Result<ExitCode, Failure>,
    action: (&str, &str),
    after: Option<Value>,
) -> Result<ExitCode, Failure> {
    if done.is_ok() {
        note(global, action, None, after);
    }
    done
}

/// Writes down what a command did. A configuration that cannot be read names no audit log; one that cannot be written is told,
/// and does not undo what was done.
pub(super) fn note(global: &Global, (action, target): (&str, &str), before: Option<Value>, after: Option<Value>) {
    let Ok(loaded) = load(global, Overrides::default()) else { return };
    if loaded.config.audit.is_none() {
        return;
    }
    let who = processes::user()
        .map_or_else(|| format!("uid:{}", rustix::process::getuid().as_raw()), |user| format!("local:{user}"));
    // Threads and runtimes of sinks must not be made, or ended, on a thread of another runtime.
    let written = std::thread::scope(|threads| {
        let write = || {
            Auditing::write_alone(
                &loaded.config,
                &AdminAction {
                    who: &who,
                    address: None,
                    origin: AdminOrigin::Cli,
                    action,
                    target,
                    before: before.as_ref(),
                    after: after.as_ref(),
                    outcome: AdminOutcome::Done,
                },
            )
        };
        threads.spawn(write).join()
    });
    match written {
        Ok(Ok(())) => {}
        Ok(Err(error)) => output::complain(format_args!("this is not in the audit log: {error}")),
        Err(_) => output::complain(format_args!("this is not in the audit log")),
    }
}
