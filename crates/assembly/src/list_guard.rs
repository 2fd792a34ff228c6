//! Inspects what backends list, and logs what the guard finds.

use signalbox_engine::catalog::{ListInspector, View, ViewKey};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_guard::{DefinitionAction, DefinitionFinding, Guard};
use std::collections::HashSet;
use std::sync::Mutex;

/// Maximum number of findings that are remembered as logged. Beyond it, findings are logged again.
const MAX_LOGGED: usize = 10_000;

/// Inspector of the lists of a gateway.
pub(crate) struct ListGuard {
    guard: Guard,
    /// Findings that were logged. Lists are read again and again, for each kind of client.
    logged: Mutex<HashSet<LoggedFinding>>,
}

/// Finding that was logged: backend, entry, and the words about it.
#[derive(PartialEq, Eq, Hash)]
struct LoggedFinding {
    backend: Box<str>,
    entry: Box<str>,
    what: String,
}

impl ListGuard {
    /// Creates an inspector that asks this guard.
    pub(crate) fn new(guard: &Guard) -> Self {
        Self { guard: guard.clone(), logged: Mutex::default() }
    }

    fn log(&self, backend: &str, finding: DefinitionFinding) {
        let key = LoggedFinding { backend: backend.into(), entry: finding.entry.clone(), what: finding.what.clone() };
        {
            let mut logged = self.logged.lock().unpoisoned();
            if logged.len() >= MAX_LOGGED {
                logged.clear();
            }
            if !logged.insert(key) {
                return;
            }
        }
        let action = match finding.action {
            DefinitionAction::Reported => "it is listed as it was sent",
            DefinitionAction::Cleaned => "it is listed without that",
            DefinitionAction::LeftOut => "it is not listed",
        };
        let list = finding.kind.map_or("instructions", signalbox_engine::catalog::ListKind::member);
        tracing::warn!(backend, list, entry = %finding.entry, found = %finding.what, "the guard found something in a definition; {action}");
    }
}

impl ListInspector for ListGuard {
    fn inspect(&self, backend: &str, _: &ViewKey, view: View) -> View {
        let inspected = self.guard.inspect_lists(backend, view);
        for finding in inspected.findings {
            self.log(backend, finding);
        }
        inspected.view
    }
}
