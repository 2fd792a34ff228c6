//! Which tools of a backend are offered.

use signalbox_wire::glob::{Wildcards, fits};

/// Include and exclude lists of patterns, in which `*` stands for any text and `?` for any one character.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolFilter {
    /// Only what matches one of these; everything, if there are none.
    pub include: Vec<String>,
    /// Nothing that matches one of these.
    pub exclude: Vec<String>,
}

impl ToolFilter {
    /// Whether the tool is offered.
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
