//! Exchanges that are kept by a share of their own, whatever the share of the others is.

use super::sampling::Trigger;
use crate::glob::Glob;

/// Which exchanges have a share of their own. The first rule that matches counts.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Priorities {
    /// The rules, in their order.
    pub rules: Vec<Priority>,
    /// Sets which exchanges belong to a share.
    pub seed: u64,
    /// What is kept besides, where the sampling does not say.
    pub always: Trigger,
}

/// One of them.
#[derive(Clone, PartialEq, Debug)]
pub struct Priority {
    /// For these methods; for all if there are none.
    pub methods: Vec<Glob>,
    /// For these tools, prompts and URIs; for all if there are none.
    pub tools: Vec<Glob>,
    /// The share that is kept, from 0 to 1.
    pub share: f64,
}

impl Priority {
    fn fits(&self, method: Option<&str>, tool: Option<&str>) -> bool {
        let among = |list: &[Glob], name: Option<&str>| {
            list.is_empty() || name.is_some_and(|name| list.iter().any(|glob| glob.matches(name)))
        };
        among(&self.methods, method) && among(&self.tools, tool)
    }

    fn words(&self) -> String {
        let names = |list: &[Glob]| list.iter().map(|glob| glob.as_str().to_owned()).collect::<Vec<_>>().join(", ");
        let what = match (self.methods.is_empty(), self.tools.is_empty()) {
            (true, true) => "everything".to_owned(),
            (false, true) => names(&self.methods),
            (true, false) => names(&self.tools),
            (false, false) => format!("{} of {}", names(&self.methods), names(&self.tools)),
        };
        format!("{what}: share {}", self.share)
    }
}

impl Priorities {
    /// The share of an exchange that a rule matches.
    pub(crate) fn share(&self, method: Option<&str>, tool: Option<&str>) -> Option<f64> {
        self.rules.iter().find(|rule| rule.fits(method, tool)).map(|rule| rule.share)
    }

    pub(crate) fn words(&self) -> Vec<String> {
        self.rules.iter().map(Priority::words).collect()
    }
}
