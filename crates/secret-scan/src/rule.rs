//! One kind of credential, as the rule files describe it.

use crate::continuation::Continuation;
use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use serde::Deserialize;
use std::sync::OnceLock;

/// Rule files, one for each field of use.
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
    include_str!("../rules/prose.toml"),
    include_str!("../rules/systems.toml"),
    include_str!("../rules/wallets.toml"),
    include_str!("../rules/work.toml"),
];

/// Maximum distance, in bytes, from the start of a match to a keyword.
const BEFORE: usize = 96;
/// Default maximum distance, in bytes, from a keyword to the end of a match.
const REACH: usize = 512;
/// Minimum length, in bytes, of a keyword that identifies an issuer by itself.
const TELLING: usize = 5;
/// Maximum compiled size of one pattern, in bytes.
const MAX_COMPILED: usize = 1 << 20;
/// Maximum memory that the search of one pattern keeps, in bytes.
const CACHE: usize = 256 << 10;

/// Shorthands in patterns, which keep the rules consistent with each other.
const SHORTHANDS: &[(&str, &str)] = &[
    // Between a name and its value: `NAME=value`, `name: "value"`, `"name": "value"`, and these within a JSON string.
    ("<is>", r#"(?:\\*["'`])?\]?[ \t]{0,8}(?:=>|:=|==?|:|,|>|[ \t])[ \t]{0,16}(?:\\*["'`])?"#),
    // Rest of a name.
    ("<name>", r"[A-Za-z0-9_.\-]{0,40}"),
    // Suffix that distinguishes several secrets of one name or their encodings: `PASSWORD_2`, `KEY_B64`, `TOKEN_PROD`.
    (
        "<tail>",
        r"(?i:[_-]?(?:[0-9]{1,3}|b64|base64|hex|value|plain|raw|primary|secondary|prod|production|dev|development|stage|staging|live|old|new|default|main)){0,2}",
    ),
    // Between two arguments: `("name", "value")`.
    ("<pair>", r#"\\*["'`][ \t]{0,4},[ \t]{0,4}\\*["'`]"#),
    // From the end of a name to its value in quotes: `name = "`, `"name": "`, `name == f"`.
    ("<quoted>", r#"(?:\\*["'`])?\]?\s{0,16}(?:=>|:=|!?={1,3}|:)\s{0,16}(?:[bBrRfFuUL]{1,2}|@)?\\*["'`]"#),
    // Word for a password, in the languages that are frequent.
    (
        "<word>",
        r"(?i:pass(?:word|wort|wd|phrase|code)|kennwort|kenncode|zugangsdaten|mot de passe|contrase(?:ñ|n)a|senha|palavra-passe|wachtwoord|parola|has(?:ł|l)o|heslo|lösenord|adgangskode|passord|salasana|jelszó|(?:ş|s)ifre|(?:п|П)арол(?:ь|я|ю)|密码|密碼|口令|パスワード|비밀번호|\b{start-half}pwd?\b{end-half})",
    ),
    // Start of a word. The letter of an escape like `\n` does not count as a part of it.
    ("<start>", r"(?:\b{start-half}|_|\\[nrt])"),
    // End of a word.
    ("<end>", r"(?:\b{end-half}|_)"),
];

/// Error of reading rules.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadRules {
    /// The text is not a list of rules.
    #[error("the rules cannot be read: {0}")]
    Text(String),
    /// A rule has no keyword, so it would never be tried.
    #[error("rule `{0}` has no keyword of at least three characters")]
    NoKeyword(String),
    /// The keywords exceed what the index supports.
    #[error("the keywords cannot be searched for: {0}")]
    Keywords(String),
}

/// Check of a match besides its pattern.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// The match has letters and digits, or small and capital letters without order.
    Mixed,
    /// The match is not a placeholder, variable or word of a programming language.
    Password,
    /// The match is a password and more than a word: it has letters and digits, or is long and in both cases.
    Secret,
    /// The match is base64 of `name:password`.
    Basic,
    /// The match contains `name=value`.
    Pairs,
    /// The position admits only a password, so any word that is neither a variable nor a placeholder passes.
    Given,
    /// The position passes a password to a program: like `Given`, but sample passwords of manuals fail.
    Placed,
    /// The match is quoted after the name of a password: a single word that is neither label nor path.
    Quoted,
    /// The match looks random: long, with letters and digits that alternate often.
    Random,
    /// The match is a word of a sentence that can only be a password.
    Told,
    /// A cell or word of the match is such a password.
    Listed,
    /// The match consists of the words of a passphrase.
    Phrase,
    /// The match consists of codes.
    Codes,
}

/// Rule for one kind of credential.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Name of the kind, which findings carry.
    pub id: String,
    /// Description of the kind in words.
    pub about: String,
    /// Page on which the issuer describes the format.
    pub source: String,
    /// Keywords, one of which is in or near every such credential. Only those with capitals are case-sensitive.
    pub keywords: Vec<String>,
    /// Pattern of the credential. If it has a group named `secret`, only that part is the credential; otherwise word
    /// boundaries are required around the whole match.
    pub pattern: String,
    /// Minimum entropy in bits per character.
    pub entropy: Option<f32>,
    /// Additional check of a match.
    pub check: Option<Check>,
    /// Text that must follow the keyword within reach. It is searched before the pattern runs.
    pub needs: Option<String>,
    /// Pattern that must match from the keyword on before the whole pattern runs, for rules whose matches begin before
    /// the keyword.
    then: Option<String>,
    /// Maximum distance, in bytes, from the keyword to the end of the match.
    reach: Option<usize>,
    /// Texts in which the rule finds a credential. `{hex:32}` and the like stand for made-up characters; `«` and `»`
    /// enclose the secret.
    #[serde(default)]
    pub examples: Vec<String>,
    /// Texts in which no rule finds a credential.
    #[serde(default)]
    pub counter_examples: Vec<String>,
    /// Pattern, compiled on first use.
    #[serde(skip)]
    regex: OnceLock<Option<Regex>>,
    /// Continuation, compiled on first use; `None` if a match may begin anywhere near the keyword.
    #[serde(skip)]
    continuation: OnceLock<Option<Continuation>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    rule: Vec<Rule>,
}

