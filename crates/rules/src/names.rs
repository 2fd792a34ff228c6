//! Checks the names in rules against the existing ones.

use crate::action::Action;
use crate::condition::Leaf;
use crate::error::RuleWarning;
use crate::rule::Rule;
use signalbox_wire::glob::{self, Wildcards};

/// Names of existing backends and tools.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct KnownNames {
    pub backends: Vec<String>,
    /// Tools by their backend's name and by their qualified name. `None` until all lists are known.
    pub tools: Option<Vec<String>>,
}

impl KnownNames {
    fn has_backend(&self, pattern: &str) -> bool {
        self.backends.iter().any(|name| glob::fits(pattern, name, Wildcards::StarAndQuestion))
    }

    fn has_tool(&self, pattern: &str) -> bool {
        let Some(tools) = &self.tools else { return true };
        tools.iter().any(|name| glob::fits(pattern, name, Wildcards::StarAndQuestion))
    }
}

/// Returns a warning for each unknown name in enabled rules.
pub(crate) fn unknown(rules: &[Rule], known: &KnownNames) -> Vec<RuleWarning> {
    let mut out = Vec::new();
    for rule in rules.iter().filter(|rule| rule.enabled) {
        let mut warn = |text: String| {
            out.push(RuleWarning { place: rule.place.clone(), rule: rule.id.to_string(), text });
        };
        let mut leaves = Vec::new();
        rule.when.leaves(&mut leaves);
        for leaf in leaves {
            match leaf {
                Leaf::Backend(globs) => globs.0.iter().filter(|one| !known.has_backend(one)).for_each(|one| {
                    warn(format!("no backend is called `{one}`; there are {}", list_names(&known.backends)));
                }),
                Leaf::Tool(tools) => tools.texts().filter(|one| !known.has_tool(one)).for_each(|one| {
                    warn(format!("no backend has listed a tool `{one}`; see `signalbox tools list`"));
                }),
                _ => {}
            }
        }
        for action in &rule.then {
            if let Action::Fork { backend } = action
                && !known.backends.iter().any(|name| **name == **backend)
            {
                warn(format!(
                    "forks to `{backend}`, which is not a backend; there are {}",
                    list_names(&known.backends)
                ));
            }
        }
    }
    out
}

fn list_names(names: &[String]) -> String {
    const MOST: usize = 10;
    let some: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    match names.len() {
        0 => "none".to_owned(),
        all if all > MOST => format!("{} and {} more", some.join(", "), all - MOST),
        _ => some.join(", "),
    }
}
