//! Search of one message for what hides, what is private and what gives orders.

use crate::cleaning::{self, CleaningRules, RemovalCount};
use crate::content::FoundContent;
use crate::content_settings::{CleanMode, ContentClass, InstructionMode, PrivacyModes};
use crate::guard::GuardState;
use crate::instructions::{InstructionVerdict, ScoreContext};
use crate::mark;
use crate::message_text::{self, Readership, TextPlace};
use crate::prepared_work::MAX_UNDER_LOCK;
use crate::privacy::{self, PrivacyClass};
use crate::tool_names::BackendNames;
use bytes::Bytes;
use signalbox_wire::{Edits, Span, json};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

/// Minimum length of a text that is scored, in bytes. Words such as `text` and `complete` order nothing.
const MIN_ORDER: usize = 9;
/// Maximum number of rules that are named in one decision.
const MAX_NAMED: usize = 8;
/// Maximum number of texts that may be a note of an earlier judgement.
const MAX_NOTES: usize = 4;
/// Number of characters at the end of one text and the beginning of the next that are searched together.
const SEAM: usize = 256;
/// Maximum number of neighbouring texts that are searched together.
const MAX_SEAMS: usize = 64;

/// Modes that decide what a search looks for, and what it edits.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ContentModes {
    pub clean: CleanMode,
    pub privacy: PrivacyModes,
    pub instructions: InstructionMode,
}

/// Search of one message. It owns its parts, so that it can run outside the session's lock.
pub(crate) struct ContentSearch {
    pub state: Arc<GuardState>,
    pub message: Bytes,
    pub content: FoundContent,
    pub modes: ContentModes,
    pub names: Arc<BackendNames>,
    /// True for a message that cannot wait, of which only the first part is searched.
    pub is_bounded: bool,
}

/// Number of findings of one kind.
#[derive(Debug)]
struct FindingCount {
    kind: &'static str,
    count: usize,
}

/// Findings in one message, and the edits that they ask for.
#[derive(Default, Debug)]
pub(crate) struct ContentFindings {
    removals: Vec<RemovalCount>,
    private: Vec<FindingCount>,
    /// True if private data of a class that is replaced was found.
    replaces_private: bool,
    /// True if private data that is to be replaced is divided over two texts, in which no part can be replaced alone.
    pub is_divided: bool,
    /// True if something was found in a value that cannot be edited.
    is_fixed: bool,
    /// True if a part of the message was not searched.
    is_partial: bool,
    pub edits: Edits,
    /// Size of the strings that were edited, before and after.
    original_size: usize,
    sanitized_size: usize,
    pub orders: OrderFindings,
}

/// Findings of the scorer in one message.
#[derive(Default, Debug)]
pub(crate) struct OrderFindings {
    points: u32,
    pub is_alarm: bool,
    /// Rules that gave points, each once.
    rules: Vec<(String, String)>,
}

impl OrderFindings {
    fn look(&mut self, state: &GuardState, text: &str, context: &ScoreContext<'_>) {
        let Some(score) = state.scorer().map(|scorer| scorer.score(text, context)) else { return };
        if score.verdict == InstructionVerdict::Clean {
            return;
        }
        self.is_alarm = true;
        self.points = self.points.max(score.points);
        for signal in score.signals {
            if self.rules.len() < MAX_NAMED && !self.rules.iter().any(|(rule, _)| rule == signal.rule) {
                self.rules.push((signal.rule.to_owned(), signal.about.to_owned()));
            }
        }
    }

    pub fn describe(&self, class: ContentClass) -> String {
        let rules: Vec<&str> = self.rules.iter().map(|(rule, _)| rule.as_str()).collect();
        format!("{}: text that tells the model what to do, {} points: {}", class.word(), self.points, rules.join(", "))
    }

    /// Describes the rules that gave points, for the model and the person that read the mark.
    pub fn reasons(&self) -> String {
        self.rules.iter().map(|(_, about)| about.as_str()).collect::<Vec<_>>().join("; ")
    }
}

impl ContentFindings {
    /// Returns true if characters or markup that hide or act were found.
    pub fn hides(&self) -> bool {
        !self.removals.is_empty() || self.is_partial
    }

    /// Returns true if private data was found.
    pub fn is_private(&self) -> bool {
        !self.private.is_empty()
    }

    /// Returns true if private data was found that is to be replaced.
    pub fn replaces_private(&self) -> bool {
        self.replaces_private
    }

    /// Describes what hides or acts without quoting the message.
    pub fn describe_removals(&self, class: ContentClass, is_applied: bool) -> String {
        let counts = self.removals.iter().map(|removal| (removal.count, removal.class.word()));
        let mut text = self.summary(class, counts, is_applied);
        if self.is_partial {
            let _ = write!(text, "; only its first {MAX_UNDER_LOCK} bytes were searched");
        }
        text
    }

    /// Describes private data without quoting it.
    pub fn describe_private(&self, class: ContentClass, is_applied: bool) -> String {
        self.summary(class, self.private.iter().map(|one| (one.count, one.kind)), is_applied)
    }

