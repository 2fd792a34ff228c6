//! Classes of characters that decide whether an invisible character is needed.
//!
//! The ranges follow the Unicode Character Database: scripts with joining behaviour (`Joining_Type`,
//! `Indic_Syllabic_Category`), `Bidi_Class` R and AL, `Emoji`, and the bases of `StandardizedVariants.txt`. They are
//! ranges of blocks, so they include unassigned code points, which does no harm.

/// Scripts in which ZWJ and ZWNJ change letters: Arabic and its relatives, and the scripts of India and its neighbours.
const JOINING: &[(char, char)] = &[
    ('\u{0600}', '\u{08ff}'),
    ('\u{0900}', '\u{0dff}'),
    ('\u{0f00}', '\u{109f}'),
    ('\u{1780}', '\u{18af}'),
    ('\u{1900}', '\u{1aaf}'),
    ('\u{1b00}', '\u{1c4f}'),
    ('\u{a800}', '\u{a87f}'),
    ('\u{a8e0}', '\u{a9df}'),
    ('\u{aa60}', '\u{aaff}'),
    ('\u{abc0}', '\u{abff}'),
    ('\u{fb50}', '\u{fdff}'),
    ('\u{fe70}', '\u{fefe}'),
    ('\u{10a00}', '\u{10aff}'),
    ('\u{10d00}', '\u{10d3f}'),
    ('\u{11000}', '\u{11fff}'),
    ('\u{1e900}', '\u{1e95f}'),
];

/// Scripts that are written without spaces, in which U+200B marks where a line may break.
const SPACELESS: &[(char, char)] = &[
    ('\u{0e00}', '\u{0eff}'),
    ('\u{0f00}', '\u{109f}'),
    ('\u{1780}', '\u{17ff}'),
    ('\u{1950}', '\u{19ff}'),
    ('\u{1a20}', '\u{1aaf}'),
    ('\u{aa60}', '\u{aadf}'),
];

const RIGHT_TO_LEFT: &[(char, char)] = &[
    ('\u{0590}', '\u{08ff}'),
    ('\u{fb1d}', '\u{fdff}'),
    ('\u{fe70}', '\u{fefe}'),
    ('\u{10800}', '\u{10fff}'),
    ('\u{1e800}', '\u{1efff}'),
];

/// Characters that have an emoji or a text presentation, or join with others into one emoji.
const EMOJI: &[(char, char)] = &[
    ('\u{00a9}', '\u{00a9}'),
    ('\u{00ae}', '\u{00ae}'),
    ('\u{203c}', '\u{203c}'),
    ('\u{2049}', '\u{2049}'),
    ('\u{2122}', '\u{2122}'),
    ('\u{2139}', '\u{2139}'),
    ('\u{2190}', '\u{21ff}'),
    ('\u{2300}', '\u{23ff}'),
    ('\u{2460}', '\u{24ff}'),
    ('\u{25a0}', '\u{27bf}'),
    ('\u{2900}', '\u{297f}'),
    ('\u{2b00}', '\u{2bff}'),
    ('\u{3030}', '\u{303d}'),
    ('\u{3297}', '\u{3299}'),
    ('\u{1f000}', '\u{1faff}'),
];

/// Han characters, which take ideographic variation sequences.
const HAN: &[(char, char)] =
    &[('\u{3400}', '\u{4dbf}'), ('\u{4e00}', '\u{9fff}'), ('\u{f900}', '\u{faff}'), ('\u{20000}', '\u{3ffff}')];

/// Bases of standardized variants that are neither emoji nor Han.
const STANDARD_BASES: &[(char, char)] = &[
    ('0', '0'),
    ('\u{1000}', '\u{109f}'),
    ('\u{2018}', '\u{201d}'),
    ('\u{2200}', '\u{22ff}'),
    ('\u{2a00}', '\u{2aff}'),
    ('\u{3001}', '\u{3002}'),
    ('\u{a840}', '\u{a87f}'),
    ('\u{aa60}', '\u{aa7f}'),
    ('\u{ff01}', '\u{ff1f}'),
    ('\u{10ac0}', '\u{10aff}'),
    ('\u{13000}', '\u{1345f}'),
];

