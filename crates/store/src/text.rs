//! Splits messages and search texts into words.
//!
//! A word is a run of letters and digits, in lower case. A Han or Kana character is a word of its own, because nothing
//! separates words in these scripts. Index and queries use the same split, so that they agree in every store.

use crate::limits::{MAX_QUERY_WORDS, MAX_TEXT_BYTES, MAX_WORD_BYTES};
use crate::short_word::ShortWord;
use signalbox_engine::record::{Body, StoreError};

/// A word of a text, in lower case.
#[derive(Copy, Clone, Debug)]
pub enum Word<'a> {
    /// A word of ASCII letters and digits, with its length.
    Short(ShortWord, usize),
    /// A word of any length and script.
    Text(&'a str),
}

impl Word<'_> {
    /// Calls `each` with the word as text.
    pub fn with<R>(self, each: impl FnOnce(&str) -> R) -> R {
        match self {
            Self::Short(word, length) => word.with(length, each),
            Self::Text(text) => each(text),
        }
    }
}

/// Passes every word of a body to `each`, in order. A binary body has none.
pub fn words_of(body: &[u8], each: impl FnMut(Word<'_>)) {
    if let Some(text) = beginning(body) {
        let json = text.trim_ascii_start().starts_with(['{', '[', '"']);
        cut(text, json, each);
    }
}

/// Returns true if the text of a stored body is searched: it is whole, or differs from an earlier one in a word. Other
/// copies of the same message would only be found twice.
pub fn is_searched(body: &Body) -> bool {
    match body {
        Body::Whole(_) => true,
        Body::Like { middle, .. } => holds_a_word(middle),
        Body::Left => false,
    }
}

/// Returns true if there are three letters in a row: a replaced id or number does not make a different text.
fn holds_a_word(middle: &[u8]) -> bool {
    let mut run = 0;
    middle.iter().any(|byte| {
        run = if byte.is_ascii_alphabetic() || *byte >= 0x80 { run + 1 } else { 0 };
        run == 3
    })
}

/// Returns the searchable beginning of a body, if it is UTF-8.
fn beginning(body: &[u8]) -> Option<&str> {
    let cut = &body[..body.len().min(MAX_TEXT_BYTES)];
    match std::str::from_utf8(cut) {
        Ok(text) => Some(text),
        // The limit may have cut a character in half. Any other invalid UTF-8 means a binary body.
        Err(error) if error.error_len().is_none() && cut.len() < body.len() => {
            std::str::from_utf8(&cut[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}

/// Part that a byte plays in a text.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Part {
    Separator,
    /// An ASCII letter or digit.
    Letter,
    /// Begins an escape in JSON, and separates in other text.
    Backslash,
    /// Belongs to a character that is not ASCII.
    Wide,
}

const PARTS: [Part; 256] = {
    let mut parts = [Part::Wide; 256];
    let mut byte = 0;
    while byte < 128 {
        parts[byte] = match byte as u8 {
            b'\\' => Part::Backslash,
            letter if letter.is_ascii_alphanumeric() => Part::Letter,
            _ => Part::Separator,
        };
        byte += 1;
    }
    parts
};

fn cut(text: &str, json: bool, mut each: impl FnMut(Word<'_>)) {
    let mut word = String::with_capacity(MAX_WORD_BYTES + 8);
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match PARTS[usize::from(*byte)] {
            Part::Separator => {
                give(&mut word, &mut each);
                at += 1;
            }
            Part::Letter => {
                if word.is_empty()
                    && let Some((short, length)) = ShortWord::read(bytes, at)
                    && let Some(Part::Separator) = bytes.get(at + length).map(|next| PARTS[usize::from(*next)])
                {
                    each(Word::Short(short, length));
                    at += length + 1;
                    continue;
                }
                let rest = &bytes[at..];
                let run = rest.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(rest.len());
                let (start, room) = (word.len(), MAX_WORD_BYTES.saturating_sub(word.len()));
                word.push_str(&text[at..at + run.min(room)]);
                word[start..].make_ascii_lowercase();
                at += run;
            }
            Part::Backslash if json => {
                let (character, length) = escaped(&bytes[at..]);
                take(&mut word, character, &mut each);
                at += length;
            }
            Part::Backslash => {
                give(&mut word, &mut each);
                at += 1;
            }
            Part::Wide => {
                let character = text[at..].chars().next().unwrap_or(' ');
                take(&mut word, character, &mut each);
                at += character.len_utf8();
            }
        }
    }
    give(&mut word, &mut each);
}

fn give(word: &mut String, each: &mut impl FnMut(Word<'_>)) {
    if !word.is_empty() {
        each(Word::Text(word));
        word.clear();
    }
}

fn take(word: &mut String, character: char, each: &mut impl FnMut(Word<'_>)) {
    if !character.is_alphanumeric() {
        give(word, each);
    } else if stands_alone(character) {
        give(word, each);
        word.push(character);
        give(word, each);
    } else if word.len() < MAX_WORD_BYTES {
        word.extend(character.to_lowercase());
    }
}

fn stands_alone(character: char) -> bool {
    matches!(character as u32, 0x3040..=0x30ff | 0x3400..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

/// Decodes the character after a backslash. Returns it with the number of bytes it took.
fn escaped(bytes: &[u8]) -> (char, usize) {
    let unit = |at: usize| {
        let digits = bytes.get(at..at + 6).filter(|part| part.starts_with(b"\\u"))?;
        u32::from_str_radix(std::str::from_utf8(&digits[2..]).ok()?, 16).ok()
    };
    match (bytes.get(1), unit(0)) {
        (Some(b'u'), Some(high @ 0xd800..=0xdbff)) => match unit(6) {
            Some(low @ 0xdc00..=0xdfff) => {
                let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                (char::from_u32(code).unwrap_or(' '), 12)
            }
            _ => (' ', 6),
        },
        (Some(b'u'), Some(code)) => (char::from_u32(code).unwrap_or(' '), 6),
        (Some(byte), _) if byte.is_ascii() => (' ', 2),
        _ => (' ', 1),
    }
}

/// Search text: phrases of one or more words, all of which a message must contain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Needle {
    phrases: Vec<Vec<String>>,
}

impl Needle {
    /// Parses words, and phrases in quotes. Returns `None` for blank text.
    pub fn read(text: &str) -> Result<Option<Self>, StoreError> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let mut phrases = Vec::new();
        for (place, part) in text.split('"').enumerate() {
            if place % 2 == 1 {
                phrases.push(phrase(part));
            } else {
                phrases.extend(part.split_whitespace().map(phrase));
            }
        }
        phrases.retain(|words| !words.is_empty());
        match phrases.iter().map(Vec::len).sum::<usize>() {
            0 => Err(StoreError::Query(format!("`{}` contains no word to search for", text.trim()))),
            count if count > MAX_QUERY_WORDS => {
                Err(StoreError::Query(format!("{count} words are too many; search for at most {MAX_QUERY_WORDS}")))
            }
            _ => Ok(Some(Self { phrases })),
        }
    }

    /// Returns its distinct words.
    pub fn words(&self) -> Vec<&str> {
        let mut words: Vec<&str> = self.phrases.iter().flatten().map(String::as_str).collect();
        words.sort_unstable();
        words.dedup();
        words
    }

    /// Returns true if the body contains every phrase.
    pub fn is_in(&self, body: &[u8]) -> bool {
        // One bit for each prefix of a phrase that ends at the word just read.
        let mut states = vec![0u32; self.phrases.len()];
        let mut found = vec![false; self.phrases.len()];
        words_of(body, |word| {
            word.with(|word| {
                for (place, phrase) in self.phrases.iter().enumerate() {
                    let here = phrase.iter().enumerate().filter(|(_, wanted)| *wanted == word);
                    let mask = here.fold(0, |mask, (bit, _)| mask | 1 << bit);
                    states[place] = (states[place] << 1 | 1) & mask;
                    found[place] |= states[place] >> (phrase.len() - 1) & 1 == 1;
                }
            })
        });
        found.into_iter().all(|found| found)
    }
}

fn phrase(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    cut(text, false, |word| words.push(word.with(str::to_owned)));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &[u8], words: &str) {
        let mut found = Vec::new();
        words_of(body, |word| found.push(word.with(str::to_owned)));
        assert_eq!(found.join(" "), words);
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_in_lower_case() {
        check(br#"{"method":"tools/call","n":-3.25}"#, "method tools call n 3 25");
        check("Grüße aus ÅRHUS".as_bytes(), "grüße aus århus");
        check("天気は fine".as_bytes(), "天 気 は fine");
        check(b"", "");
    }

    #[test]
    fn escapes_of_json_are_undone_and_those_of_other_text_are_not() {
        check(br#"{"a":"x\ny\u00e9z\ud83d\ude00w \"q\""}"#, "a x yéz w q");
        check(br"C:\new", "c new");
        check(br#"{"a":"\ud83d\ux"}"#, "a x");
        check(b"{\"a\\", "a");
    }

    #[test]
    fn no_text_has_no_words_but_a_cut_character_does_no_harm() {
        check(b"ab\xffcd", "");
        let mut long = vec![b'a'; MAX_TEXT_BYTES - 1];
        long.extend("é and more".as_bytes());
        check(&long, &"a".repeat(MAX_WORD_BYTES));
    }

    #[test]
    fn phrases_are_words_that_follow_each_other() {
        let finds = |text: &str, body: &str| Needle::read(text).unwrap().unwrap().is_in(body.as_bytes());
        assert!(finds("red fox", "the fox is red"));
        assert!(!finds("\"red fox\"", "the fox is red"));
        assert!(finds("\"red fox\"", "a red red fox"));
        assert!(finds("customer_id", "{\"customer_id\":7}"));
        assert!(!finds("customer_id", "id of the customer"));
        assert!(!finds("fo", "fox"));
    }

    #[test]
    fn what_holds_no_word_is_said_and_too_many_are_refused() {
        assert_eq!(Needle::read("  "), Ok(None));
        assert_eq!(Needle::read("*"), Err(StoreError::Query("`*` contains no word to search for".into())));
        assert!(Needle::read(&"a ".repeat(40)).is_err());
        let quoted = Needle::read("\"a b").unwrap().unwrap();
        assert_eq!(quoted.words(), ["a", "b"]);
    }
}