    fn summary<N: std::fmt::Display>(
        &self,
        class: ContentClass,
        counts: impl Iterator<Item = (N, &'static str)>,
        is_applied: bool,
    ) -> String {
        let counts: Vec<String> = counts.map(|(count, kind)| format!("{count} {kind}")).collect();
        let mut text = format!("{}: {}", class.word(), counts.join(", "));
        if is_applied {
            let (before, after) = (self.original_size, self.sanitized_size);
            let _ = write!(text, "; original_size {before}, sanitized_size {after}");
        }
        if self.is_fixed {
            text.push_str("; some of it in values that are not edited");
        }
        text
    }

    /// Looks for what hides and what is private in one string.
    fn look(&mut self, token: &[u8], text: &str, place: TextPlace, modes: &ContentModes) {
        let cleaned = match modes.clean {
            CleanMode::Off => None,
            CleanMode::Report | CleanMode::Clean => cleaning::clean(text, &CleaningRules::ALL),
        };
        let current =
            cleaned.as_ref().filter(|_| modes.clean == CleanMode::Clean).map_or(text, |cleaned| &cleaned.text);
        let mut found = privacy::find(current, modes.privacy.classes());
        for span in &found.spans {
            self.count(span.class);
        }
        found.spans.retain(|span| modes.privacy.of(span.class) == CleanMode::Clean);
        let is_editable = place.readership == Readership::Text && !place.is_key;
        let is_found = cleaned.is_some() || self.is_private();
        self.replaces_private |= is_editable && !found.spans.is_empty();
        let redacted = (!found.spans.is_empty()).then(|| privacy::redact(current, &found));
        let edited = redacted.as_deref().unwrap_or(current);
        if edited != text && is_editable {
            let quoted = json::quote(edited);
            self.original_size += token.len();
            self.sanitized_size += quoted.len();
            self.edits.replace(place.span, quoted);
        }
        self.is_fixed |= is_found && !is_editable;
        for removal in cleaned.into_iter().flat_map(|cleaned| cleaned.removed) {
            match self.removals.iter_mut().find(|one| one.class == removal.class) {
                Some(known) => known.count = known.count.saturating_add(removal.count),
                None => self.removals.push(removal),
            }
        }
    }

    /// Looks for what is private across the end of one text and the beginning of the next, which meet at `seam`.
    fn look_across(&mut self, joined: &str, seam: usize, modes: &ContentModes) {
        let found = privacy::find(joined, modes.privacy.classes());
        for span in found.spans.iter().filter(|span| span.range.start < seam && span.range.end > seam) {
            self.count(span.class);
            self.is_divided |= modes.privacy.of(span.class) == CleanMode::Clean;
        }
    }

    fn count(&mut self, class: PrivacyClass) {
        match self.private.iter_mut().find(|one| one.kind == class.word()) {
            Some(known) => known.count += 1,
            None => self.private.push(FindingCount { kind: class.word(), count: 1 }),
        }
    }
}

/// The text before, for the search over the seam to the next one.
#[derive(Default)]
struct TextSeam<'a> {
    before: Option<Cow<'a, str>>,
    count: usize,
}

impl<'a> TextSeam<'a> {
    /// Returns the end of the text before with the beginning of this one, and the place where they meet.
    fn join(&mut self, text: Cow<'a, str>) -> Option<(String, usize)> {
        let before = self.before.replace(text);
        let (before, text) = (before.as_deref().map(last)?, self.before.as_deref()?);
        if before.is_empty() || text.is_empty() || self.count >= MAX_SEAMS {
            return None;
        }
        self.count += 1;
        let beginning = text.char_indices().nth(SEAM).map_or(text, |(at, _)| &text[..at]);
        Some((format!("{before}{beginning}"), before.len()))
    }
}

/// Returns the last characters of a text.
fn last(text: &str) -> &str {
    text.char_indices().rev().nth(SEAM - 1).map_or(text, |(at, _)| &text[at..])
}

impl ContentSearch {
    /// Looks at every string of the content.
    pub fn run(&self) -> ContentFindings {
        let mut findings = ContentFindings::default();
        let bytes = &self.message;
        let own_tools = |name: &str| self.names.own.contains(name);
        let place = self.content.class.place();
        let context = ScoreContext { place, own_tools: &own_tools, other_tools: &self.names.of_others };
        // Notes of an earlier judgement are no findings, if they turn out to be what this one would write.
        let mut notes: Vec<String> = Vec::new();
        let (mut seam, mut seen) = (TextSeam::default(), 0_usize);
        let mut look = |place: TextPlace| {
            let token = place.span.of(bytes);
            if self.is_bounded && seen > MAX_UNDER_LOCK {
                findings.is_partial = true;
                return;
            }
            seen += token.len();
            let Some(text) = json::string(token) else { return };
            if place.readership != Readership::Opaque {
                findings.look(token, &text, place, &self.modes);
            }
            let orders = self.modes.instructions != InstructionMode::Off && (!place.is_key || place.is_structured);
            if orders && mark::is_like_note(&text) && notes.len() < MAX_NOTES {
                notes.push(text.into_owned());
                return;
            }
            if orders && text.len() >= MIN_ORDER {
                findings.orders.look(&self.state, &text, &context);
            }
            let is_prose = place.readership == Readership::Text && !place.is_structured && !place.is_key;
            if let Some((joined, at)) = is_prose.then(|| seam.join(text)).flatten() {
                findings.look_across(&joined, at, &self.modes);
                if orders {
                    findings.orders.look(&self.state, &joined, &context);
                }
            }
        };
        let span: Span = self.content.span;
        match self.content.class {
            ContentClass::Logs | ContentClass::Errors => message_text::visit_report(bytes, span, &mut look),
            _ => message_text::visit(bytes, span, &mut look),
        }
        let own = findings.orders.is_alarm.then(|| mark::note(&findings.orders.reasons()));
        for note in notes.iter().filter(|note| Some(*note) != own.as_ref()) {
            findings.orders.look(&self.state, note, &context);
        }
        findings
    }
}
