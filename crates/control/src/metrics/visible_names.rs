//! Names of tools and backends that the reader of a page may know.

use signalbox_assembly::assemble::App;
use signalbox_engine::catalog::{EntryRef, ListKind, Snapshot, Visibility as _};
use signalbox_engine::tool_metrics::OTHER;
use signalbox_engine::{BackendUser, Caller};
use signalbox_govern::Permissions;
use std::sync::Arc;

/// Names that a page may show. Samples with other names are left out of it.
#[derive(Clone, Default)]
pub enum VisibleNames {
    #[default]
    All,
    /// Names that this caller sees in lists, or may learn of when it calls.
    Of(Box<CallerNames>),
}

/// Names that a caller whom permissions restrict may know.
#[derive(Clone)]
pub struct CallerNames {
    caller: Caller,
    permissions: Arc<Permissions>,
    catalog: Arc<Snapshot>,
}

impl VisibleNames {
    /// Returns the names for this caller: all of them, unless permissions are configured.
    #[must_use]
    pub fn of(app: &App, caller: &Caller) -> Self {
        let permissions = &app.govern.permissions;
        if permissions.is_open() {
            return Self::All;
        }
        let (caller, permissions) = (caller.clone(), Arc::clone(permissions));
        Self::Of(Box::new(CallerNames { caller, permissions, catalog: Arc::clone(&app.gateway.catalog.snapshot()) }))
    }

    /// Returns `true` if this backend may be named.
    #[must_use]
    pub fn shows_backend(&self, backend: &str) -> bool {
        match self {
            Self::All => true,
            Self::Of(of) => of.permissions.reveals_backend(&of.caller, backend),
        }
    }

    /// Returns `true` if the labels of a sample name only what may be named.
    pub(super) fn show(&self, labels: &[(&str, &str)]) -> bool {
        let Self::Of(of) = self else { return true };
        labels.iter().all(|(label, value)| match *label {
            // Requests that reached no backend have an empty name.
            "backend" => value.is_empty() || self.shows_backend(value),
            "tool_id" | "tool" => *value == OTHER || of.shows_tool(value),
            _ => true,
        })
    }
}

impl CallerNames {
    fn shows_tool(&self, qualified: &str) -> bool {
        let Some((backend, name)) = ListKind::Tools.style().divide(qualified) else { return false };
        let whose = BackendUser::of(self.caller.principal().clone(), &self.caller);
        let Some(definition) = self.catalog.own_definition(&name, backend, &whose) else { return false };
        let entry = EntryRef { kind: ListKind::Tools, backend, name: &name, definition: Some(definition) };
        self.permissions.reveals_backend(&self.caller, backend) && self.permissions.reveals(&self.caller, &entry)
    }
}
