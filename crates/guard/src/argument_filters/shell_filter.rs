//! Shell syntax in values that are given to a command as a word.

use super::command_words::{is_command_word, is_dangerous_option};
use super::finding::{FilterKind, FindingRisk, Violation};
use super::text_readings::{prefix, text_readings};

/// Number of bytes after an operator in which a command must begin and end.
const MAX_COMMAND: usize = 64;
/// Maximum number of escaped line breaks that are examined.
const MAX_ESCAPES: usize = 256;

/// Strictness of the check for shell syntax.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum WordKind {
    /// File names may contain any character, so a command must follow the operator.
    Path,
    /// Name of a branch, a package or a container.
    Identifier,
    /// Element of an argument list.
    ShellWord,
}

fn shell(risk: FindingRisk, reason: &'static str) -> Option<Violation> {
    Some(Violation::new(FilterKind::Shell, risk, reason))
}

/// Checks a word for operators and substitutions of a shell, and for options that run programs.
pub(super) fn check_word(value: &str, kind: WordKind) -> Option<Violation> {
    let readings = text_readings(value);
    let lower = value.trim().to_lowercase();
    if is_dangerous_option(&lower) || lower.starts_with("ext::") {
        return shell(FindingRisk::High, "option that runs a program");
    }
    let is_option = kind == WordKind::Identifier
        && lower
            .strip_prefix('-')
            .is_some_and(|rest| rest.starts_with(|first: char| first == '-' || first.is_ascii_alphabetic()));
    let found = readings.iter().find_map(|text| check_reading(text));
    found.or_else(
        || if is_option { shell(FindingRisk::Medium, "name that a command takes for an option") } else { None },
    )
}

fn check_reading(text: &str) -> Option<Violation> {
    let has_substitution =
        text.split_once("$(").is_some_and(|(_, after)| after.contains(')') && !after.starts_with('('))
            || text
                .split_once('`')
                .is_some_and(|(_, after)| after.split_once('`').is_some_and(|(inner, _)| starts_command(inner)))
            || text.to_lowercase().contains("${ifs}")
            || text.contains("$IFS");
    if has_substitution {
        return shell(FindingRisk::High, "value with a command substitution");
    }
    let operators = text.char_indices().filter(|(_, char)| matches!(char, ';' | '|' | '&' | '\n' | '\r'));
    // Escapes that the tool's own language turns into line breaks.
    let escapes = text
        .match_indices("\\n")
        .filter(|(at, _)| *at == 0 || text.get(..*at).is_some_and(|before| before.ends_with(['"', '\'', ' '])));
    let breaks_line = escapes
        .take(MAX_ESCAPES)
        .any(|(at, _)| starts_command(prefix(text.get(at + 2..).unwrap_or_default(), MAX_COMMAND)));
    if breaks_line {
        return shell(FindingRisk::High, "value with a line break and a command");
    }
    // Each operator looks at the next word only.
    for (at, operator) in operators {
        let start = at + operator.len_utf8();
        let after = prefix(text.get(start..).unwrap_or_default(), MAX_COMMAND);
        let spaced = after.trim_start_matches([' ', '\t', '&', '|', '"', '\'']);
        if starts_command(spaced) {
            return shell(FindingRisk::High, "value with a shell operator and a command");
        }
    }
    let redirects = [" > /", " >/", " >> /", " >>/", "< /etc", "</etc"].iter().any(|redirect| text.contains(redirect));
    if redirects { shell(FindingRisk::Medium, "value with a redirection") } else { None }
}

/// Returns `true` if a text starts with a command that exists on most machines, and ends or continues with arguments.
fn starts_command(text: &str) -> bool {
    let word: String = text
        .chars()
        .take(40)
        .take_while(|char| char.is_ascii_alphanumeric() || matches!(char, '/' | '_' | '-' | '.'))
        .collect();
    let after = text.get(word.len()..).and_then(|rest| rest.chars().next());
    let ends = after.is_none_or(|after| {
        after.is_whitespace()
            || matches!(
                after,
                ';' | '|' | '&' | '<' | '>' | '#' | '`' | '"' | '\'' | '$' | '{' | ')' | '%' | '^' | '\\'
            )
    });
    let name = word.rsplit('/').next().unwrap_or_default().to_lowercase();
    let is_call =
        after == Some('(') && matches!(name.as_str(), "system" | "exec" | "popen" | "passthru" | "shell_exec");
    is_call || (ends && is_command_word(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_commands_are_found() {
        for value in [
            "x; rm -rf /",
            "x;id",
            "x|whoami",
            "x && curl a.example",
            "x || ls",
            "$(id)",
            "`id`",
            "a\ncat /etc/passwd",
            "x & ping -c 1 a",
            "main;${IFS}id",
            "x;cat$IFS/etc/passwd",
            "--upload-pack=touch x",
            "-oProxyCommand=id",
            "ext::sh -c id",
            "x%3Bid",
            "x%0aid",
            "x > /etc/cron.d/x",
            "\"; ls; \"",
            "x;/bin/sh",
            "x | nc a 1",
            "\\n/bin/ls -al\\n",
            ";id\\n",
            ";system('id')",
        ] {
            assert!(check_word(value, WordKind::Path).is_some(), "{value}");
        }
        assert!(check_word("--force", WordKind::Identifier).is_some());
    }

    #[test]
    fn names_with_unusual_characters_pass() {
        for value in [
            "",
            "a.txt",
            "R&D/plan.md",
            "Tom & Jerry",
            "a;b",
            "a|b",
            "--force",
            "-la",
            "x (1).pdf",
            "$HOME/x",
            "a=b",
            "feature/x",
            "it's",
            "`code`",
            "1;2",
            "rock;roll",
            "https://a.example/?a=1&b=2",
            "a>b",
            "<b>x</b>",
            "id;name",
            "C:\\a;C:\\b",
        ] {
            assert_eq!(check_word(value, WordKind::Path), None, "{value}");
            assert_eq!(check_word(value, WordKind::ShellWord), None, "{value}");
        }
    }
}
