//! Values that are recognised as a whole.

use super::gram_hasher::GramHasher;
use super::plain_form::plain_character;

/// Kind of a value that hardly stands in two texts by chance.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ValueKind {
    Email,
    Number,
    Token,
}

/// Value that hardly stands in two texts by chance.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct DistinctiveValue<'t> {
    pub(super) kind: ValueKind,
    /// Value as it is written, for a number with its separators.
    pub(super) text: &'t str,
}

impl<'t> DistinctiveValue<'t> {
    /// Returns the characters that are compared.
    fn characters(self) -> impl Iterator<Item = char> + use<'t> {
        let is_number = self.kind == ValueKind::Number;
        let counts = move |character: &char| !is_number || character.is_ascii_digit();
        self.text.chars().filter_map(plain_character).filter(counts)
    }

    pub(super) fn hash(self, hasher: &GramHasher) -> u64 {
        hasher.value(self.kind as u32, self.characters())
    }

    pub(super) fn length(self) -> usize {
        self.characters().count()
    }
}
