//! One kind of credential, as the rule files describe it.

use crate::continuation::Continuation;
use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use serde::Deserialize;
use std::sync::OnceLock;

/// The rule files, one for each field.
pub(crate) const BUILT_IN: &[&str] = &[
    include_str!("../rules/ai.toml"),
    include_str!("../rules/builds.toml"),
    include_str!("../rules/chat.toml"),
    include_str!("../rules/cloud.toml"),
    include_str!("../rules/code.toml"),
    include_str!("../rules/data.toml"),
    include_str!("../rules/generic.toml"),
    include_str!("../rules/hosting.toml"),
    include_str!("../rules/keys.toml"),
    include_str!("../rules/mail.toml"),
    include_str!("../rules/money.toml"),
    include_str!("../rules/operations.toml"),
    include_str!("../rules/places.toml"),
    include_str!("../rules/work.toml"),
];

/// How far before a keyword a match may begin, in bytes.
const BEFORE: usize = 96;
/// How far behind a keyword a match may end, in bytes, where the rule does not say otherwise.
const REACH: usize = 512;
/// Least length of a keyword that says by itself whose credential follows, in bytes.
const TELLING: usize = 5;
/// Largest compiled form of one pattern, in bytes.
const MAX_COMPILED: usize = 1 << 20;
/// Most memory that the search of one pattern keeps, in bytes.
const CACHE: usize = 256 << 10;

/// What patterns may be written with besides regular expressions, so that all rules mean the same by it.
const SHORTHANDS: &[(&str, &str)] = &[
    // Between a name and its value: `NAME=value`, `name: "value"`, `"name": "value"`, and the same within a JSON string.
    ("<is>", r#"(?:\\*["'`])?\]?[ \t]{0,8}(?:=>|:=|==?|:|,|>|[ \t])[ \t]{0,16}(?:\\*["'`])?"#),
    // The rest of a name.
    ("<name>", r"[A-Za-z0-9_.\-]{0,40}"),
    // Behind a name, what tells several of one kind or forms of one apart: `PASSWORD_2`, `KEY_B64`, `TOKEN_PROD`.
    (
        "<tail>",
        r"(?i:[_-]?(?:[0-9]{1,3}|b64|base64|hex|value|plain|raw|primary|secondary|prod|production|dev|development|stage|staging|live|old|new|default|main)){0,2}",
    ),
    // Between two arguments: `("name", "value")`.
    ("<pair>", r#"\\*["'`][ \t]{0,4},[ \t]{0,4}\\*["'`]"#),
    // From the end of a name to its value in quotes: `name = "`, `"name": "`, `name == f"`.
    ("<quoted>", r#"(?:\\*["'`])?\]?\s{0,16}(?:=>|:=|!?={1,3}|:)\s{0,16}(?:[bBrRfFuUL]{1,2}|@)?\\*["'`]"#),
    // No letter or digit stands before this, but for the letter of an escape like `\n`.
    ("<start>", r"(?:\b{start-half}|_|\\[nrt])"),
    // No letter or digit stands behind this.
    ("<end>", r"(?:\b{end-half}|_)"),
];

/// Rules that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadRules {
    /// The text is no list of rules.
    #[error("the rules cannot be read: {0}")]
    Text(String),
    /// A rule has no keyword, so that it would never be tried.
    #[error("rule `{0}` has no keyword of at least three characters")]
    NoKeyword(String),
    /// All keywords together make too large a search.
    #[error("the keywords cannot be searched for: {0}")]
    Keywords(String),
}

/// What must hold of a match besides its shape.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// It has letters and digits, or small and large letters without order.
    Mixed,
    /// It is no placeholder, variable or word of a programming language.
    Password,
    /// It is a password, and more than a word: it has letters and digits, or is long and in both cases.
    Secret,
    /// It is base64 of `name:password`.
    Basic,
    /// It has `name=value` in it.
    Pairs,
    /// It stands where only a password can stand: any word will do that is neither a variable nor a placeholder.
    Given,
    /// It stands where a password is handed over: as `Given`, and none of the words that manuals put there.
    Placed,
    /// It stands quoted behind the name of a password: a word of its own, but no label and no path.
    Quoted,
    /// It looks random: long, with letters and digits that change often.
    Random,
}

/// One kind of credential.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name, which is told where one is found.
    pub id: String,
    /// What it is, in words.
    pub about: String,
    /// The page on which the issuer describes the format.
    pub source: String,
    /// Texts of which one stands in or near every such credential. Case matters only in those with large letters.
    pub keywords: Vec<String>,
    /// What it looks like. Where it has a group named `secret` only that part is the credential; without one, word boundaries
    /// are required around the whole.
    pub pattern: String,
    /// Bits per character that it must have at the least.
    pub entropy: Option<f32>,
    /// What else must hold of it.
    pub check: Option<Check>,
    /// A text that must stand behind the keyword, within reach; looked for before the pattern runs.
    pub needs: Option<String>,
    /// Pattern that must match from the keyword on before the whole pattern runs, for rules whose matches begin with something
    /// else.
    then: Option<String>,
    /// How far behind the keyword it may end, in bytes.
    reach: Option<usize>,
    /// Texts in which it is found. `{hex:32}` and the like stand for made-up characters, `«` and `»` stand around the secret.
    #[serde(default)]
    pub examples: Vec<String>,
    /// Texts in which no rule finds anything.
    #[serde(default)]
    pub counter_examples: Vec<String>,
    /// Compiled when it is first needed.
    #[serde(skip)]
    regex: OnceLock<Option<Regex>>,
    /// Compiled when it is first needed; none if a match may begin anywhere near the keyword.
    #[serde(skip)]
    continuation: OnceLock<Option<Continuation>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    rule: Vec<Rule>,
}

