//! Implements `signalbox import`: writes a client's list of MCP servers as our own configuration.
//!
//! The result is commented, keeps the order of the file, leaves `${…}` as it is, and loads to the same backends as the
//! client's file itself.

use std::path::Path;

use crate::expand::to_own;
use crate::foreign::{self, ForeignServer};
use crate::loops::{OwnFile, leads_back};
use crate::path::{KeyPath, is_bare};
use crate::raw::{RawEntry, Value};
use crate::read::Document;
use crate::{ConfigError, Env, ListenConfig, Note, Problem, Warning, with_foreign};

/// Outcome of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportOutcome {
    /// Text of a `signalbox.toml`.
    pub toml: String,
    /// Warnings for the user.
    pub warnings: Vec<Warning>,
}

/// Converts a client's `mcpServers` JSON into our TOML. `file` is its name in messages and in the first comment.
///
/// A server that cannot be used is left out with a warning that says why. It is an error only if no other server
/// remains. A variable that is not set causes a warning.
pub fn import(json: &str, file: &Path, env: &Env<'_>) -> Result<ImportOutcome, ConfigError> {
    let json = json.strip_prefix('\u{feff}').unwrap_or(json);
    let mut warnings = Vec::new();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut toml = format!(
        "# Imported by `signalbox import` from {name:?}.\n# `${{NAME}}` is filled in from the environment at start.\n"
    );
    let (mut left_out, mut converted) = (None, false);
    with_foreign(Some(file), json, env, &mut warnings, |document, server, warnings| {
        let server = with_variables(document, server, warnings);
        let result = check(document, &server, warnings);
        match result {
            Ok(()) => {
                converted = true;
                write_server(&mut toml, &server);
                note_secrets(document, &server, warnings);
            }
            Err(error) => {
                let note = Note::LeftOut(error.problem.to_string());
                warnings.push(Warning { place: error.place.clone(), note });
                left_out.get_or_insert(error);
            }
        }
        Ok(())
    })?;
    match left_out.filter(|_| !converted) {
        Some(error) => Err(error),
        None => Ok(ImportOutcome { toml, warnings }),
    }
}

/// Replaces each value that the client asks its user for by an environment variable.
fn with_variables(document: &Document<'_>, server: &ForeignServer, warnings: &mut Vec<Warning>) -> ForeignServer {
    let mut server = server.clone();
    let path = server.path().clone();
    server.map_texts(&mut |text, at| {
        let (mut out, mut rest) = (String::new(), text);
        while let Some(start) = rest.find("${input:") {
            let (before, reference) = rest.split_at(start);
            let (input, after) = reference.trim_start_matches("${input:").split_once('}')?;
            let variable = variable(input);
            out.push_str(&format!("{before}${{{variable}}}"));
            let note = Note::AskedByClient { input: input.to_owned(), variable };
            let place = document.place(&path, at);
            if !warnings.iter().any(|known| known.note == note) {
                warnings.push(Warning { place, note });
            }
            rest = after;
        }
        (!out.is_empty()).then(|| out + rest)
    });
    server
}

/// Checks a server as loading would.
fn check(document: &Document<'_>, server: &ForeignServer, warnings: &mut Vec<Warning>) -> Result<(), ConfigError> {
    match foreign::check(document, server, std::time::Duration::MAX, warnings) {
        // A client that already uses this gateway lists it among its servers.
        Ok(backend) if leads_back(&backend.target, &ListenConfig::default(), OwnFile::Any) => {
            Err(document.error(server.path(), server.at(), Problem::LeadsBack))
        }
        Ok(_) => Ok(()),
        Err(error) => match *error.problem {
            Problem::Unset { name } => {
                warnings.push(Warning { place: error.place, note: Note::UnsetNow(name) });
                Ok(())
            }
            _ => Err(error),
        },
    }
}

fn write_server(toml: &mut String, server: &ForeignServer) {
    toml.push('\n');
    if server.original != server.name {
        toml.push_str(&format!("# Called {:?} there.\n", server.original));
    }
    let table = format!("backends.{}", key(&server.name));
    toml.push_str(&format!("[{table}]\n"));
    let mut tables = String::new();
    for entry in server.entries() {
        match &entry.node.value {
            Value::Table(inner) if inner.is_empty() => {}
            Value::Table(inner) => {
                tables.push_str(&format!("\n[{table}.{}]\n", entry.key));
                inner.iter().for_each(|entry| write_entry(&mut tables, entry));
            }
            _ => write_entry(toml, entry),
        }
    }
    toml.push_str(&tables);
}

