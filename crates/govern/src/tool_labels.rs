//! Labels of tools, for backends as a whole and for the tools that patterns match.
//!
//! All patterns that match a tool apply. Categories and permissions are united, the lowest trust level wins, and so
//! does the last version. If no pattern gives a trust level, that of the backend applies.

use signalbox_engine::chain::EntryPattern;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::standing::TrustLevel;
pub use signalbox_engine::tool_label::{LabelSource, ToolLabel};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Label for the tools that a pattern matches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabelRule {
    pub pattern: EntryPattern,
    /// Categories of the tools.
    pub categories: Vec<Box<str>>,
    /// Trust level, if given.
    pub trust: Option<TrustLevel>,
    /// Permissions that a caller needs to call them.
    pub permissions: Vec<Box<str>>,
    pub version: Option<Box<str>>,
}

/// Label for all tools of a backend.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackendLabel {
    pub backend: Box<str>,
    /// Category of its tools.
    pub category: Option<Box<str>>,
    /// Trust level of its tools.
    pub trust: TrustLevel,
}

#[derive(Debug, Default)]
struct LabelTable {
    backends: Vec<BackendLabel>,
    rules: Vec<LabelRule>,
}

/// Labels of all tools. Shared by `Arc`, so that every holder sees a reload.
#[derive(Debug, Default)]
pub struct ToolLabels {
    table: Mutex<Arc<LabelTable>>,
    demands: AtomicBool,
}

impl ToolLabels {
    /// Creates the labels of backends, and of patterns in the order of the file.
    #[must_use]
    pub fn new(backends: Vec<BackendLabel>, rules: Vec<LabelRule>) -> Self {
        let labels = Self::default();
        labels.replace(backends, rules);
        labels
    }

    pub fn replace(&self, backends: Vec<BackendLabel>, rules: Vec<LabelRule>) {
        self.demands.store(rules.iter().any(|rule| !rule.permissions.is_empty()), Ordering::Relaxed);
        *self.table.lock().unpoisoned() = Arc::new(LabelTable { backends, rules });
    }

    /// Returns false if no tool requires a permission. One atomic load: it runs on every call.
    #[must_use]
    pub fn demand_permissions(&self) -> bool {
        self.demands.load(Ordering::Relaxed)
    }

    /// Returns the label of the tool that `backend` calls `name`.
    #[must_use]
    pub fn of(&self, backend: &str, name: &str) -> ToolLabel {
        let table = Arc::clone(&self.table.lock().unpoisoned());
        let whole = table.backends.iter().find(|label| &*label.backend == backend);
        let mut label = ToolLabel::default();
        add(&mut label.categories, whole.and_then(|whole| whole.category.as_ref()));
        let mut trust = None;
        for rule in table.rules.iter().filter(|rule| rule.pattern.fits_tool(backend, name)) {
            add(&mut label.categories, &rule.categories);
            add(&mut label.permissions, &rule.permissions);
            // The least trusted level is the greatest.
            trust = trust.max(rule.trust);
            label.version = rule.version.clone().or(label.version);
        }
        if let Some(trust) = trust.or(whole.map(|whole| whole.trust)) {
            label.trust = trust;
        }
        label
    }
}

impl LabelSource for ToolLabels {
    fn label(&self, backend: &str, name: &str) -> ToolLabel {
        self.of(backend, name)
    }
}

/// Adds the words that are not present yet.
fn add<'a>(to: &mut Vec<Box<str>>, more: impl IntoIterator<Item = &'a Box<str>>) {
    for one in more {
        if !to.contains(one) {
            to.push(one.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(pattern: &str, categories: &[&str], trust: Option<TrustLevel>, permissions: &[&str]) -> LabelRule {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).into()).collect();
        let (categories, permissions) = (texts(categories), texts(permissions));
        LabelRule { pattern: EntryPattern::new(pattern), categories, trust, permissions, version: None }
    }

    fn texts(of: &[Box<str>]) -> Vec<&str> {
        of.iter().map(|text| &**text).collect()
    }

    /// Proves G-17.
    #[test]
    fn all_patterns_that_fit_count_and_the_least_trust_holds() {
        let files = BackendLabel { backend: "files".into(), category: Some("disk".into()), trust: TrustLevel::System };
        let versioned = |version: &str, rule| LabelRule { version: Some(version.into()), ..rule };
        let rules = vec![
            versioned("1.0.0", rule("files", &["filesystem"], None, &["read:filesystem"])),
            rule("files/write_*", &["disk"], Some(TrustLevel::Untrusted), &["write:filesystem", "read:filesystem"]),
            versioned("2.0.0", rule("*/write_?", &["short"], Some(TrustLevel::Verified), &[])),
            rule("other", &["other"], Some(TrustLevel::Untrusted), &["never:used"]),
        ];
        let labels = ToolLabels::new(vec![files], rules);
        let written = labels.of("files", "write_a");
        assert_eq!(texts(&written.categories), ["disk", "filesystem", "short"]);
        assert_eq!(texts(&written.permissions), ["read:filesystem", "write:filesystem"]);
        assert_eq!((written.trust, written.version.as_deref()), (TrustLevel::Untrusted, Some("2.0.0")));
        let read = labels.of("files", "read");
        assert_eq!((read.trust, read.version.as_deref()), (TrustLevel::System, Some("1.0.0")), "as its backend");
        assert_eq!(labels.of("none", "read"), ToolLabel::default());
    }

    /// Proves G-17.
    #[test]
    fn a_qualified_name_is_meant_too_and_other_labels_are_taken_over() {
        let labels = ToolLabels::new(Vec::new(), vec![rule("files/files__read", &["a"], None, &["read:files"])]);
        assert!(labels.demand_permissions() && labels.of("files", "read").categories.len() == 1);
        labels.replace(Vec::new(), Vec::new());
        assert!(!labels.demand_permissions() && labels.of("files", "read") == ToolLabel::default());
    }
}
