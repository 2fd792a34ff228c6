//! Inspects what backends list, quarantines tools that need approval, and reports what the guard finds.

use crate::admin_files::owner_of_newest;
use crate::auditing::Auditing;
use crate::pin_book::PinBook;
use signalbox_audit::{AdminAction, AdminOrigin, AdminOutcome, DefinitionChange};
use signalbox_engine::catalog::{ListInspector, View, ViewKey};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_govern::Permissions;
use signalbox_govern::permissions::{DefinitionQuarantine, QuarantinedDefinition};
use signalbox_guard::pins::{PinAction, PinFinding};
use signalbox_guard::{DefinitionAction, DefinitionFinding, Guard};
use signalbox_runtime::Gateway;
use signalbox_wire::printable;
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Maximum number of findings that are remembered as logged. Beyond it, findings are logged again.
const MAX_LOGGED: usize = 10_000;

/// Maximum number of characters of a name in the log.
const MAX_SHOWN: usize = 200;

/// Maximum number of lines of a difference in the log.
const MAX_LINES: usize = 3;

/// Inspector of the lists of a gateway. Clones share its state.
#[derive(Clone)]
pub(crate) struct ListGuard(Arc<ListGuardParts>);

struct ListGuardParts {
    guard: Guard,
    pins: Arc<PinBook>,
    permissions: Arc<Permissions>,
    audit: Option<Arc<Auditing>>,
    /// Backends that are part of the program, whose definitions change with it.
    own_backends: HashSet<String>,
    /// Findings that were logged. Lists are read again and again, for each kind of client.
    logged: Mutex<HashSet<LoggedFinding>>,
    quarantine: Mutex<QuarantineState>,
}

/// Quarantined definitions of all backends.
#[derive(Default)]
struct QuarantineState {
    current: DefinitionQuarantine,
    /// Definitions found since [`ListGuard::renew`] began to inspect all lists anew; `None` while it does not run.
    renewed: Option<DefinitionQuarantine>,
}

/// Finding that was logged: backend, entry, and the words about it.
#[derive(PartialEq, Eq, Hash)]
struct LoggedFinding {
    backend: Box<str>,
    entry: Box<str>,
    what: String,
}

impl ListGuard {
    /// Creates an inspector. Definitions of `own_backends` are not compared with approved ones.
    pub(crate) fn new(
        guard: &Guard,
        pins: &Arc<PinBook>,
        permissions: &Arc<Permissions>,
        audit: Option<&Arc<Auditing>>,
        own_backends: HashSet<String>,
    ) -> Self {
        Self(Arc::new(ListGuardParts {
            guard: guard.clone(),
            pins: Arc::clone(pins),
            permissions: Arc::clone(permissions),
            audit: audit.cloned(),
            own_backends,
            logged: Mutex::default(),
            quarantine: Mutex::default(),
        }))
    }

    /// Inspects all lists of the gateway anew, releases the definitions that are approved now, and tells clients whose
    /// lists change by that.
    pub(crate) fn renew(&self, gateway: &Gateway) {
        self.0.quarantine.lock().unpoisoned().renewed = Some(DefinitionQuarantine::default());
        gateway.inspect_lists_again();
        let mut state = self.0.quarantine.lock().unpoisoned();
        if let Some(renewed) = state.renewed.take() {
            state.current = renewed;
        }
        let is_changed = self.0.permissions.set_quarantine(state.current.clone());
        drop(state);
        if is_changed {
            gateway.visibility_changed();
        }
    }

    /// Records that other definitions are approved now, by the owner of the lock file.
    pub(crate) fn note_approvals(&self, lock: &Path) {
        if let Some(audit) = &self.0.audit {
            audit.administer(&AdminAction {
                who: &owner_of_newest([lock]),
                address: None,
                origin: AdminOrigin::File,
                action: "tool.approvals",
                target: &lock.display().to_string(),
                before: None,
                after: None,
                outcome: AdminOutcome::Done,
            });
        }
    }
}

