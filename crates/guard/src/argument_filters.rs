//! Checks of the arguments of tool calls against the attacks that their meaning allows.
//!
//! A filter applies to an argument that means something to it, never to every string: the body of a mail may contain
//! SQL and a command, and a file that is written may contain anything. [`Meanings`] is compiled once per tool, and
//! [`examine`] is called for every call.

mod command_filter;
mod command_words;
mod control_filter;
mod finding;
mod host_readings;
mod meaning;
mod meanings;
mod name_rules;
mod path_filter;
mod sanitise;
mod sensitive_paths;
mod shell_filter;
mod shell_lexer;
mod sql_filter;
mod template_filter;
mod text_readings;
mod url_filter;

pub use finding::{ArgumentFinding, FilterKind, FindingRisk, SsrfTarget};
pub use meaning::{Meaning, meaning};
pub use meanings::Meanings;
pub use sanitise::sanitise;

use crate::privacy::{self, PrivacyClass, PrivacyClasses};
use command_filter::check_command;
use control_filter::check_control;
use finding::Violation;
use host_readings::check_host;
use meanings::escaped;
use path_filter::check_path;
use serde_json::Value;
use shell_filter::{WordKind, check_word};
use sql_filter::{check_sql_value, check_statement};
use template_filter::{check_lookup, check_template};
use url_filter::check_url;

/// Maximum number of findings of one kind. Kinds are counted apart, so that harmless findings hide no other.
pub const MAX_FINDINGS: usize = 10;
/// Longest string that is opened if it is JSON, in bytes.
const MAX_OPENED: usize = 64 * 1024;
/// Longest value that names something, in bytes. A longer one is a finding in itself.
pub const MAX_NAMING_VALUE: usize = 16 * 1024;
/// Maximum nesting of arguments. What lies deeper is not examined, and the strict scan of messages rejects it.
const MAX_DEPTH: usize = 128;
/// Longest value without known meaning that is judged by its looks, in bytes.
const MAX_UNKNOWN: usize = 512;

/// Examines the arguments of a call. Returns findings in their order, at most [`MAX_FINDINGS`] of a kind.
#[must_use]
pub fn examine(arguments: &Value, meanings: &Meanings) -> Vec<ArgumentFinding> {
    let (findings, place, schema_place) = Default::default();
    let mut examination = Examination { meanings, check: violations, findings, place, schema_place };
    examination.visit(arguments, "", MAX_DEPTH);
    examination.findings
}

/// Returns the credentials in the arguments of a call. Arguments that are meant to be one are left out.
#[must_use]
pub fn credentials(arguments: &Value, meanings: &Meanings) -> Vec<ArgumentFinding> {
    let (findings, place, schema_place) = Default::default();
    let mut examination = Examination { meanings, check: credential_violation, findings, place, schema_place };
    examination.visit(arguments, "", MAX_DEPTH);
    examination.findings
}

fn credential_violation(text: &str, meaning: Meaning) -> Vec<Violation> {
    let is_meant = meaning == Meaning::Secret;
    let found = !is_meant && !privacy::find(text, PrivacyClasses::NONE.with(PrivacyClass::Credential)).spans.is_empty();
    let violation = || Violation::new(FilterKind::Credential, FindingRisk::High, "a key, a token or a password");
    found.then(violation).into_iter().collect()
}

struct Examination<'a> {
    meanings: &'a Meanings,
    check: fn(&str, Meaning) -> Vec<Violation>,
    findings: Vec<ArgumentFinding>,
    place: String,
    /// Place with `*` for the elements of arrays.
    schema_place: String,
}

impl Examination<'_> {
    /// Visits a value. `name` is the last member name above it.
    fn visit(&mut self, value: &Value, name: &str, depth: usize) {
        if depth == 0 {
            return;
        }
        match value {
            Value::String(text) => {
                self.check(text, name);
                // Many servers accept JSON text in place of an object.
                let is_json = text.len() <= MAX_OPENED && text.trim_start().starts_with(['{', '[']);
                if let Some(inner) = is_json.then(|| serde_json::from_str::<Value>(text).ok()).flatten() {
                    self.visit(&inner, name, depth - 1);
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.enter(&at.to_string(), "*", |own| own.visit(item, name, depth - 1));
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    let step = escaped(key);
                    self.enter(&step, &step, |own| own.visit(member, key, depth - 1));
                }
            }
            _ => {}
        }
    }

    fn enter(&mut self, step: &str, schema_step: &str, visit: impl FnOnce(&mut Self)) {
        let lengths = (self.place.len(), self.schema_place.len());
        self.place.extend(["/", step]);
        self.schema_place.extend(["/", schema_step]);
        visit(self);
        self.place.truncate(lengths.0);
        self.schema_place.truncate(lengths.1);
    }

    fn check(&mut self, text: &str, name: &str) {
        let meaning = self.meanings.get(&self.schema_place, name);
        for violation in (self.check)(text, meaning) {
            if self.findings.iter().filter(|finding| finding.kind == violation.kind).count() < MAX_FINDINGS {
                self.findings.push(violation.at(&self.place, text));
            }
        }
    }
}

