//! Scores one text with all rules.

use super::decoder::{self, DecodedText};
use super::discussion;
use super::keyword_search::{KeywordHits, KeywordSearch};
use super::name_set::is_distinctive;
use super::rule::{BUILT_IN, InstructionRule, RuleBook, RuleKind};
use super::score::{Relief, STRETCH, excerpt, largest_sum};
use super::{BadInstructionRules, InstructionVerdict, NameSet, Score, Signal, TextForm, TextLocation};
use crate::cleaning;
use aho_corasick::AhoCorasick;
use std::ops::Range;

/// Maximum number of bytes of a text that are scored.
pub const MAX_SCORED: usize = 4 << 20;
/// Maximum number of signals of one rule in one form of a text. Rules are counted apart, so that one hides no other.
const MAX_SIGNALS: usize = 256;
/// Points of signals in a stretch of data from which those are looked for that count only next to others.
const MIN_NEAR: u32 = 16;
/// Number of bytes before a stretch in which words belong to it.
const BEFORE: usize = 300;
/// Maximum length of a text that is no data and searched as a whole for signals that count only next to others.
const MAX_WHOLE: usize = 16 << 10;
/// Number of bytes around a match in which an exception or the name of a tool counts.
const NEAR: usize = 120;
/// Points for naming a tool of another server next to an order.
const OTHER_TOOL: u32 = 30;
/// Points for an order without separators.
const SQUASHED: u32 = 60;

const OTHER_TOOL_RULE: &str = "other-server-tool";
const OTHER_TOOL_ABOUT: &str = "names a tool of another server next to an order";
const SQUASHED_RULE: &str = "spaced-out-order";
const SQUASHED_ABOUT: &str = "spells an order with separators between its letters";

/// Words that make the name of a tool part of an order.
const ORDER_WORDS: &[&str] = &[
    "call",
    "use ",
    "using",
    "use of",
    "invoke",
    "run ",
    "execut",
    "before",
    "after",
    "first",
    "instead",
    "when",
    "must",
    "always",
    "never",
    "with",
    "should",
    "then",
    "ensure",
    "once",
    "unless",
    "hand ",
    "give",
    "pass",
    "depend",
    "where",
    "require",
    "try ",
    "ahead of",
    "prior to",
    "next",
    "share",
    "rate limit",
    "bug",
    "stale",
    "disable",
    "its ",
    "has ",
    "bei ",
    "vor ",
    "nach ",
    "rufe ",
    "après",
    "avant",
    "lors",
    "utilis",
    "antes",
    "cuando",
    "disponible",
    "usa ",
    "使用",
    "调用",
    "при вызове",
    "перед",
    "после",
];

/// Compiled rules. Create one and share it: it is large.
#[derive(Debug)]
pub struct InstructionScorer {
    rules: Vec<InstructionRule>,
    keywords: KeywordSearch,
    squashed: Option<AhoCorasick>,
    /// For each place whether each rule counts in it.
    active: [Box<[bool]>; TextLocation::ALL.len()],
}

/// Surroundings of a text that its score depends on.
#[derive(Copy, Clone)]
pub struct ScoreContext<'a> {
    pub place: TextLocation,
    /// Returns true for names of tools of the server that the text comes from. A server may order how to use its own.
    pub own_tools: &'a dyn Fn(&str) -> bool,
    /// Names of tools of other servers.
    pub other_tools: &'a NameSet,
}

impl std::fmt::Debug for ScoreContext<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ScoreContext").field("place", &self.place).finish_non_exhaustive()
    }
}

