//! Points of a text and the signals behind them.

use std::ops::Range;

/// Length of the stretch of text in which signals add up, in bytes. An order is rarely longer, and a long document
/// must not become suspicious by its length.
pub(super) const STRETCH: usize = 1500;
/// Maximum length of an excerpt, in bytes.
const MAX_EXCERPT: usize = 160;
/// Maximum share of the points of a stretch that harmless words take off, in percent.
const MAX_RELIEF_PERCENT: u32 = 75;
/// Number of different notable signals that harmless words do not excuse, and half of the number of any signals.
const MANY: usize = 5;
/// Points from which a signal is notable.
const NOTABLE: u32 = 8;

/// Words near signals that take points off.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Relief {
    /// Index of the rule.
    pub(super) rule: usize,
    /// Position in the text.
    pub(super) at: usize,
    pub(super) points: u32,
}

/// Judgement of a text.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstructionVerdict {
    /// No sign of hidden instructions worth mentioning.
    Clean,
    /// Signals that a person should look at.
    Suspicious,
    /// Signals that have hardly another explanation.
    Attack,
}

/// Form of the text in which a signal was found.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextForm {
    /// As it is written.
    Plain,
    /// As it is written, within a comment or a hidden element.
    Hidden,
    /// Without characters that have no glyph.
    Visible,
    /// Invisible characters after decoding.
    Invisible,
    /// With look-alike letters and digits folded.
    Folded,
    /// With spaced-out letters joined.
    Joined,
    /// With escapes undone once.
    Unescaped,
    /// Base64 or hexadecimal digits, decoded.
    Encoded,
    /// Letters rotated by thirteen.
    Rotated,
    /// Read from its end.
    Reversed,
}

/// One sign of an instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signal<'a> {
    /// Id of the rule.
    pub rule: &'a str,
    /// Meaning of the rule for people.
    pub about: &'a str,
    /// Points after allowances for hiding places and quotations.
    pub weight: u32,
    pub form: TextForm,
    /// Bytes in the text of that form; for `Plain` and `Hidden`, in the scored text.
    pub span: Range<usize>,
    /// The matched words, shortened.
    pub excerpt: String,
}

/// Points of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Score<'a> {
    /// Largest sum of the weights of different rules within a stretch of text.
    pub points: u32,
    /// Signals in the order of their positions, by form.
    pub signals: Vec<Signal<'a>>,
    pub verdict: InstructionVerdict,
}

/// Returns the largest sum of weights in a stretch. A rule counts once per stretch, with its heaviest match. Relief
/// counts once per rule too, and takes at most `most` points off.
pub(super) fn largest_sum(signals: &[Signal<'_>], reliefs: &[Relief], most: u32) -> u32 {
    let mut largest = 0;
    for (index, first) in signals.iter().enumerate() {
        let start = first.span.start;
        let within = |signal: &&Signal<'_>| signal.span.start < start.saturating_add(STRETCH);
        let mut weights: Vec<(&str, u32)> = Vec::new();
        for signal in signals.get(index..).unwrap_or_default().iter().take_while(within) {
            match weights.iter_mut().find(|(rule, _)| *rule == signal.rule) {
                Some((_, weight)) => *weight = (*weight).max(signal.weight),
                None => weights.push((signal.rule, signal.weight)),
            }
        }
        let sum: u32 = weights.iter().map(|(_, weight)| weight).sum();
        if sum > largest {
            let different = weights.iter().filter(|(_, weight)| *weight >= NOTABLE).count();
            let percent = if different < MANY && weights.len() < MANY * 2 { MAX_RELIEF_PERCENT } else { 0 };
            let taken = relief_around(start, reliefs).min(most).min(sum.saturating_mul(percent) / 100);
            largest = largest.max(sum - taken);
        }
    }
    largest
}

/// Returns the points that are taken off the stretch at a position, also by words before it.
fn relief_around(start: usize, reliefs: &[Relief]) -> u32 {
    let range = start.saturating_sub(STRETCH / 2)..start.saturating_add(STRETCH);
    let mut rules: Vec<(usize, u32)> = Vec::new();
    for relief in reliefs.iter().filter(|relief| range.contains(&relief.at)) {
        if !rules.iter().any(|(rule, _)| *rule == relief.rule) {
            rules.push((relief.rule, relief.points));
        }
    }
    rules.iter().map(|(_, points)| points).sum()
}

/// Returns the words at a span, on one line and shortened.
pub(super) fn excerpt(text: &str, span: &Range<usize>) -> String {
    let mut end = span.end.min(span.start.saturating_add(MAX_EXCERPT)).min(text.len());
    let mut start = span.start.min(end);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let words = text.get(start..end).unwrap_or_default().split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(rule: &'static str, weight: u32, at: usize) -> Signal<'static> {
        Signal { rule, about: "", weight, form: TextForm::Plain, span: at..at + 1, excerpt: String::new() }
    }

    #[test]
    fn weights_add_up_within_a_stretch_only() {
        let near = [signal("a", 30, 0), signal("b", 20, 100)];
        let far = [signal("a", 30, 0), signal("b", 20, 5000)];
        assert_eq!([largest_sum(&near, &[], 0), largest_sum(&far, &[], 0)], [50, 30]);
    }

    #[test]
    fn a_rule_counts_once_with_its_heaviest_match() {
        let same = [signal("a", 10, 0), signal("a", 30, 9)];
        assert_eq!(largest_sum(&same, &[], 0), 30);
    }

    #[test]
    fn harmless_words_take_points_off_once_and_within_bounds() {
        let signals = [signal("a", 40, 100)];
        let relief = |rule, at, points| Relief { rule, at, points };
        assert_eq!(largest_sum(&signals, &[relief(1, 0, 12), relief(1, 200, 12)], 30), 28);
        assert_eq!(largest_sum(&signals, &[relief(1, 9000, 12)], 30), 40);
        assert_eq!(largest_sum(&signals, &[relief(1, 0, 99)], 40), 10);
        assert_eq!(largest_sum(&signals, &[relief(1, 0, 99)], 20), 20);
    }

    #[test]
    fn excerpts_end_between_characters() {
        let text = "é".repeat(200);
        assert_eq!(excerpt(&text, &(1..300)), "é".repeat(80));
        assert_eq!(excerpt("a \n b", &(0..5)), "a b");
    }
}