/// Returns what is wrong with a value of this meaning, at most one violation per filter.
fn violations(text: &str, meaning: Meaning) -> Vec<Violation> {
    let names_something = !matches!(
        meaning,
        Meaning::Command
            | Meaning::Sql
            | Meaning::SqlValue
            | Meaning::Template
            | Meaning::FreeText
            | Meaning::Secret
            | Meaning::Unknown
    );
    if names_something && text.len() > MAX_NAMING_VALUE {
        return vec![Violation::new(
            FilterKind::Control,
            FindingRisk::Medium,
            "value that is too long for what it names",
        )];
    }
    let found = match meaning {
        Meaning::Path => check_file(text),
        Meaning::Url => {
            vec![check_url(text), check_control(text.trim(), false), check_lookup(text), check_word_of_url(text)]
        }
        Meaning::Host => vec![
            check_machine(text),
            check_control(text, false),
            check_word(text, WordKind::Identifier),
            check_lookup(text),
        ],
        Meaning::Command => vec![check_command(text), check_control(text, true), check_lookup(text)],
        Meaning::ShellWord => vec![
            check_word(text, WordKind::ShellWord),
            check_command(text),
            check_control(text, true),
            check_template(text),
        ],
        Meaning::Sql => vec![check_statement(text), check_lookup(text)],
        Meaning::SqlValue => vec![check_sql_value(text), check_lookup(text)],
        Meaning::Identifier => check_identifier(text),
        Meaning::FreeText | Meaning::Template => vec![check_lookup(text)],
        Meaning::Secret => vec![check_control(text, true)],
        Meaning::Unknown => check_unknown(text),
    };
    found.into_iter().flatten().collect()
}

fn check_file(text: &str) -> Vec<Option<Violation>> {
    // Tools that take a path often take a URL too.
    let is_url =
        text.contains("://") && !text.trim_start().get(..5).is_some_and(|start| start.eq_ignore_ascii_case("file:"));
    let url = if is_url { check_url(text) } else { None };
    vec![
        url,
        if is_url { None } else { check_path(text) },
        check_control(text, false),
        check_word(text, WordKind::Path),
        check_template(text),
    ]
}

/// Checks a host, which may be written as a URL or with a port.
fn check_machine(text: &str) -> Option<Violation> {
    let is_address = text.contains(['/', '@']) || (text.matches(':').count() == 1);
    if is_address { check_url(text) } else { check_host(text) }
}

/// Checks a URL for options and transports that run programs: `--upload-pack=…`, `ext::sh`.
fn check_word_of_url(text: &str) -> Option<Violation> {
    let starts = text.trim_start().starts_with('-') || text.trim_start().starts_with("ext::");
    if starts { check_word(text, WordKind::Identifier) } else { None }
}

fn check_identifier(text: &str) -> Vec<Option<Violation>> {
    // Names of repositories, images and branches may contain slashes, but do not climb.
    let path = check_path(text).filter(|found| found.risk == FindingRisk::High && text.contains(['.', '/']));
    let is_url = text.contains("://") && !text.contains(char::is_whitespace);
    let url = if is_url { check_url(text) } else { None };
    vec![
        path.filter(|_| !is_url),
        url,
        check_control(text, false),
        check_word(text, WordKind::Identifier),
        check_sql_value(text),
        check_template(text),
    ]
}

/// Judges a value by its looks: one that is as a whole a URL or a path is taken for one.
fn check_unknown(text: &str) -> Vec<Option<Violation>> {
    if text.len() > MAX_UNKNOWN || text.contains('\n') {
        return vec![check_lookup(text)];
    }
    let is_one_word = !text.trim().contains(char::is_whitespace);
    let is_url = is_one_word && (text.contains("://") || text.to_ascii_lowercase().contains("%3a%2f%2f"));
    let is_path = is_one_word && !is_url && text.contains(['/', '\\', '%', '\u{ff0e}']);
    vec![
        if is_url { check_url(text) } else { None },
        if is_path { check_path(text).filter(|found| found.risk > FindingRisk::Low) } else { None },
        check_sql_value(text).filter(|found| found.risk == FindingRisk::High),
        check_template(text),
        check_word(text, WordKind::Path),
    ]
}

#[cfg(test)]
mod tests;