impl InstructionScorer {
    /// Creates a scorer of the built-in rules and further ones in TOML.
    ///
    /// # Errors
    /// Fails if the further rules cannot be read or a pattern in them is invalid.
    pub fn new(extra_rules: Option<&str>) -> Result<Self, BadInstructionRules> {
        let built_in = RuleBook::read(&[BUILT_IN])?.rules.len();
        let files: Vec<&str> = std::iter::once(BUILT_IN).chain(extra_rules).collect();
        let book = RuleBook::read(&files)?;
        // Those of the program are compiled on first use, and a test compiles each.
        book.rules.get(built_in..).unwrap_or_default().iter().try_for_each(InstructionRule::check)?;
        let keywords = KeywordSearch::new(&book.rules)?;
        let squashed = AhoCorasick::builder().ascii_case_insensitive(true).build(&book.squashed);
        let squashed = squashed.map_err(|error| BadInstructionRules::Keywords(error.to_string()))?;
        let counts = |rule: &InstructionRule, place| rule.kind == RuleKind::Plain && rule.weight_in(place) > 0;
        let active = TextLocation::ALL.map(|place| book.rules.iter().map(|rule| counts(rule, place)).collect());
        Ok(Self { rules: book.rules, keywords, squashed: Some(squashed), active })
    }