impl Rule {
    /// Parses the rules of a file.
    pub(crate) fn read(text: &str) -> Result<Vec<Self>, BadRules> {
        let file: RuleFile = toml::from_str(text).map_err(|error| BadRules::Text(error.to_string()))?;
        let without = |rule: &&Self| rule.keywords.is_empty() || rule.keywords.iter().any(|word| word.len() < 3);
        match file.rule.iter().find(without) {
            Some(rule) => Err(BadRules::NoKeyword(rule.id.clone())),
            None => Ok(file.rule),
        }
    }

    /// Returns the compiled pattern, or `None` if it is invalid.
    pub(crate) fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| self.compile().ok()).as_ref()
    }

    /// Compiles the pattern.
    ///
    /// # Errors
    /// Fails if the pattern is not a regular expression.
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

    /// Makes the pattern run around every keyword.
    #[cfg(test)]
    pub(crate) fn skip_continuation(&self) {
        let _ = self.continuation.set(None);
    }

    /// Returns true if the credential itself begins with this keyword.
    pub(crate) fn begins_with(&self, keyword: &str) -> bool {
        let plain = self.pattern.replace('\\', "");
        !self.pattern.contains("(?<secret>") && !plain.contains('|') && plain.starts_with(keyword)
    }

    /// Returns true if this keyword begins the credential and occurs in hardly any other word: `CFPAT-`, `glpat-`.
    pub(crate) fn is_told_by(&self, keyword: &str) -> bool {
        let separated = keyword.len() >= TELLING && keyword.ends_with(['-', '_', '.']);
        separated
            && keyword.starts_with(|first: char| first.is_ascii_alphanumeric())
            && !self.pattern.contains("(?<secret>")
    }

    /// Returns true if a match is possible around a keyword.
    pub(crate) fn is_possible(&self, text: &[u8], from: usize, to: usize) -> bool {
        let (start, end) = self.window(from, to, text.len());
        self.has_needs(text.get(start..end).unwrap_or_default())
    }

    /// Returns true if `part` contains the text that the rule needs.
    pub(crate) fn has_needs(&self, part: &[u8]) -> bool {
        self.needs.as_ref().is_none_or(|needs| memchr::memmem::find(part, needs.as_bytes()).is_some())
    }

    /// Returns the window in which a match with a keyword at `from..to` may be, in a text of this length.
    pub(crate) fn window(&self, from: usize, to: usize, length: usize) -> (usize, usize) {
        let reach = self.reach.unwrap_or(REACH);
        (from.saturating_sub(BEFORE), to.saturating_add(reach).min(length))
    }
}

/// Expands the shorthands of a pattern.
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
