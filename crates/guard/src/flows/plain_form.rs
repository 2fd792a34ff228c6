//! Form in which texts are compared.

use crate::invisible::is_invisible;

/// Returns the characters of a text as they are compared, each with its place in bytes.
pub(super) fn plain_form(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut is_after_space = false;
    text.char_indices().filter_map(move |(at, character)| {
        let plain = plain_character(character)?;
        let is_repeated = plain == ' ' && is_after_space;
        is_after_space = plain == ' ';
        (!is_repeated).then_some((at, plain))
    })
}

/// Returns the character that stands for this one, or `None` for one that does not count.
#[inline]
pub(super) fn plain_character(character: char) -> Option<char> {
    match character {
        '!'..='~' => Some(character.to_ascii_lowercase()),
        ' ' | '\t'..='\r' => Some(' '),
        '\0'..='\u{7f}' => None,
        '‘' | '’' | '‚' | '‛' => Some('\''),
        '“' | '”' | '„' | '‟' => Some('"'),
        '\u{2010}'..='\u{2015}' | '−' => Some('-'),
        _ if character.is_whitespace() => Some(' '),
        _ if is_invisible(character) => None,
        _ => Some(character),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reformatting_does_not_change_the_form() {
        for (text, plain) in [
            ("Tab\t \r\n Case", "tab case"),
            ("“it’s” – fine\u{a0}…", "\"it's\" - fine …"),
            ("in\u{200b}vi\u{ad}si\u{0}ble", "invisible"),
            ("ÄÉ漢", "ÄÉ漢"),
        ] {
            assert_eq!(plain_form(text).map(|(_, character)| character).collect::<String>(), plain);
        }
    }

    #[test]
    fn white_space_around_invisible_characters_is_one_row() {
        let text = "a \u{200b} b";
        assert_eq!(plain_form(text).collect::<Vec<_>>(), [(0, 'a'), (1, ' '), (6, 'b')]);
    }
}
