//! Compact text form of condition outcomes, in evaluation order: `5:b8` is yes, no, yes, yes, yes.

use smallvec::SmallVec;
use std::ops::Range;

/// Bit vector of outcomes. The first outcome is the highest bit of a word.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Outcomes {
    words: SmallVec<[u64; 4]>,
    /// Incomplete word. `filled` is its number of outcomes, less than 64.
    last: u64,
    filled: u32,
}

impl Outcomes {
    pub fn push(&mut self, held: bool) {
        self.push_run(u16::from(held), !held);
    }

    /// Appends `held` positive outcomes, and then a negative one if `missed` is set.
    #[inline]
    pub fn push_run(&mut self, held: u16, missed: bool) {
        let filled = self.filled + u32::from(held) + u32::from(missed);
        if filled < 64 {
            // `held` is less than 64 here.
            self.last |= !(u64::MAX >> held) >> self.filled;
            self.filled = filled;
        } else {
            (0..held).for_each(|_| self.push_bit(1));
            (0..u16::from(missed)).for_each(|_| self.push_bit(0));
        }
    }

    fn push_bit(&mut self, bit: u64) {
        self.last |= bit << (63 - self.filled);
        self.filled += 1;
        if self.filled == 64 {
            self.words.push(std::mem::take(&mut self.last));
            self.filled = 0;
        }
    }

    /// Returns a hash of the outcomes.
    pub fn mixed(&self, seed: u64) -> u64 {
        let mix = |hash: u64, word: &u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let whole = self.words.iter().fold(seed ^ u64::from(self.filled), mix);
        mix(whole, &self.last) >> 32
    }

    pub fn len(&self) -> usize {
        self.words.len() * 64 + self.filled as usize
    }

    /// Returns the outcomes from `start` on.
    pub fn from(&self, start: usize) -> impl Iterator<Item = bool> + '_ {
        self.within(start..self.len())
    }

    pub fn within(&self, range: Range<usize>) -> impl Iterator<Item = bool> + '_ {
        range.map(|at| self.word(at / 64) >> (63 - at % 64) & 1 == 1)
    }

    fn word(&self, at: usize) -> u64 {
        self.words.get(at).copied().unwrap_or(self.last)
    }

    /// Formats the number of outcomes and their bits in hexadecimal.
    pub fn text(&self) -> String {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut out = self.len().to_string();
        out.push(':');
        let digits = self.len().div_ceil(4);
        out.reserve(digits);
        for digit in 0..digits {
            let nibble = self.word(digit / 16) >> (60 - digit % 16 * 4) & 15;
            out.push(char::from(HEX[nibble as usize]));
        }
        out
    }

    /// Parses the output of [`Self::text`]. Fails if there are more than `longest` outcomes.
    pub fn parse(text: &str, longest: usize) -> Option<Self> {
        let (length, digits) = text.split_once(':')?;
        let length: usize = length.parse().ok().filter(|length| *length <= longest)?;
        if digits.len() != length.div_ceil(4) {
            return None;
        }
        let mut read = Self::default();
        for at in 0..length {
            let nibble = char::from(*digits.as_bytes().get(at / 4)?).to_digit(16)?;
            read.push(nibble >> (3 - at % 4) & 1 == 1);
        }
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_what_its_outcomes_are_one_by_one() {
        for before in 0..130 {
            for held in [0, 1, 2, 3, 31, 62, 63, 64, 65, 200] {
                for missed in [true, false] {
                    let (mut run, mut single) = (Outcomes::default(), Outcomes::default());
                    for at in 0..before {
                        run.push(at % 3 == 0);
                        single.push(at % 3 == 0);
                    }
                    run.push_run(held, missed);
                    (0..held).for_each(|_| single.push(true));
                    (0..usize::from(missed)).for_each(|_| single.push(false));
                    assert_eq!(run, single, "{held} held after {before}");
                    assert_eq!(run.mixed(7), single.mixed(7));
                }
            }
        }
    }

    #[test]
    fn outcomes_are_a_short_text_that_reads_back() {
        let mut outcomes = Outcomes::default();
        assert_eq!(outcomes.text(), "0:");
        for at in 0..70 {
            outcomes.push(at % 3 == 0);
        }
        assert_eq!(outcomes.text(), "70:924924924924924924");
        assert_eq!(Outcomes::parse(&outcomes.text(), 70), Some(outcomes.clone()));
        assert_eq!(outcomes.from(66).collect::<Vec<_>>(), [true, false, false, true]);
        for bad in ["", "5", "x:", "5:b", "5:b8b", "5:zz", "71:924924924924924924", "99999999999999999999:"] {
            assert_eq!(Outcomes::parse(bad, 70), None, "{bad}");
        }
    }
}
