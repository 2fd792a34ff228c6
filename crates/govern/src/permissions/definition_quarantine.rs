//! Definitions of tools that wait for approval.

use super::switches::{Switch, SwitchOffReason, SwitchTarget};
use bytes::Bytes;
use signalbox_engine::catalog::{EntryRef, ListKind};
use signalbox_engine::chain::EntryPattern;
use std::collections::HashMap;
use std::sync::Arc;

/// Definition of a tool that may not be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuarantinedDefinition {
    /// The definition as it would be listed.
    pub definition: Bytes,
    /// Reason that a caller of the tool is told.
    pub reason: Arc<str>,
}

/// Quarantined definitions by backend and tool. A caller that is shown another definition of the same tool may use it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DefinitionQuarantine(HashMap<Box<str>, HashMap<Box<str>, Vec<QuarantinedDefinition>>>);

impl DefinitionQuarantine {
    /// Adds a definition of a backend's tool.
    pub fn add(&mut self, backend: &str, tool: &str, quarantined: QuarantinedDefinition) {
        let known = self.0.entry(backend.into()).or_default().entry(tool.into()).or_default();
        if !known.contains(&quarantined) {
            known.push(quarantined);
        }
    }

    /// Returns true if nothing is in quarantine.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns each tool with its backend and the reason, in order.
    #[must_use]
    pub fn tools(&self) -> Vec<(&str, &str, &str)> {
        let mut all = Vec::new();
        for (backend, tools) in &self.0 {
            for (tool, definitions) in tools {
                all.extend(definitions.iter().map(|one| (&**backend, &**tool, &*one.reason)));
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns the quarantine that an entry is in.
    #[must_use]
    pub fn of_entry(&self, entry: &EntryRef<'_>) -> Option<Switch> {
        if self.0.is_empty() || entry.kind != ListKind::Tools {
            return None;
        }
        let known = self.0.get(entry.backend)?.get(entry.name)?;
        let found = known.iter().find(|one| Some(&*one.definition) == entry.definition)?;
        let target = SwitchTarget::Entries(EntryPattern::new(&format!("{}/{}", entry.backend, entry.name)));
        Some(Switch { target, off: SwitchOffReason::Quarantined, reason: Arc::clone(&found.reason) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_quarantined_definition_of_a_tool_is_off() {
        let mut quarantine = DefinitionQuarantine::default();
        let definition = Bytes::from_static(br#"{"name":"a","description":"new"}"#);
        quarantine.add(
            "files",
            "a",
            QuarantinedDefinition { definition: definition.clone(), reason: "changed".into() },
        );
        let off = |kind, backend, name, definition| {
            quarantine.of_entry(&EntryRef { kind, backend, name, definition }).map(|switch| switch.off)
        };
        assert_eq!(off(ListKind::Tools, "files", "a", Some(&definition)), Some(SwitchOffReason::Quarantined));
        assert_eq!(off(ListKind::Tools, "files", "a", Some(br#"{"name":"a"}"#)), None);
        assert_eq!(off(ListKind::Tools, "other", "a", Some(&definition)), None);
        assert_eq!(off(ListKind::Prompts, "files", "a", Some(&definition)), None);
        assert_eq!(quarantine.tools(), [("files", "a", "changed")]);
    }
}
