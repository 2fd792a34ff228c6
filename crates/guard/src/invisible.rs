//! Characters that a reader does not see, or that change how the text around them is shown.

use signalbox_wire::printable::is_harmful;

/// Returns `true` for control characters, direction marks and every code point that Unicode declares ignorable when
/// there is no glyph for it (`Default_Ignorable_Code_Point`, Unicode 16). Variation selectors are among them because a
/// row of them can carry hidden text.
#[must_use]
pub(crate) fn is_invisible(char: char) -> bool {
    is_harmful(char)
        || matches!(
            char,
            '\u{ad}'
                | '\u{34f}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{206a}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fff8}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_spaces_are_visible() {
        for char in " aé漢😀-_.~'\u{301}".chars() {
            assert!(!is_invisible(char), "{char:?}");
        }
    }

    #[test]
    fn ignorable_characters_are_invisible() {
        for char in "\0\u{7f}\u{ad}\u{200b}\u{200d}\u{202e}\u{2066}\u{3164}\u{fe0f}\u{feff}\u{e0041}\u{e0101}".chars() {
            assert!(is_invisible(char), "{char:?}");
        }
    }
}