    /// Scores a text. Bytes beyond [`MAX_SCORED`] are left out.
    #[must_use]
    pub fn score(&self, text: &str, context: &ScoreContext<'_>) -> Score<'_> {
        let text = text.get(..boundary(text, MAX_SCORED)).unwrap_or_default();
        let hits = self.keywords.search(text, self.active(context));
        let mut signals = self.find(text, TextForm::Plain, &hits, context);
        self.add_other_tools(text, context, &mut signals);
        self.find_near(text, context, &mut signals, RuleKind::Near);
        if !signals.is_empty() {
            raise_hidden(text, &mut signals);
        }
        signals.sort_by_key(|signal| (signal.span.start, signal.span.end));
        let mut points = largest_sum(&signals, &[], 0);
        if points >= context.place.suspicious() {
            let reliefs = self.find_near(text, context, &mut signals, RuleKind::Relief);
            points = largest_sum(&signals, &reliefs, context.place.suspicious());
        }
        let mut decoded_points = 0;
        for decoded in decoder::decode(text, &hits) {
            let found = self.find_decoded(&decoded, &signals, context);
            decoded_points = decoded_points.max(largest_sum(&found, &[], 0));
            signals.extend(found);
        }
        points = points.saturating_add(decoded_points);
        let verdict = match points {
            _ if points >= context.place.attack() => InstructionVerdict::Attack,
            _ if points >= context.place.suspicious() => InstructionVerdict::Suspicious,
            _ => InstructionVerdict::Clean,
        };
        Score { points, signals, verdict }
    }

    /// Returns the signals of a decoded text that the plain text does not show.
    fn find_decoded(&self, decoded: &DecodedText, plain: &[Signal<'_>], context: &ScoreContext<'_>) -> Vec<Signal<'_>> {
        let hits = self.keywords.search(&decoded.text, self.active(context));
        let mut signals = self.find(&decoded.text, decoded.form, &hits, context);
        signals.retain(|signal| !plain.iter().any(|known| known.rule == signal.rule));
        for signal in &mut signals {
            signal.weight = signal.weight.saturating_mul(percent_of(decoded.form)) / 100;
        }
        if decoded.form == TextForm::Joined {
            let compact: String = decoded.text.chars().filter(|character| character.is_alphanumeric()).collect();
            let found = self.squashed.iter().flat_map(|index| index.find_iter(&compact).take(1));
            signals.extend(found.map(|found| Signal {
                rule: SQUASHED_RULE,
                about: SQUASHED_ABOUT,
                weight: SQUASHED,
                form: decoded.form,
                span: found.range(),
                excerpt: excerpt(&compact, &found.range()),
            }));
        }
        signals.sort_by_key(|signal| (signal.span.start, signal.span.end));
        signals
    }

    /// Returns for each rule whether it counts in a place.
    fn active(&self, context: &ScoreContext<'_>) -> &[bool] {
        self.active.get(context.place as usize).map_or(&[], |active| active)
    }

    /// Runs the patterns of rules around their keywords.
    fn find(&self, text: &str, form: TextForm, hits: &KeywordHits, context: &ScoreContext<'_>) -> Vec<Signal<'_>> {
        let mut signals = Vec::new();
        for windows in hits.windows.chunk_by(|one, other| one.rule == other.rule) {
            let Some(rule) = windows.first().and_then(|window| self.rules.get(window.rule)) else { continue };
            let Some(regex) = rule.regex() else { continue };
            let before = signals.len();
            for window in windows {
                let input = regex_automata::Input::new(text).range(window.range.clone());
                for found in regex.find_iter(input).take(MAX_SIGNALS) {
                    if signals.len() - before >= MAX_SIGNALS {
                        break;
                    }
                    signals.extend(signal(rule, text, found.range(), form, context));
                }
            }
        }
        signals
    }

    /// Adds the signals of rules that count only next to others, and returns what speaks for a harmless text there.
    fn find_near<'a>(
        &'a self,
        text: &str,
        context: &ScoreContext<'_>,
        signals: &mut Vec<Signal<'a>>,
        kind: RuleKind,
    ) -> Vec<Relief> {
        signals.sort_by_key(|signal| (signal.span.start, signal.span.end));
        let least = if kind == RuleKind::Relief { context.place.suspicious() } else { MIN_NEAR };
        let ranges = stretches(text, signals, context.place, least);
        let mut reliefs = Vec::new();
        for (index, rule) in self.rules.iter().enumerate().filter(|(_, rule)| rule.kind == kind) {
            let weight = rule.weight_in(context.place);
            let Some(regex) = rule.regex().filter(|_| weight > 0) else { continue };
            for range in &ranges {
                let input = regex_automata::Input::new(text).range(range.clone());
                let found = regex.find_iter(input).take(MAX_SIGNALS).map(|found| found.range());
                if kind == RuleKind::Relief {
                    reliefs.extend(found.map(|span| Relief { rule: index, at: span.start, points: weight }));
                } else {
                    signals.extend(found.filter_map(|span| signal(rule, text, span, TextForm::Plain, context)));
                }
            }
        }
        signals.sort_by_key(|signal| (signal.span.start, signal.span.end));
        reliefs
    }

    /// Adds signals for names of other servers' tools next to words of an order.
    fn add_other_tools<'a>(&'a self, text: &str, context: &ScoreContext<'_>, signals: &mut Vec<Signal<'a>>) {
        for range in context.other_tools.find(text).take(MAX_SIGNALS) {
            let name = text.get(range.clone()).unwrap_or_default();
            let near = surroundings(text, &range, NEAR / 2).to_ascii_lowercase();
            let ordered = ORDER_WORDS.iter().any(|word| near.contains(word));
            let weight = match (ordered, is_distinctive(name), context.place) {
                (false, ..) => continue,
                (_, true, TextLocation::Definition | TextLocation::Error) => OTHER_TOOL,
                (_, true, _) => OTHER_TOOL * 3 / 4,
                (_, false, TextLocation::Definition | TextLocation::Error) if is_named_as_tool(text, &range) => {
                    OTHER_TOOL
                }
                (_, false, _) if is_named_as_tool(text, &range) => OTHER_TOOL / 2,
                (_, false, TextLocation::Definition) => OTHER_TOOL / 5,
                (_, false, _) => continue,
            };
            if (context.own_tools)(name) {
                continue;
            }
            let excerpt = excerpt(text, &range);
            let (rule, about) = (OTHER_TOOL_RULE, OTHER_TOOL_ABOUT);
            signals.push(Signal { rule, about, weight, form: TextForm::Plain, span: range, excerpt });
        }
    }

    /// Returns the rules, for tests of their examples.
    #[cfg(test)]
    pub(super) fn rules(&self) -> &[InstructionRule] {
        &self.rules
    }
}

/// Returns true if a name stands in code marks or next to a word for tools, so that it is no plain word.
fn is_named_as_tool(text: &str, range: &Range<usize>) -> bool {
    let after = text.get(range.end..).unwrap_or_default();
    let before = text.get(..range.start).unwrap_or_default();
    before.ends_with(['`', '"', '\''])
        || after.starts_with('(')
        || after.starts_with(" tool")
        || after.starts_with(" function")
        || before.ends_with("tool ")
        || before.ends_with("function ")
}

