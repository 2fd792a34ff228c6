//! One kind of signal, as the rule files describe it.

use super::TextLocation;
use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The rules that are part of the program.
pub(super) const BUILT_IN: &str = include_str!("../../rules/instructions.toml");

/// Maximum compiled size of one pattern, in bytes.
const MAX_COMPILED: usize = 8 << 20;
/// Maximum memory that the search of one pattern keeps, in bytes. Most need a fraction of it. With a sixteenth, texts
/// that are full of keywords take seven times as long, because states are dropped and made again.
const CACHE: usize = 16 << 20;
/// Minimum length of a keyword, in characters.
const MIN_KEYWORD: usize = 2;
/// Maximum depth of shorthands within shorthands.
const MAX_EXPANSION: usize = 4;

/// Expansion of a space in a pattern: white space, punctuation, and what wraps lines of comments and quotations.
const SPACE: &str = r"(?-u:[\s!-/:-@\[-`{-~]{1,8})";

/// Error of reading instruction rules.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadInstructionRules {
    /// The text is not a list of rules.
    #[error("the instruction rules cannot be read: {0}")]
    Text(String),
    /// A rule has no keyword, so it would never be tried.
    #[error("instruction rule `{0}` has no keyword of at least two characters")]
    NoKeyword(String),
    /// Two rules share an id.
    #[error("instruction rule `{0}` is defined twice")]
    Duplicate(String),
    /// A pattern is not a regular expression, or too large.
    #[error("the pattern of instruction rule `{id}` is invalid: {reason}")]
    Pattern {
        /// Id of the rule.
        id: String,
        /// Message of the compiler of patterns.
        reason: String,
    },
    /// The keywords exceed what the index supports.
    #[error("the keywords of the instruction rules cannot be searched for: {0}")]
    Keywords(String),
}

/// Condition under which a rule is tried, and the sign of its points.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RuleKind {
    /// Tried around its keywords, and adds points.
    #[default]
    Plain,
    /// Tried only near the signals of others, or in a short text that is no data, and adds points.
    Near,
    /// Tried near signals once a text is suspicious, and takes points off: it speaks for a harmless text.
    Relief,
}

/// Rule for one kind of signal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InstructionRule {
    /// Name of the signal.
    pub(super) id: String,
    /// Points of one match.
    pub(super) weight: u32,
    /// Points in places where they differ.
    #[serde(default)]
    places: BTreeMap<String, u32>,
    #[serde(default)]
    pub(super) kind: RuleKind,
    /// Meaning of the signal, in a line for people.
    pub(super) about: String,
    /// Parts of words, one of which is in every match. Case does not matter. Only plain rules need them.
    #[serde(default)]
    pub(super) keywords: Vec<String>,
    /// Pattern. A space stands for white space and punctuation, `<name>` for a shorthand of the file.
    pattern: String,
    /// Pattern that makes the match harmless where it occurs near it.
    unless: Option<String>,
    /// True if the match is harmless near the name of a tool of the same server.
    #[serde(default)]
    pub(super) own_tools: bool,
    /// True if the signal counts also where the text quotes it.
    #[serde(default)]
    pub(super) never_quoted: bool,
    /// Texts in which the rule matches.
    #[serde(default)]
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests run the examples"))]
    pub(super) examples: Vec<String>,
    /// Texts in which the rule does not match.
    #[serde(default)]
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests run the examples"))]
    pub(super) counter_examples: Vec<String>,
    #[serde(skip)]
    regex: OnceLock<Option<Regex>>,
    #[serde(skip)]
    unless_regex: OnceLock<Option<Regex>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InstructionRuleFile {
    /// Parts of patterns that rules share.
    #[serde(default)]
    shorthand: BTreeMap<String, String>,
    /// Orders without separators, for texts whose letters were spaced out.
    #[serde(default)]
    squashed: Vec<String>,
    #[serde(default)]
    rule: Vec<InstructionRule>,
}

/// Rules of all files, with their shorthands expanded.
#[derive(Debug)]
pub(super) struct RuleBook {
    pub(super) rules: Vec<InstructionRule>,
    pub(super) squashed: Vec<String>,
}

