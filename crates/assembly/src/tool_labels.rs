//! Labels of tools, from the configuration.

use crate::assemble::{DEMO, uses_demo};
use signalbox_config::{BackendConfig, Config, ToolLabelRule};
use signalbox_engine::chain::EntryPattern;
use signalbox_engine::standing::TrustLevel;
use signalbox_govern::ToolLabels;
use signalbox_govern::tool_labels::{BackendLabel, LabelRule};

/// Labels of the demo tools (GO-1): name, categories, and the permissions that a call needs.
const DEMO_TOOLS: [(&str, &[&str], &[&str]); 3] = [
    ("demo/directory_list", &["filesystem", "utility", "navigation"], &["read:filesystem"]),
    ("demo/echo", &["utility"], &[]),
    ("demo/countdown", &["utility"], &[]),
];

/// Returns the labels of a configuration.
pub(crate) fn of(config: &Config) -> ToolLabels {
    ToolLabels::new(backends(config), rules(config))
}

/// Takes over the labels of the next configuration.
pub(crate) fn take_over(labels: &ToolLabels, next: &Config) {
    labels.replace(backends(next), rules(next));
}

fn backends(config: &Config) -> Vec<BackendLabel> {
    let label = |backend: &BackendConfig| BackendLabel {
        backend: backend.name.as_str().into(),
        category: backend.category.as_deref().map(Into::into),
        trust: backend.trust_level,
    };
    config.backends.iter().map(label).collect()
}

fn rules(config: &Config) -> Vec<LabelRule> {
    let texts = |texts: &[String]| texts.iter().map(|text| text.as_str().into()).collect();
    let rule = |rule: &ToolLabelRule| LabelRule {
        pattern: EntryPattern::new(&rule.pattern),
        categories: texts(&rule.categories),
        trust: rule.trust,
        permissions: texts(&rule.permissions),
        version: rule.version.as_deref().map(Into::into),
    };
    let own = DEMO_TOOLS.iter().filter(|_| uses_demo(config)).map(demo_rule);
    own.chain(config.tool_labels.iter().map(rule)).collect()
}

fn demo_rule((pattern, categories, permissions): &(&str, &[&str], &[&str])) -> LabelRule {
    debug_assert!(pattern.starts_with(DEMO), "these are the labels of the demo tools");
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).into()).collect();
    LabelRule {
        pattern: EntryPattern::new(pattern),
        categories: texts(categories),
        trust: Some(TrustLevel::Verified),
        permissions: texts(permissions),
        version: Some("1.0.0".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_config::Overrides;
    use std::path::Path;

    fn labels(text: &str) -> ToolLabels {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        of(&Config::parse(Path::new("signalbox.toml"), text, &env, &Overrides::default()).unwrap().config)
    }

    /// The demo tools have theirs while they are there; a file may say more of them.
    /// Proves G-4 and GO-1.
    #[test]
    fn labels_come_from_backends_and_patterns_and_the_demo_has_its_own() {
        let demo = labels("[tools.demo]\nversion = '2.0.0'\ntrust_level = 'system'\n").of(DEMO, "directory_list");
        assert_eq!((demo.trust, demo.version.as_deref()), (TrustLevel::Verified, Some("2.0.0")));
        assert_eq!(demo.permissions.join(" "), "read:filesystem");
        let file = "[backends.demo]\ncommand = 'x'\ncategory = 'mine'\ntrust_level = 'untrusted'\n\
                    [tools.'*/directory_*']\ncategories = ['lists']\n";
        let own = labels(file).of(DEMO, "directory_list");
        assert_eq!((own.trust, own.categories.join(" ")), (TrustLevel::Untrusted, "mine lists".to_owned()));
    }
}
