//! Undoes spellings that hide words from a search: look-alikes, digits for letters, spaced-out letters.

use unicode_normalization::UnicodeNormalization as _;

/// Minimum number of single letters in a row that count as a spaced-out word.
const MIN_SPACED: usize = 6;
/// Maximum number of spellings of one word with digits.
const MAX_SPELLINGS: usize = 256;

/// Shifts letters along the alphabet.
pub(super) fn rotate(text: &str, shift: u8) -> String {
    let shifted = |letter: u8, first: u8| char::from(first + (letter - first + shift) % 26);
    let rotate = |character: char| match u8::try_from(character) {
        Ok(letter @ b'a'..=b'z') => shifted(letter, b'a'),
        Ok(letter @ b'A'..=b'Z') => shifted(letter, b'A'),
        _ => character,
    };
    text.chars().map(rotate).collect()
}

/// Returns the digits and signs that stand for a letter.
const fn digits_for(letter: char) -> &'static [char] {
    match letter {
        'a' => &['4', '@'],
        'e' => &['3'],
        'i' => &['1', '!'],
        'o' => &['0'],
        's' => &['5', '$'],
        't' => &['7'],
        'g' => &['9'],
        _ => &[],
    }
}

/// Returns the spellings of a word with at least one digit for a letter, shortened to the first letters where the
/// number of spellings would grow too large.
pub(super) fn leet_spellings(word: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for letter in word.chars() {
        let choices = 1 + digits_for(letter).len();
        if all.len() * choices > MAX_SPELLINGS {
            break;
        }
        all = all
            .iter()
            .flat_map(|start| {
                let letters = std::iter::once(letter).chain(digits_for(letter).iter().copied());
                letters.map(move |letter| format!("{start}{letter}"))
            })
            .collect();
    }
    all.retain(|spelling| spelling.len() >= 5 && spelling.contains(|c: char| !c.is_ascii_alphabetic() && c != ' '));
    all
}

/// Replaces digits within words by the letters they stand for.
pub(super) fn fold_digits(text: &str) -> String {
    let fold = |word: &str| -> String {
        let letters = word.chars().filter(char::is_ascii_alphabetic).count();
        if letters == 0 {
            return word.to_owned();
        }
        let letter = |character| match character {
            '4' | '@' => 'a',
            '3' => 'e',
            '1' | '!' | '|' => 'i',
            '0' => 'o',
            '5' | '$' => 's',
            '7' | '+' => 't',
            '9' => 'g',
            other => other,
        };
        word.chars().map(letter).collect()
    };
    text.split_inclusive(char::is_whitespace).map(fold).collect()
}

/// Returns true for letters that look like Latin ones or are variants of them.
const fn is_look_alike(character: char) -> bool {
    matches!(character,
        '\u{0250}'..='\u{02af}' | '\u{0370}'..='\u{03ff}' | '\u{0400}'..='\u{052f}' | '\u{0530}'..='\u{058f}'
        | '\u{13a0}'..='\u{13ff}' | '\u{1d00}'..='\u{1d7f}' | '\u{2c60}'..='\u{2c7f}' | '\u{a4d0}'..='\u{a4ff}')
}

/// Returns true for styled copies of letters: fullwidth, mathematical, enclosed.
const fn is_styled(character: char) -> bool {
    matches!(character,
        '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d7ff}' | '\u{24b6}'..='\u{24e9}'
        | '\u{249c}'..='\u{24b5}' | '\u{1f110}'..='\u{1f189}' | '\u{1d2c}'..='\u{1d6a}' | '\u{2100}'..='\u{214f}')
}

/// Returns the text with look-alikes replaced by ASCII, or `None` if no word mixes them with ASCII letters.
pub(crate) fn fold_look_alikes(text: &str) -> Option<String> {
    let mut previous = ' ';
    let mixed = |before: char, character: char| {
        is_styled(character) && is_styled(before)
            || is_look_alike(character) && before.is_ascii_alphabetic()
            || is_look_alike(before) && character.is_ascii_alphabetic()
    };
    let suspicious = text.chars().any(|character| {
        let found = mixed(previous, character);
        previous = character;
        found
    });
    suspicious.then(|| text.chars().map(fold_character).collect())
}

