//! Recognises where a text talks about an order instead of giving it.

use aho_corasick::AhoCorasick;
use std::sync::LazyLock;

/// Number of bytes on each side in which words of a discussion count.
const NEAR: usize = 600;
/// Number of bytes before an order in which the start of fenced code is looked for.
const FENCE_REACH: usize = 8192;
/// Share of the weight that a quoted order in a discussion keeps, in percent. A text cannot buy innocence: an order
/// with several signals stays above the threshold.
const QUOTED_PERCENT: u32 = 25;
/// Share of the weight that an order in a discussion keeps where it is not quoted, in percent.
const MENTIONED_PERCENT: u32 = 75;

/// Words of texts about attacks on models.
const WORDS: &[&str] = &[
    "prompt injection",
    "prompt-injection",
    "promptinjection",
    "prompt_injection",
    "injection attack",
    "jailbreak",
    "red team",
    "red-team",
    "adversarial",
    "attacker",
    "malicious",
    "payload",
    "vulnerab",
    "exploit",
    "owasp",
    "guardrail",
    "threat model",
    "poisoning",
    "detector",
    "security research",
    "mitigat",
    "sanitiz",
    "prompt-injektion",
    "injection de prompt",
    "inyección de prompt",
    "提示注入",
    "プロンプトインジェクション",
    "промпт-инъекц",
    "test case",
    "blocklist",
    "heuristic",
];

static INDEX: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(WORDS).ok());

/// Returns the share of its weight that an order at `start..end` keeps, in percent.
pub(super) fn kept_percent(text: &str, start: usize, end: usize) -> u32 {
    let bytes = text.as_bytes();
    let near = bytes.get(start.saturating_sub(NEAR)..end.saturating_add(NEAR).min(bytes.len())).unwrap_or_default();
    let mut words: Vec<usize> =
        INDEX.iter().flat_map(|index| index.find_iter(near)).map(|found| found.pattern().as_usize()).collect();
    words.sort_unstable();
    words.dedup();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80;
    let matched = bytes.get(start..end).unwrap_or_default();
    let last = matched.iter().rposition(is_word).map_or(end, |at| start + at + 1);
    match (words.len(), is_quoted(text, start, last)) {
        (0, _) => 100,
        (_, true) => QUOTED_PERCENT,
        (1, false) => 100,
        (_, false) => MENTIONED_PERCENT,
    }
}

/// Returns true if a span stands in quotation marks, in code, in a block quotation or in an item of a list of strings.
fn is_quoted(text: &str, start: usize, end: usize) -> bool {
    const REACH: usize = 200;
    let bytes = text.as_bytes();
    let before = bytes.get(start.saturating_sub(REACH)..start).unwrap_or_default();
    let after = bytes.get(end..end.saturating_add(REACH).min(bytes.len())).unwrap_or_default();
    let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    let line = before.get(line_start..).unwrap_or_default();
    let line_end = memchr::memchr(b'\n', after).unwrap_or(after.len());
    let rest = after.get(..line_end).unwrap_or_default();
    let indented = line.starts_with(b"    ") || line.starts_with(b"\t") || line.trim_ascii_start().starts_with(b">");
    let pairs: [(&[u8], &[u8]); 5] = [
        (b"\"", b"\""),
        (b"`", b"`"),
        ("“".as_bytes(), "”".as_bytes()),
        ("«".as_bytes(), "»".as_bytes()),
        ("「".as_bytes(), "」".as_bytes()),
    ];
    let contains = |part: &[u8], mark: &[u8]| memchr::memmem::find(part, mark).is_some();
    let single =
        line.iter().zip(line.iter().skip(1)).any(|(first, second)| *second == b'\'' && !first.is_ascii_alphanumeric())
            && rest.contains(&b'\'');
    let earlier = bytes.get(start.saturating_sub(FENCE_REACH)..start).unwrap_or_default();
    let fences = memchr::memmem::find_iter(earlier, "```").count();
    indented
        || single
        || pairs.iter().any(|(open, close)| contains(line, open) && contains(rest, close))
        || fences % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(text: &str) -> u32 {
        let start = text.find("ORDER").unwrap();
        kept_percent(text, start, start + 5)
    }

    #[test]
    fn quotations_count_less_only_in_a_discussion() {
        assert_eq!(percent("In a prompt injection, a text says \"ORDER\" to the model."), QUOTED_PERCENT);
        assert_eq!(percent("prompt injection:\n```\nORDER\n```\n"), QUOTED_PERCENT);
        assert_eq!(percent("the payload:\n    ORDER\n"), QUOTED_PERCENT);
        let closed = "A prompt injection says \"ORDER\", for example.";
        let start = closed.find("ORDER").unwrap();
        assert_eq!(kept_percent(closed, start, start + 7), QUOTED_PERCENT);
        assert_eq!(percent("He said \"ORDER\" to the model."), 100);
        assert_eq!(percent("Not a jailbreak: ORDER"), 100);
        assert_eq!(percent("An attacker writes a payload: ORDER"), MENTIONED_PERCENT);
    }
}
