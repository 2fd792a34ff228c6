//! Cleans and cuts foreign text, so that a terminal can show it.

use ratatui::text::Span;
use serde_json::Value;
use signalbox_control::table::harmless;
use signalbox_tape::pretty;

/// Maximum length of a text member, in characters.
const MAX_WORD: usize = 200;

/// Returns a text member of a fact, cleaned and shortened.
pub(super) fn word(value: &Value, key: &str) -> Option<String> {
    value[key].as_str().map(clean)
}

/// Returns a text on one line, cleaned and shortened.
pub(crate) fn clean(text: &str) -> String {
    let short: String = text.chars().take(MAX_WORD).collect();
    harmless(&short)
}

/// Cuts a text to at most `most` bytes, at a character boundary.
pub(super) fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns a message as lines, each cleaned.
pub(crate) fn lines(text: &str, most: usize) -> Vec<String> {
    let shown = cut(text, most);
    let mut lines: Vec<String> = pretty(shown).lines().map(harmless).collect();
    if shown.len() < text.len() {
        lines.push("…".to_owned());
    }
    lines
}

/// Pads or cuts a text to exactly `columns` columns.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let width = |text: &str| Span::raw(text).width();
    if width(text) <= columns {
        return format!("{text}{}", " ".repeat(columns - width(text)));
    }
    let mut out = String::new();
    let mut used = 0;
    for char in text.chars() {
        let wide = width(char.encode_utf8(&mut [0; 4]));
        if used + wide + 1 > columns {
            break;
        }
        out.push(char);
        used += wide;
    }
    if used < columns {
        out.push('…');
        used += 1;
    }
    format!("{out}{}", " ".repeat(columns.saturating_sub(used)))
}

/// Formats the time of day in UTC.
pub(super) fn clock(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000;
    format!("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

/// Formats a duration in microseconds with a unit that suits its size.
pub(crate) fn took(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} us"),
        1_000..1_000_000 => format!("{}.{} ms", micros / 1_000, micros / 100 % 10),
        _ => format!("{}.{} s", micros / 1_000_000, micros / 100_000 % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_fills_its_columns_exactly_however_wide_its_characters_are() {
        for text in ["", "short", "a text that is too long", "日本語のテキスト", "e\u{301}e\u{301}e\u{301}"] {
            for columns in 0..12 {
                assert_eq!(Span::raw(fit(text, columns)).width(), columns, "{text} {columns}");
            }
        }
        assert_eq!(fit("abcdef", 4), "abc…");
    }

    #[test]
    fn times_are_short() {
        assert_eq!([took(7), took(1_234), took(65_400_000)], ["7 us", "1.2 ms", "65.4 s"]);
        assert_eq!(clock(1_700_000_000_123), "22:13:20");
    }
}