impl Rule {
    /// The rules of a file.
    pub(crate) fn read(text: &str) -> Result<Vec<Self>, BadRules> {
        let file: RuleFile = toml::from_str(text).map_err(|error| BadRules::Text(error.to_string()))?;
        let without = |rule: &&Self| rule.keywords.is_empty() || rule.keywords.iter().any(|word| word.len() < 3);
        match file.rule.iter().find(without) {
            Some(rule) => Err(BadRules::NoKeyword(rule.id.clone())),
            None => Ok(file.rule),
        }
    }

    /// The compiled pattern; none where it makes no sense.
    pub(crate) fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| self.compile().ok()).as_ref()
    }

    /// Compiles the pattern.
    ///
    /// # Errors
    /// Where it is no regular expression, in words.
    pub(crate) fn compile(&self) -> Result<Regex, BadRules> {
        let pattern = match self.pattern.contains("(?<secret>") {
            true => &self.pattern,
            false => &format!("<start>(?<secret>{})<end>", self.pattern),
        };
        self.compile_continuation()?;
        compile(&expand(pattern)).map_err(|error| BadRules::Text(format!("{}: {error}", self.id)))
    }

    fn compile_continuation(&self) -> Result<Option<Continuation>, BadRules> {
        Continuation::new(self.then.as_deref(), &self.pattern, &self.keywords)
            .map_err(|error| BadRules::Text(format!("{}: {error}", self.id)))
    }

    /// Returns false if no match that ends before `end` has its keyword at `from`.
    pub(crate) fn continues(&self, text: &[u8], from: usize, end: usize) -> bool {
        let continuation = self.continuation.get_or_init(|| self.compile_continuation().ok().flatten());
        continuation.as_ref().is_none_or(|continuation| continuation.follows(text, from, end))
    }

    /// Lets the pattern run around every keyword.
    #[cfg(test)]
    pub(crate) fn skip_continuation(&self) {
        let _ = self.continuation.set(None);
    }

    /// True if the credential itself begins with this keyword.
    pub(crate) fn begins_with(&self, keyword: &str) -> bool {
        let plain = self.pattern.replace('\\', "");
        !self.pattern.contains("(?<secret>") && !plain.contains('|') && plain.starts_with(keyword)
    }

    /// True if this keyword stands at the beginning of the credential and in hardly any other word: `CFPAT-`, `glpat-`.
    pub(crate) fn is_told_by(&self, keyword: &str) -> bool {
        let separated = keyword.len() >= TELLING && keyword.ends_with(['-', '_', '.']);
        separated
            && keyword.starts_with(|first: char| first.is_ascii_alphanumeric())
            && !self.pattern.contains("(?<secret>")
    }

    /// True if a match is possible around a keyword.
    pub(crate) fn is_possible(&self, text: &[u8], from: usize, to: usize) -> bool {
        let (start, end) = self.window(from, to, text.len());
        self.has_needs(text.get(start..end).unwrap_or_default())
    }

    /// True if the text that the rule needs is there.
    pub(crate) fn has_needs(&self, part: &[u8]) -> bool {
        self.needs.as_ref().is_none_or(|needs| memchr::memmem::find(part, needs.as_bytes()).is_some())
    }

    /// The part of a text of this length in which a match may stand whose keyword stands at `from..to`.
    pub(crate) fn window(&self, from: usize, to: usize, length: usize) -> (usize, usize) {
        let reach = self.reach.unwrap_or(REACH);
        (from.saturating_sub(BEFORE), to.saturating_add(reach).min(length))
    }
}

/// Writes out the shorthands of a pattern.
pub(crate) fn expand(pattern: &str) -> String {
    SHORTHANDS.iter().fold(pattern.to_owned(), |pattern, (short, long)| pattern.replace(short, long))
}

/// Compiles a pattern without shorthands.
pub(crate) fn compile(pattern: &str) -> Result<Regex, BadRules> {
    let config = Regex::config().nfa_size_limit(Some(MAX_COMPILED)).hybrid_cache_capacity(CACHE).utf8_empty(false);
    Regex::builder()
        .configure(config)
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .build(pattern)
        .map_err(|error| BadRules::Text(error.to_string()))
}
