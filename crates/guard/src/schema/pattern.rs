//! Patterns of a schema.

use super::InvalidSchema;
use super::limits::{MAX_COMPILED_PATTERN, MAX_QUOTED_CHARS, PATTERN_CACHE};
use regex::Regex;
use regex_automata::nfa::thompson;
use signalbox_wire::printable;
use std::sync::OnceLock;

/// A pattern of a schema, compiled only when a violation is to be explained: the validator has its own copy.
#[derive(Debug)]
pub(super) struct Pattern {
    /// The pattern as the schema has it.
    pub(super) source: String,
    translated: String,
    /// Number of states, the factor of the worst case per byte.
    pub(super) states: usize,
    regex: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Translates an ECMA-262 pattern and measures it.
    pub(super) fn new(source: &str) -> Result<Self, InvalidSchema> {
        let unsupported = |reason: &str| InvalidSchema::UnsupportedPattern {
            pattern: printable::beginning(source, MAX_QUOTED_CHARS),
            reason: printable::beginning(reason, MAX_QUOTED_CHARS),
        };
        let translated =
            jsonschema_regex::to_rust_regex(source).map_err(|()| unsupported("not a regular expression"))?.into_owned();
        let config = thompson::Config::new().nfa_size_limit(Some(MAX_COMPILED_PATTERN));
        let nfa = thompson::Compiler::new().configure(config).build(&translated).map_err(|error| {
            match error.size_limit().is_some() {
                true => InvalidSchema::PatternTooLarge { pattern: printable::beginning(source, MAX_QUOTED_CHARS) },
                false => unsupported("look-around and back-references need backtracking, or the syntax is wrong"),
            }
        })?;
        Ok(Self { source: source.to_owned(), translated, states: nfa.states().len(), regex: OnceLock::new() })
    }

    /// Checks whether a text matches anywhere, as in JSON Schema. `None` if the engine refuses the pattern.
    pub(super) fn is_match(&self, text: &str) -> Option<bool> {
        let regex = self.regex.get_or_init(|| {
            let mut builder = regex::RegexBuilder::new(&self.translated);
            // The engine counts prefilters and the reverse automaton too.
            builder.size_limit(4 * MAX_COMPILED_PATTERN).dfa_size_limit(PATTERN_CACHE).build().ok()
        });
        regex.as_ref().map(|regex| regex.is_match(text))
    }
}
