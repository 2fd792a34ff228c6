//! Filter for the tools that a backend offers.

use signalbox_wire::glob::{Wildcards, fits};

/// Include and exclude lists of patterns, in which `*` stands for any text and `?` for any one character.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolFilter {
    /// Patterns of the tools that are offered. Empty for all tools.
    pub include: Vec<String>,
    /// Patterns of the tools that are not offered.
    pub exclude: Vec<String>,
}

impl ToolFilter {
    /// Returns `true` if the tool is offered.
    pub fn allows(&self, tool: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| fits(pattern, tool, Wildcards::StarAndQuestion));
        (self.include.is_empty() || any(&self.include)) && !any(&self.exclude)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclude_wins() {
        let filter =
            ToolFilter { include: vec!["read_*".to_owned(), "list".to_owned()], exclude: vec!["*_secret".to_owned()] };
        assert!(filter.allows("read_file"));
        assert!(filter.allows("list"));
        assert!(!filter.allows("read_secret"));
        assert!(!filter.allows("write"));
        assert!(ToolFilter::default().allows("anything"));
    }
}
