//! Checkable part of a canary in words that can be spoken.

use super::canary_key::PayloadLayout;
use super::{CanaryId, CanaryKey};
use std::ops::{ControlFlow, Range};

const CONSONANTS: &[u8; 16] = b"bdfghjklmnprstvz";
const VOWELS: &[u8; 4] = b"aeio";
/// Bits of a syllable, which is a consonant and a vowel.
const BITS: u32 = 6;
/// Number of syllables of a checkable part.
const LENGTH: usize = 12;
/// Number of syllables of a word.
const WORD: usize = 4;
pub(super) const LAYOUT: PayloadLayout = PayloadLayout { domain: 2, id_bits: 28, quick_bits: 4 };

const _: () = assert!(LAYOUT.bits() == BITS * LENGTH as u32);

/// Returns the checkable part for an id, as words that begin with capitals.
pub(super) fn write(key: &CanaryKey, id: CanaryId) -> String {
    let payload = key.payload(LAYOUT, id);
    let mut name = String::new();
    for index in 0..LENGTH {
        let syllable = (payload >> ((LENGTH - 1 - index) as u32 * BITS)) as usize & 63;
        let consonant = CONSONANTS.get(syllable >> 2).copied().map(char::from).unwrap_or_default();
        let is_first = index % WORD == 0;
        if is_first && index > 0 {
            name.push(' ');
        }
        name.push(if is_first { consonant.to_ascii_uppercase() } else { consonant });
        name.extend(VOWELS.get(syllable & 3).copied().map(char::from));
    }
    name
}

/// Calls `visit` with each genuine checkable part of a text. One separator may stand between two syllables.
pub(super) fn scan(
    text: &str,
    key: &CanaryKey,
    visit: &mut dyn FnMut(Range<usize>, CanaryId) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut starts = [0; LENGTH];
    let (mut payload, mut length) = (0_u128, 0_usize);
    let mut consonant: Option<(usize, usize)> = None;
    let mut is_after_separator = false;
    for (at, byte) in text.bytes().enumerate() {
        let letter = byte.to_ascii_lowercase();
        if let Some(value) = CONSONANTS.iter().position(|consonant| *consonant == letter) {
            // Two consonants in a row begin a name anew.
            length = if consonant.is_some() { 0 } else { length };
            (consonant, is_after_separator) = (Some((value, at)), false);
        } else if let (Some((high, start)), Some(low)) =
            (consonant.take(), VOWELS.iter().position(|vowel| *vowel == letter))
        {
            payload = (payload << BITS | (high << 2 | low) as u128) & ((1 << LAYOUT.bits()) - 1);
            starts.rotate_left(1);
            if let Some(last) = starts.last_mut() {
                *last = start;
            }
            length += 1;
            if length >= LENGTH
                && let Some(id) = key.open(LAYOUT, payload)
            {
                visit(starts.first().copied().unwrap_or(start)..at + 1, id)?;
            }
        } else {
            // A consonant without a vowel was taken above, and ends the name.
            let is_separator = matches!(byte, b' ' | b'-' | b'_' | b'.' | b'+' | b'\n' | b'\'');
            if !is_separator || is_after_separator || consonant_before(text, at) {
                length = 0;
            }
            is_after_separator = is_separator;
        }
    }
    ControlFlow::Continue(())
}

/// Returns true if a consonant stands directly before a place.
fn consonant_before(text: &str, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| text.as_bytes().get(before));
    before.is_some_and(|byte| CONSONANTS.contains(&byte.to_ascii_lowercase()))
}
