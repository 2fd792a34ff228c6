//! Which exchanges are recorded at all, by method, tool, backend and principal.

use crate::glob::Glob;

/// What is wanted and what is not, by names. An empty list of wanted names wants all.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Filter {
    /// By method.
    pub methods: Choice,
    /// By tool, prompt or URI.
    pub tools: Choice,
    /// By backend.
    pub backends: Choice,
    /// By principal.
    pub principals: Choice,
}

/// Wanted and unwanted names of one kind. What is both is unwanted.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Choice {
    /// Only these, if there are any.
    pub include: Vec<Glob>,
    /// Never these.
    pub exclude: Vec<Glob>,
}

impl Choice {
    /// Whether every name is wanted.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }

    /// Whether this one is wanted. What has no name is not among the named.
    #[must_use]
    pub fn wants(&self, name: Option<&str>) -> bool {
        let among = |list: &[Glob]| name.is_some_and(|name| list.iter().any(|glob| glob.matches(name)));
        (self.include.is_empty() || among(&self.include)) && !among(&self.exclude)
    }
}

impl Filter {
    /// Whether everything is wanted.
    #[must_use]
    pub fn is_all(&self) -> bool {
        [&self.methods, &self.tools, &self.backends, &self.principals].iter().all(|choice| choice.is_all())
    }

    /// Whether what is known from the first message on is wanted.
    pub(crate) fn wants_start(&self, method: Option<&str>, tool: Option<&str>, principal: &str) -> bool {
        self.methods.wants(method) && self.tools.wants(tool) && self.principals.wants(Some(principal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_33_names_are_included_and_excluded() {
        let globs = |list: &[&str]| list.iter().map(|text| Glob::new(text)).collect::<Vec<_>>();
        let choice = Choice { include: globs(&["tools/*"]), exclude: globs(&["tools/list"]) };
        assert!(choice.wants(Some("tools/call")));
        assert!(!choice.wants(Some("tools/list")) && !choice.wants(Some("ping")) && !choice.wants(None));
        let filter = Filter { principals: Choice { include: vec![], exclude: globs(&["bot*"]) }, ..Filter::default() };
        assert!(filter.wants_start(Some("x"), None, "ann") && !filter.wants_start(Some("x"), None, "bot-7"));
        assert!(!filter.is_all() && Filter::default().is_all());
    }
}