/// Returns the ASCII letter that a character looks like, or the character.
fn fold_character(character: char) -> char {
    if character.is_ascii() {
        return character;
    }
    let mut compatible = std::iter::once(character).nfkc().filter(|part| *part != '(' && *part != ')');
    if let (Some(plain), None) = (compatible.next(), compatible.next())
        && plain.is_ascii()
    {
        return plain;
    }
    let enclosed = match character {
        '\u{1f130}'..='\u{1f149}' => char::from_u32(u32::from(character) - 0x1f130 + 0x41),
        '\u{1f150}'..='\u{1f169}' => char::from_u32(u32::from(character) - 0x1f150 + 0x41),
        '\u{1f170}'..='\u{1f189}' => char::from_u32(u32::from(character) - 0x1f170 + 0x41),
        // Their prototype is a small L, which would not spell a word.
        'Ι' | 'І' | 'Ӏ' => Some('I'),
        'ι' | 'і' => Some('i'),
        _ => None,
    };
    if let Some(letter) = enclosed {
        return letter;
    }
    let text = character.to_string();
    let mut prototype =
        unicode_security::skeleton(&text).filter(|part| !unicode_normalization::char::is_combining_mark(*part));
    match (prototype.next(), prototype.next()) {
        (Some(plain), None) if plain.is_ascii() => plain,
        _ => character,
    }
}

/// Returns the text with spaced-out words joined, or `None` if it has none.
///
/// Letters are joined over one separator; longer gaps end a word. A text in which every gap has one separator becomes
/// one long word, which only a search for squashed orders understands.
pub(super) fn join_letters(text: &str) -> Option<String> {
    let characters: Vec<char> = text.chars().collect();
    let is_letter = |at: usize| characters.get(at).is_some_and(|character| character.is_alphabetic());
    let is_gap = |at: usize| characters.get(at).is_some_and(|character| " .-_*|/·•,+~".contains(*character));
    let single = |at: usize| is_letter(at) && !is_letter(at + 1) && (at == 0 || !is_letter(at - 1));
    let mut joined = String::new();
    let (mut at, mut found) = (0, false);
    // Once a word is spaced out, shorter ones are, too.
    let mut least = MIN_SPACED;
    while at < characters.len() {
        let mut end = at;
        let mut word = String::new();
        while single(end) {
            word.extend(characters.get(end));
            end += 1;
            if is_gap(end) && single(end + 1) {
                end += 1;
            } else {
                break;
            }
        }
        if word.chars().count() >= least {
            (joined, found, least) = (joined + &word, true, 2);
        } else if end > at {
            joined.extend(characters.get(at..end).unwrap_or_default());
        } else {
            joined.extend(characters.get(at));
            end = at + 1;
        }
        at = end;
    }
    found.then_some(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ciphers_and_spellings_are_undone() {
        assert_eq!(rotate("Vtaber cerivbhf!", 13), "Ignore previous!");
        assert_eq!(rotate(&rotate("Xyz", 3), 23), "Xyz");
        assert_eq!(fold_digits("1gn0r3 4ll 12 5y5t3m"), "ignore all 12 system");
        assert_eq!(join_letters("say i g n o r e   p.r.e.v.i.o.u.s, xy"), Some("say ignore   previous, xy".to_owned()));
        assert_eq!(join_letters("a b c plain"), None);
        assert!(leet_spellings("ignore").contains(&"1gn0r3".to_owned()));
    }

    #[test]
    fn look_alikes_are_folded_only_in_mixed_words() {
        assert_eq!(fold_look_alikes("іgnоrе рrеvіоus").as_deref(), Some("ignore previous"));
        assert_eq!(fold_look_alikes("ｉｇｎｏｒｅ 𝐚𝐥𝐥 🅘").as_deref(), Some("ignore all I"));
        assert_eq!(fold_look_alikes("игнорируй and Ελλάδα, 5 µm"), None);
    }
}
