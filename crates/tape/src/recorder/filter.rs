//! Selection of the exchanges to record, by method, tool, backend and principal.

use crate::glob::Glob;

/// Names to include and to exclude. An empty list of included names includes all.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Filter {
    pub methods: Choice,
    /// Choice by tool, prompt or URI.
    pub tools: Choice,
    pub backends: Choice,
    pub principals: Choice,
}

/// Included and excluded names of one kind. Exclusion takes precedence.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Choice {
    /// Patterns of included names; empty to include all.
    pub include: Vec<Glob>,
    /// Patterns of excluded names.
    pub exclude: Vec<Glob>,
}

impl Choice {
    /// Returns true if every name is included.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }

    /// Returns true if this name is included. A missing name matches no pattern.
    #[must_use]
    pub fn wants(&self, name: Option<&str>) -> bool {
        let among = |list: &[Glob]| name.is_some_and(|name| list.iter().any(|glob| glob.matches(name)));
        (self.include.is_empty() || among(&self.include)) && !among(&self.exclude)
    }
}

impl Filter {
    /// Returns true if everything is included.
    #[must_use]
    pub fn is_all(&self) -> bool {
        [&self.methods, &self.tools, &self.backends, &self.principals].iter().all(|choice| choice.is_all())
    }

    /// Returns true if the properties known from the first message on are included.
    pub(crate) fn wants_start(&self, method: Option<&str>, tool: Option<&str>, principal: &str) -> bool {
        self.methods.wants(method) && self.tools.wants(tool) && self.principals.wants(Some(principal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves S-33.
    #[test]
    fn names_are_included_and_excluded() {
        let globs = |list: &[&str]| list.iter().map(|text| Glob::new(text)).collect::<Vec<_>>();
        let choice = Choice { include: globs(&["tools/*"]), exclude: globs(&["tools/list"]) };
        assert!(choice.wants(Some("tools/call")));
        assert!(!choice.wants(Some("tools/list")) && !choice.wants(Some("ping")) && !choice.wants(None));
        let filter = Filter { principals: Choice { include: vec![], exclude: globs(&["bot*"]) }, ..Filter::default() };
        assert!(filter.wants_start(Some("x"), None, "ann") && !filter.wants_start(Some("x"), None, "bot-7"));
        assert!(!filter.is_all() && Filter::default().is_all());
    }
}