/// Marks that stack on any base. Marks that belong to one script are not among them.
const COMBINING: &[(char, char)] = &[
    ('\u{0300}', '\u{034e}'),
    ('\u{0350}', '\u{036f}'),
    ('\u{0483}', '\u{0489}'),
    ('\u{1ab0}', '\u{1aff}'),
    ('\u{1dc0}', '\u{1dff}'),
    ('\u{20d0}', '\u{20ff}'),
    ('\u{fe20}', '\u{fe2f}'),
];

const PRIVATE_USE: &[(char, char)] =
    &[('\u{e000}', '\u{f8ff}'), ('\u{f0000}', '\u{ffffd}'), ('\u{100000}', '\u{10fffd}')];

fn is_in(ranges: &[(char, char)], character: char) -> bool {
    let after = ranges.partition_point(|(first, _)| *first <= character);
    after.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|(_, last)| character <= *last)
}

pub(super) fn is_joining(character: char) -> bool {
    is_in(JOINING, character)
}

pub(super) fn is_spaceless(character: char) -> bool {
    is_in(SPACELESS, character)
}

pub(super) fn is_right_to_left(character: char) -> bool {
    is_in(RIGHT_TO_LEFT, character) && !is_direction_mark(character)
}

/// Returns true for marks of direction, which have no letter of their own.
pub(super) fn is_direction_mark(character: char) -> bool {
    matches!(character, '\u{061c}' | '\u{200e}' | '\u{200f}')
}

pub(super) fn is_emoji(character: char) -> bool {
    is_in(EMOJI, character)
}

/// Returns true if U+FE0E or U+FE0F may follow.
pub(super) fn takes_presentation(character: char) -> bool {
    is_emoji(character) || character.is_ascii_digit() || matches!(character, '#' | '*')
}

/// Returns true if one of U+FE00 to U+FE0D may follow.
pub(super) fn takes_standard_variant(character: char) -> bool {
    is_in(STANDARD_BASES, character) || is_han(character)
}

pub(super) fn is_han(character: char) -> bool {
    is_in(HAN, character)
}

pub(super) fn is_mongolian(character: char) -> bool {
    matches!(character, '\u{1800}'..='\u{180a}' | '\u{1810}'..='\u{18af}' | '\u{11660}'..='\u{1167f}')
}

/// Returns true for parts of Hangul syllables, around which the fillers of old Korean stand.
pub(super) fn is_jamo(character: char) -> bool {
    matches!(character, '\u{1100}'..='\u{115e}' | '\u{1161}'..='\u{11ff}' | '\u{a960}'..='\u{a97f}' | '\u{d7b0}'..='\u{d7ff}')
}

pub(super) fn is_hebrew(character: char) -> bool {
    matches!(character, '\u{0590}'..='\u{05ff}')
}

pub(super) fn is_combining(character: char) -> bool {
    is_in(COMBINING, character)
}

pub(super) fn is_private_use(character: char) -> bool {
    is_in(PRIVATE_USE, character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_in_order() {
        for ranges in [JOINING, SPACELESS, RIGHT_TO_LEFT, EMOJI, HAN, STANDARD_BASES, COMBINING, PRIVATE_USE] {
            assert!(ranges.iter().all(|(first, last)| first <= last), "{ranges:?}");
            assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ranges:?}");
        }
    }

    #[test]
    fn edges_belong_to_their_range() {
        assert!(is_joining('\u{0600}') && is_joining('\u{08ff}') && is_joining('ی') && is_joining('क'));
        assert!(!is_joining('\u{05ff}') && !is_joining('a') && !is_joining('ก'));
        assert!(is_right_to_left('ש') && is_right_to_left('ع') && !is_right_to_left('\u{061c}'));
        assert!(is_emoji('👩') && is_emoji('♀') && is_emoji('©') && !is_emoji('a'));
    }
}
