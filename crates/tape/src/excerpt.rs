//! The part of a message that shows why a search found it.

/// Returns at most `most` characters of a message, around the first word of the searched text.
#[must_use]
pub fn excerpt(message: &str, text: Option<&str>, most: usize) -> String {
    let word = text.and_then(|text| text.split_whitespace().next()).map(|word| word.trim_matches('"').to_lowercase());
    let found = word.filter(|word| !word.is_empty()).and_then(|word| message.to_lowercase().find(&word)).unwrap_or(0);
    let before = message.char_indices().take_while(|(at, _)| *at < found).count();
    let start = before.saturating_sub(most / 3);
    let part: String = message.chars().skip(start).take(most).collect();
    let more = message.chars().nth(start + most).is_some();
    format!("{}{part}{}", if start > 0 { "…" } else { "" }, if more { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_in_the_middle_and_the_rest_is_cut() {
        let long = format!("{}needle{}", "a".repeat(500), "b".repeat(500));
        let shown = excerpt(&long, Some("NEEDLE other"), 60);
        assert!(shown.starts_with('…') && shown.ends_with('…') && shown.contains("needle"), "{shown}");
        assert_eq!(shown.chars().count(), 62);
        assert_eq!(excerpt("short", Some("absent"), 60), "short");
        assert_eq!(excerpt("ünï", None, 2), "ün…");
    }
}
