//! Words before a number that say what it is.

use super::segment::Segment;

/// Maximum distance between a word and its number, in bytes.
const REACH: usize = 16;
/// Maximum length of a word that is looked for, in bytes.
const LONGEST: usize = 16;

/// Returns the first answer that is given about a word before an offset, nearest word first. The words are in lower
/// case; names such as `homePhone` are divided. Words before another number are not asked about.
pub(super) fn nearest<T>(segment: Segment<'_>, at: usize, mut answer: impl FnMut(&str) -> Option<T>) -> Option<T> {
    let text = segment.text();
    let mut start = segment.boundary(at.saturating_sub(REACH + LONGEST));
    // A word that begins before the window is not seen in full.
    let cut = text.get(..start)?.chars().next_back().is_some_and(char::is_alphabetic);
    let window = text.get(start..at)?;
    start += window.find(|character: char| !cut || !character.is_alphabetic())?;
    let window = text.get(start..at)?;
    let window = window.rsplit(|character: char| character.is_ascii_digit()).next()?;
    let start = at - window.len();
    for (word_at, word) in words(window).into_iter().rev() {
        let end = start + word_at + word.len();
        let answer = if at - end <= REACH { answer(&word.to_lowercase()) } else { None };
        if answer.is_some() {
            return answer;
        }
    }
    None
}

/// Returns the words of a text with their offsets. A capital after a small letter begins a word.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut start = None;
    let mut is_small = false;
    let mut end_word = |start: &mut Option<usize>, end: usize| {
        if let Some(from) = start.take()
            && let Some(word) = text.get(from..end)
        {
            words.push((from, word));
        }
    };
    for (at, character) in text.char_indices() {
        if !character.is_alphabetic() || is_small && character.is_uppercase() {
            end_word(&mut start, at);
        }
        if character.is_alphabetic() && start.is_none() {
            start = Some(at);
        }
        // The first letter of `iPhone` is no word.
        is_small = character.is_lowercase() && start != Some(at);
    }
    end_word(&mut start, text.len());
    words
}
