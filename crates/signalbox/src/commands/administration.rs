//! Audit records of commands that change files of a data folder. The commands write these themselves: no gateway need
//! run, and a running one cannot know who changed a file.

use super::{load, processes};
use crate::cli::Global;
use crate::failure::Failure;
use crate::output;
use serde_json::Value;
use signalbox_assembly::auditing::Auditing;
use signalbox_audit::{AdminAction, AdminOrigin, AdminOutcome};
use signalbox_config::Overrides;
use std::process::ExitCode;

/// Records what a command did, or that it failed.
pub(super) fn note_done(
    global: &Global,
    done: Result<ExitCode, Failure>,
    action: (&str, &str),
    after: Option<Value>,
) -> Result<ExitCode, Failure> {
    if done.is_ok() {
        note(global, action, None, after);
    }
    tried(global, action, done)
}

/// Records a failed attempt. On success the command writes its own record.
pub(super) fn tried<T>(global: &Global, action: (&str, &str), done: Result<T, Failure>) -> Result<T, Failure> {
    if let Err(failure) = &done {
        write(global, action, None, None, AdminOutcome::Failed(&failure.to_string()));
    }
    done
}

/// Records a failure that occurred before a running process was asked. A process that was asked writes its own record.
pub(super) fn tried_alone<T>(global: &Global, action: (&str, &str), done: Result<T, Failure>) -> Result<T, Failure> {
    match &done {
        Err(Failure::NothingRuns(_) | Failure::NothingHeld | Failure::Usage(_)) => tried(global, action, done),
        _ => done,
    }
}

/// Records that a command found nothing to act on.
pub(super) fn note_nothing_done(global: &Global, action: (&str, &str), why: &str) {
    write(global, action, None, None, AdminOutcome::Failed(why));
}

/// Records what a command did. Without a readable configuration there is no audit log to write to. A failed write is
/// reported, and does not undo the command.
pub(super) fn note(global: &Global, action: (&str, &str), before: Option<Value>, after: Option<Value>) {
    write(global, action, before.as_ref(), after.as_ref(), AdminOutcome::Done);
}

fn write(
    global: &Global,
    action: (&str, &str),
    before: Option<&Value>,
    after: Option<&Value>,
    outcome: AdminOutcome<'_>,
) {
    let (action, target) = action;
    let Ok(loaded) = load(global, Overrides::default()) else { return };
    if loaded.config.audit.is_none() {
        return;
    }
    let who = processes::user()
        .map_or_else(|| format!("uid:{}", rustix::process::getuid().as_raw()), |user| format!("local:{user}"));
    // Sinks own threads and runtimes, which must not be created or dropped on a thread of another runtime.
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
                    before,
                    after,
                    outcome,
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