impl RuleBook {
    /// Parses the files in order. Shorthands of an earlier file are known in a later one.
    pub(super) fn read(files: &[&str]) -> Result<Self, BadInstructionRules> {
        let mut book = Self { rules: Vec::new(), squashed: Vec::new() };
        let mut shorthands = BTreeMap::new();
        for text in files {
            let file: InstructionRuleFile =
                toml::from_str(text).map_err(|error| BadInstructionRules::Text(error.to_string()))?;
            shorthands.extend(file.shorthand);
            book.squashed.extend(file.squashed);
            for mut rule in file.rule {
                let short = |word: &String| word.chars().count() < MIN_KEYWORD;
                if rule.keywords.is_empty() && rule.kind == RuleKind::Plain || rule.keywords.iter().any(short) {
                    return Err(BadInstructionRules::NoKeyword(rule.id));
                }
                if book.rules.iter().any(|known| known.id == rule.id) {
                    return Err(BadInstructionRules::Duplicate(rule.id));
                }
                rule.pattern = expand(&rule.pattern, &shorthands);
                rule.unless = rule.unless.map(|pattern| expand(&pattern, &shorthands));
                book.rules.push(rule);
            }
        }
        Ok(book)
    }
}

impl InstructionRule {
    /// Returns the points of a match in a place.
    pub(super) fn weight_in(&self, place: TextLocation) -> u32 {
        let name = match place {
            TextLocation::Result => "result",
            TextLocation::Resource => "resource",
            TextLocation::Definition => "definition",
            TextLocation::Prompt => "prompt",
            TextLocation::Question => "question",
            TextLocation::Error => "error",
            TextLocation::Log => "log",
        };
        self.places.get(name).copied().unwrap_or(self.weight)
    }

    /// Returns the compiled pattern, or `None` if it is invalid.
    pub(super) fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| compile(&self.id, &self.pattern).ok()).as_ref()
    }

    /// Returns the pattern of what makes a match harmless.
    pub(super) fn unless(&self) -> Option<&Regex> {
        let compile_it = || self.unless.as_ref().and_then(|pattern| compile(&self.id, pattern).ok());
        self.unless_regex.get_or_init(compile_it).as_ref()
    }

    /// Compiles the patterns, which otherwise happens on first use.
    pub(super) fn check(&self) -> Result<(), BadInstructionRules> {
        let patterns = std::iter::once(&self.pattern).chain(&self.unless);
        patterns.map(|pattern| compile(&self.id, pattern)).try_for_each(|compiled| compiled.map(drop))
    }
}

/// Replaces shorthands and spaces.
fn expand(pattern: &str, shorthands: &BTreeMap<String, String>) -> String {
    let mut expanded = pattern.to_owned();
    for _ in 0..MAX_EXPANSION {
        for (name, part) in shorthands {
            expanded = expanded.replace(&format!("<{name}>"), &format!("(?:{part})"));
        }
    }
    let mut result = String::with_capacity(expanded.len() * 2);
    let (mut before, mut classes) = (' ', 0_usize);
    let mut rest = expanded.chars().peekable();
    while let Some(character) = rest.next() {
        let within = rest.peek().is_some_and(|next| next.is_alphabetic() || *next == '?');
        match character {
            ' ' if classes == 0 => result.push_str(SPACE),
            '\'' if before.is_alphabetic() && within => result.push_str("(?:'|’|`)?"),
            _ => result.push(character),
        }
        match character {
            '[' if before != '\\' => classes += 1,
            ']' if before != '\\' => classes = classes.saturating_sub(1),
            _ => {}
        }
        before = character;
    }
    result
}

fn compile(id: &str, pattern: &str) -> Result<Regex, BadInstructionRules> {
    let config = Regex::config().nfa_size_limit(Some(MAX_COMPILED)).hybrid_cache_capacity(CACHE).utf8_empty(false);
    // Patterns of other languages count every byte beyond ASCII as a part of a word, because the Unicode classes are
    // too large to be repeated. Patterns of English are many times smaller if letters have two cases and not three.
    let unicode = !pattern.replace('’', "").is_ascii();
    let bounded = pattern.replace(r"\w", r"(?-u:[\w\x80-\xff])").replace(r"\b", r"(?-u:\b)");
    let pattern = if unicode { &bounded } else { pattern };
    Regex::builder()
        .configure(config)
        .syntax(syntax::Config::new().case_insensitive(true).multi_line(true).unicode(unicode).utf8(false))
        .build(pattern)
        .map_err(|error| BadInstructionRules::Pattern { id: id.to_owned(), reason: error.to_string() })
}
