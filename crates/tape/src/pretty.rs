//! Indents JSON for people, token by token: numbers and strings keep their notation.

/// Indentation of one level.
const INDENT: &str = "  ";
/// Maximum number of levels that are indented.
const DEEPEST: usize = 40;

/// Inserts line breaks and indentation between the tokens of `text`. Invalid JSON is indented as far as possible.
#[must_use]
pub fn pretty(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0_usize;
    let mut rest = text.trim();
    while let Some(char) = rest.chars().next() {
        let mut taken = char.len_utf8();
        match char {
            '"' => {
                taken = string_end(rest);
                out.push_str(&rest[..taken]);
            }
            '{' | '[' => {
                out.push(char);
                let inside = rest[1..].trim_start();
                if inside.starts_with(['}', ']']) {
                    taken = rest.len() - inside.len() + 1;
                    out.push_str(&inside[..1]);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(char);
            }
            ',' => {
                out.push(',');
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            ' ' | '\n' | '\r' | '\t' => {}
            _ => out.push(char),
        }
        rest = &rest[taken..];
    }
    out
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    out.push_str(&INDENT.repeat(depth.min(DEEPEST)));
}

/// Returns the length of the string at the start of `text`, with its quotes; an unterminated string takes the rest.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_stay_as_they_are_and_only_space_between_them_changes() {
        let text = r#" {"a":[1e400, 12345678901234567890123 ,"x, \"{"],"b":{ },"c":[]}"#;
        let shown = "{\n  \"a\": [\n    1e400,\n    12345678901234567890123,\n    \"x, \\\"{\"\n  ],\n  \"b\": {},\n  \"c\": []\n}";
        assert_eq!(pretty(text), shown);
        assert_eq!(pretty(shown), shown);
    }

    #[test]
    fn what_is_no_json_does_no_harm() {
        for text in ["", "\"open", "}}]", "{", "[[", "ünï"] {
            let _ = pretty(text);
        }
        assert!(pretty(&"[".repeat(1_000)).len() < 100_000);
    }
}