/// Returns the share of the weight of a signal in a form, in percent: who hides an order means it.
const fn percent_of(form: TextForm) -> u32 {
    match form {
        TextForm::Plain => 100,
        TextForm::Unescaped => 130,
        TextForm::Folded | TextForm::Visible | TextForm::Hidden | TextForm::Joined => 150,
        TextForm::Encoded | TextForm::Rotated | TextForm::Reversed | TextForm::Invisible => 250,
    }
}

/// Raises the weight of signals in comments and hidden elements.
fn raise_hidden(text: &str, signals: &mut [Signal<'_>]) {
    let hidden = cleaning::find_hidden(text);
    for signal in signals {
        let after = hidden.partition_point(|edit| edit.start <= signal.span.start);
        let around = after.checked_sub(1).and_then(|at| hidden.get(at));
        if around.is_some_and(|edit| signal.span.end <= edit.end) {
            signal.form = TextForm::Hidden;
            signal.weight = signal.weight.saturating_mul(percent_of(TextForm::Hidden)) / 100;
        }
    }
}

/// Returns the signal of a match, unless something near it makes it harmless.
fn signal<'a>(
    rule: &'a InstructionRule,
    text: &str,
    span: Range<usize>,
    form: TextForm,
    context: &ScoreContext<'_>,
) -> Option<Signal<'a>> {
    if is_exempt(rule, text, &span, context) {
        return None;
    }
    let kept = if rule.never_quoted { 100 } else { discussion::kept_percent(text, span.start, span.end) };
    let weight = rule.weight_in(context.place).saturating_mul(kept) / 100;
    let excerpt = excerpt(text, &span);
    Some(Signal { rule: &rule.id, about: &rule.about, weight, form, span, excerpt })
}

/// Returns the stretches of a text in which rules count that need others: short texts in whole where they are not data,
/// and else where signals of so many points stand.
fn stretches(text: &str, signals: &[Signal<'_>], place: TextLocation, least: u32) -> Vec<Range<usize>> {
    let is_data = matches!(place, TextLocation::Result | TextLocation::Resource | TextLocation::Log);
    if !is_data && text.len() <= MAX_WHOLE {
        return std::iter::once(0..text.len()).collect();
    }
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let (mut next, mut sum) = (0, 0_u32);
    for signal in signals {
        let (start, end) = (signal.span.start, signal.span.start.saturating_add(STRETCH).min(text.len()));
        while let Some(ahead) = signals.get(next).filter(|ahead| ahead.span.start < end) {
            sum = sum.saturating_add(ahead.weight);
            next += 1;
        }
        if sum >= least {
            match ranges.last_mut().filter(|last| last.end >= start) {
                Some(last) => last.end = end.max(last.end),
                None => ranges.push(start.saturating_sub(BEFORE)..end),
            }
        }
        sum = sum.saturating_sub(signal.weight);
    }
    ranges
}

/// Returns true if something near a match makes it harmless.
fn is_exempt(rule: &InstructionRule, text: &str, range: &Range<usize>, context: &ScoreContext<'_>) -> bool {
    let near = || surroundings(text, range, NEAR);
    if rule.unless().is_some_and(|unless| unless.is_match(near())) {
        return true;
    }
    let is_part = |character: char| character.is_ascii_alphanumeric() || "_-./".contains(character);
    rule.own_tools
        && near()
            .split(|character| !is_part(character))
            .map(|word| word.trim_matches('.'))
            .any(|word| word.len() > 2 && (context.own_tools)(word))
}

/// Returns the text around a range, at boundaries of characters.
fn surroundings<'a>(text: &'a str, range: &Range<usize>, distance: usize) -> &'a str {
    let start = boundary(text, range.start.saturating_sub(distance));
    let end = boundary(text, range.end.saturating_add(distance));
    text.get(start..end).unwrap_or_default()
}

/// Returns the last boundary of characters at or before a position.
fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