/// Writes `key = value`. The check has made sure that only strings, lists of strings and booleans come here.
fn write_entry(toml: &mut String, entry: &RawEntry) {
    let value = match &entry.node.value {
        Value::Text(text) => quoted(&to_own(text)),
        Value::Bool(flag) => flag.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::List(items) => {
            let texts = items.iter().filter_map(|item| match &item.value {
                Value::Text(text) => Some(quoted(&to_own(text))),
                _ => None,
            });
            format!("[{}]", texts.collect::<Vec<_>>().join(", "))
        }
        _ => return,
    };
    toml.push_str(&format!("{} = {value}\n", key(&entry.key)));
}

pub(crate) fn key(key: &str) -> String {
    if is_bare(key) { key.to_owned() } else { quoted(key) }
}

/// Formats a TOML string on one line.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Warns of values in `env` and `headers` that look like secrets in plain text.
fn note_secrets(document: &Document<'_>, server: &ForeignServer, warnings: &mut Vec<Warning>) {
    for (table, variable_from_name) in [("env", true), ("headers", false)] {
        let Some(entry) = server.entries().iter().find(|entry| entry.key == table) else {
            continue;
        };
        let Value::Table(inner) = &entry.node.value else {
            continue;
        };
        for entry in inner {
            let Value::Text(value) = &entry.node.value else {
                continue;
            };
            if !value.contains("${") && looks_secret(&entry.key, value) {
                let variable = if variable_from_name && crate::expand::is_name(&entry.key) {
                    entry.key.clone()
                } else {
                    variable(&format!("{}_{}", server.name, entry.key))
                };
                let path: KeyPath = server.path().child(table).child(&entry.key);
                let place = document.place(&path, entry.node.at);
                let note = Note::PlainSecret(variable);
                warnings.push(Warning { place, note });
            }
        }
    }
}

/// Returns `true` if the value under this name is probably a secret.
pub(crate) fn looks_secret(name: &str, value: &str) -> bool {
    /// Parts of words that name a secret, wherever they appear in the name.
    const NAMES: [&str; 8] = ["apikey", "token", "secret", "passw", "credential", "cookie", "bearer", "authoriz"];
    /// Words that name a secret only as whole words: `KEYBOARD`, `AUTHOR` and `PATH` begin like them.
    const WORDS: [&str; 5] = ["key", "keys", "auth", "pat", "pwd"];
    const VALUES: [&str; 8] = ["sk-", "ghp_", "gho_", "github_pat_", "xoxb-", "xoxp-", "glpat-", "AKIA"];
    let lower = name.to_ascii_lowercase();
    let named = NAMES.iter().any(|part| lower.contains(part)) || words(name).any(|word| WORDS.contains(&&*word));
    !value.is_empty() && (named || VALUES.iter().any(|start| value.starts_with(start)))
}

/// Splits a name into its words in lower case: those of `GH_PAT`, `X-Api-Key` and `apiKey`.
fn words(name: &str) -> impl Iterator<Item = String> {
    name.split(|c: char| !c.is_ascii_alphanumeric()).flat_map(|part| {
        let mut words = vec![String::new()];
        let mut small = false;
        for c in part.chars() {
            if small && c.is_ascii_uppercase() {
                words.push(String::new());
            }
            small = c.is_ascii_lowercase();
            if let Some(word) = words.last_mut() {
                word.push(c.to_ascii_lowercase());
            }
        }
        words
    })
}

/// Converts a text to the name of a variable: `files_X-Api-Key` becomes `FILES_X_API_KEY`.
pub(crate) fn variable(text: &str) -> String {
    let upper = text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    let variable: String = upper.collect();
    if variable.starts_with(|c: char| c.is_ascii_digit()) { format!("_{variable}") } else { variable }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What only begins like the name of a secret is none.
    #[test]
    fn a_secret_is_told_from_a_name_that_only_looks_like_one() {
        let plain =
            ["MEMORY_FILE_PATH", "PATH", "AUTHOR", "KEYBOARD_LAYOUT", "monkeyMode", "LOG_PATTERN", "compatMode"];
        for name in plain {
            assert!(!looks_secret(name, "x"), "{name}");
        }
        let secret = [
            "API_KEY",
            "apiKey",
            "OPENAI_APIKEY",
            "X-Api-Key",
            "GH_TOKEN",
            "GITHUB_PAT",
            "CLIENT_SECRET",
            "DB_PASSWORD",
            "Authorization",
            "BASIC_AUTH",
            "Cookie",
            "AWS_ACCESS_KEY_ID",
            "accessToken",
            "GOOGLE_APPLICATION_CREDENTIALS",
        ];
        for name in secret {
            assert!(looks_secret(name, "x"), "{name}");
            assert!(!looks_secret(name, ""), "{name}");
        }
        assert!(looks_secret("NAME", "ghp_0123"));
    }
}