impl ListGuardParts {
    /// Quarantines the tools of a view that need approval.
    fn quarantine(&self, backend: &str, view: &View, findings: &[PinFinding]) {
        let quarantined = findings.iter().filter(|finding| finding.action == PinAction::Quarantined);
        let mut state = self.quarantine.lock().unpoisoned();
        let mut is_changed = false;
        for finding in quarantined {
            let item = finding.tool.as_deref().and_then(|tool| view.tools.named(tool));
            let Some(item) = item else { continue };
            let reason = format!("its definition is {} and waits for approval", finding.what).into();
            let one = QuarantinedDefinition { definition: item.raw.clone(), reason };
            state.renewed.iter_mut().for_each(|renewed| renewed.add(backend, &item.key, one.clone()));
            state.current.add(backend, &item.key, one);
            is_changed = true;
        }
        if is_changed {
            // The lists change right after this, which clients are told of.
            self.permissions.set_quarantine(state.current.clone());
        }
    }

    /// Returns true if this was not logged before.
    fn is_news(&self, backend: &str, entry: &str, what: &str) -> bool {
        let entry = printable::beginning(entry, MAX_SHOWN).into();
        let mut logged = self.logged.lock().unpoisoned();
        if logged.len() >= MAX_LOGGED {
            logged.clear();
        }
        logged.insert(LoggedFinding { backend: backend.into(), entry, what: what.to_owned() })
    }

    fn log(&self, backend: &str, finding: &DefinitionFinding) {
        if !self.is_news(backend, &finding.entry, &finding.what) {
            return;
        }
        let action = match finding.action {
            DefinitionAction::Reported => "it is listed as it was sent",
            DefinitionAction::Cleaned => "it is listed without that",
            DefinitionAction::LeftOut => "it is not listed",
        };
        let list = finding.kind.map_or("instructions", signalbox_engine::catalog::ListKind::member);
        let entry = printable::beginning(&finding.entry, MAX_SHOWN);
        tracing::warn!(backend, list, entry, found = %finding.what, "the guard found something in a definition; {action}");
    }

    fn log_change(&self, backend: &str, finding: &PinFinding) {
        let entry = finding.tool.as_deref().unwrap_or("(instructions)");
        let shown = finding.lines.iter().take(MAX_LINES).map(String::as_str).collect::<Vec<_>>().join("; ");
        let is_quarantined = finding.action == PinAction::Quarantined;
        let key = format!("{is_quarantined} {} {}", finding.what, finding.lines.join("; "));
        if !self.is_news(backend, entry, &key) {
            return;
        }
        let action = match (is_quarantined, &finding.tool) {
            (true, Some(_)) => "it is in quarantine until it is approved: see `signalbox tools diff`",
            (true, None) => "they are not shown until they are approved: see `signalbox tools diff`",
            (false, _) => "it is shown all the same",
        };
        let tool = printable::beginning(entry, MAX_SHOWN);
        tracing::warn!(backend, tool, change = finding.what, diff = %shown, "a definition differs from the approved one; {action}");
        if let Some(audit) = &self.audit {
            let (what, lines) = (finding.what, &finding.lines);
            audit.note_definition(&DefinitionChange { backend, tool: entry, what, lines, is_quarantined });
        }
    }
}

impl ListInspector for ListGuard {
    fn inspect(&self, backend: &str, key: &ViewKey, view: View) -> View {
        let pinned = (!self.0.own_backends.contains(backend)).then(|| self.0.pins.of(backend, key));
        let inspected = self.0.guard.inspect_lists(backend, view, pinned.as_ref().map(|pinned| pinned.backend()));
        inspected.findings.iter().for_each(|finding| self.0.log(backend, finding));
        inspected.pin_findings.iter().for_each(|finding| self.0.log_change(backend, finding));
        self.0.quarantine(backend, &inspected.view, &inspected.pin_findings);
        if inspected.learns {
            self.0.pins.learn(backend, key, &inspected.learned, inspected.learned_instructions.as_deref());
        }
        inspected.view
    }
}
