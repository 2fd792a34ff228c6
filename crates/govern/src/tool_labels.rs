//! The labels of tools: what the configuration says of a backend as a whole, and of the tools that patterns fit.
//!
//! All patterns that fit a tool count. Categories and permissions are united; the least of the trust levels holds; of versions the
//! last. Where no pattern says how far a tool is trusted, it is trusted as far as its backend.

use signalbox_engine::chain::SubjectPattern;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::standing::TrustLevel;
pub use signalbox_engine::tool_label::{LabelSource, ToolLabel};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// What the tools that a pattern fits are labelled with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabelRule {
    /// Which tools.
    pub pattern: SubjectPattern,
    /// What kinds of tool they are.
    pub categories: Vec<Box<str>>,
    /// How far they are trusted, if that is said.
    pub trust: Option<TrustLevel>,
    /// What a caller needs to be permitted to call them.
    pub permissions: Vec<Box<str>>,
    /// Their version, if that is said.
    pub version: Option<Box<str>>,
}

/// What is said of a backend as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackendLabel {
    /// Which one.
    pub backend: Box<str>,
    /// What kind of tools it has.
    pub category: Option<Box<str>>,
    /// How far they are trusted.
    pub trust: TrustLevel,
}

#[derive(Debug, Default)]
struct Kept {
    backends: Vec<BackendLabel>,
    rules: Vec<LabelRule>,
}

/// The labels of all tools. Clones of the `Arc` that holds it see what a reload changes.
#[derive(Debug, Default)]
pub struct ToolLabels {
    kept: Mutex<Arc<Kept>>,
    demands: AtomicBool,
}

impl ToolLabels {
    /// The labels that are configured: of backends, and of patterns in the order of the file.
    #[must_use]
    pub fn new(backends: Vec<BackendLabel>, rules: Vec<LabelRule>) -> Self {
        let labels = Self::default();
        labels.replace(backends, rules);
        labels
    }

    /// Takes over other labels.
    pub fn replace(&self, backends: Vec<BackendLabel>, rules: Vec<LabelRule>) {
        self.demands.store(rules.iter().any(|rule| !rule.permissions.is_empty()), Ordering::Relaxed);
        *self.kept.lock().unpoisoned() = Arc::new(Kept { backends, rules });
    }

    /// False while no tool needs any permission: one atomic load, for whoever asks about every call.
    #[must_use]
    pub fn demand_permissions(&self) -> bool {
        self.demands.load(Ordering::Relaxed)
    }

    /// The label of the tool that `backend` calls `name`.
    #[must_use]
    pub fn of(&self, backend: &str, name: &str) -> ToolLabel {
        let kept = Arc::clone(&self.kept.lock().unpoisoned());
        let whole = kept.backends.iter().find(|label| &*label.backend == backend);
        let mut label = ToolLabel::default();
        add(&mut label.categories, whole.and_then(|whole| whole.category.as_ref()));
        let mut trust = None;
        for rule in kept.rules.iter().filter(|rule| rule.pattern.fits_tool(backend, name)) {
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

/// Adds what is not there yet.
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
        LabelRule { pattern: SubjectPattern::new(pattern), categories, trust, permissions, version: None }
    }

    fn texts(of: &[Box<str>]) -> Vec<&str> {
        of.iter().map(|text| &**text).collect()
    }

    #[test]
    fn g_17_all_patterns_that_fit_count_and_the_least_trust_holds() {
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

    #[test]
    fn g_17_a_qualified_name_is_meant_too_and_other_labels_are_taken_over() {
        let labels = ToolLabels::new(Vec::new(), vec![rule("files/files__read", &["a"], None, &["read:files"])]);
        assert!(labels.demand_permissions() && labels.of("files", "read").categories.len() == 1);
        labels.replace(Vec::new(), Vec::new());
        assert!(!labels.demand_permissions() && labels.of("files", "read") == ToolLabel::default());
    }
}
