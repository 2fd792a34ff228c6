//! Exchanges that are kept by a share of their own, independent of the general one.

use super::sampling::SamplingTrigger;
use crate::glob::Glob;

/// Rules that assign shares to exchanges. The first matching rule applies.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Priorities {
    /// Rules in the order of evaluation.
    pub rules: Vec<Priority>,
    /// Seed that determines which exchanges belong to a share.
    pub seed: u64,
    /// Trigger for further exchanges, if the sampling has none of its own.
    pub always: SamplingTrigger,
}

/// A rule that assigns a share.
#[derive(Clone, PartialEq, Debug)]
pub struct Priority {
    /// Methods that the rule applies to; empty for all.
    pub methods: Vec<Glob>,
    /// Tools, prompts and URIs that the rule applies to; empty for all.
    pub tools: Vec<Glob>,
    /// Share that is kept, from 0 to 1.
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
    /// Returns the share of the first rule that matches.
    pub(crate) fn share(&self, method: Option<&str>, tool: Option<&str>) -> Option<f64> {
        self.rules.iter().find(|rule| rule.fits(method, tool)).map(|rule| rule.share)
    }

    pub(crate) fn words(&self) -> Vec<String> {
        self.rules.iter().map(Priority::words).collect()
    }
}
