//! Looks at what servers say before a client gets it: removes what hides or acts, and marks what gives orders.

use crate::cleaning::{self, CleaningRules, RemovalCount};
use crate::content::{ContentClass, content};
use crate::content_settings::{CleanMode, InstructionMode};
use crate::guard::{GuardState, ruling};
use crate::instructions::{InstructionVerdict, ScoreContext};
use crate::mark;
use crate::message_text::{self, Readership, TextPlace};
use crate::result_check::replacement;
use signalbox_engine::chain::{Case, HoldResponse, Interceptor, Judgement, Phase, Ruling, Verdict};
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::{Edits, Envelope, Kind, json, method};
use std::fmt::Write as _;
use std::sync::Arc;

/// Maximum number of rules that are named in one decision.
const MAX_NAMED: usize = 8;

/// Maximum number of texts that may be a note of an earlier judgement.
const MAX_NOTES: usize = 4;

/// Interceptor that looks at results, errors, notifications and questions of backends.
pub(crate) struct ContentCheck(pub Arc<GuardState>);

/// Findings of cleaning in one message.
#[derive(Default)]
struct CleaningFindings {
    removals: Vec<RemovalCount>,
    /// True if something was found in a value that cannot be edited.
    is_fixed: bool,
    edits: Edits,
    /// Size of the strings that were edited, before and after.
    original_size: usize,
    sanitized_size: usize,
}

impl CleaningFindings {
    fn look(&mut self, token: &[u8], text: &str, place: TextPlace) {
        let Some(clean) = cleaning::clean(text, &CleaningRules::ALL) else { return };
        for removal in clean.removed {
            match self.removals.iter_mut().find(|one| one.class == removal.class) {
                Some(known) => known.count = known.count.saturating_add(removal.count),
                None => self.removals.push(removal),
            }
        }
        if place.readership != Readership::Text || place.is_key {
            self.is_fixed = true;
            return;
        }
        let quoted = json::quote(&clean.text);
        self.original_size += token.len();
        self.sanitized_size += quoted.len();
        self.edits.replace(place.span, quoted);
    }

    /// Describes the findings without quoting the message.
    fn describe(&self, class: ContentClass, is_applied: bool) -> String {
        let mut text = format!("{}: ", class.word());
        for (at, removal) in self.removals.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let _ = write!(text, "{comma}{} {}", removal.count, removal.class.word());
        }
        if is_applied {
            let (before, after) = (self.original_size, self.sanitized_size);
            let _ = write!(text, "; original_size {before}, sanitized_size {after}");
        }
        if self.is_fixed {
            text.push_str("; some of it in values that are not edited");
        }
        text
    }
}

/// Findings of the scorer in one message.
#[derive(Default)]
struct InstructionFindings {
    points: u32,
    is_alarm: bool,
    /// Rules that gave points, each once.
    rules: Vec<(String, String)>,
}

impl InstructionFindings {
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

    fn describe(&self, class: ContentClass) -> String {
        let rules: Vec<&str> = self.rules.iter().map(|(rule, _)| rule.as_str()).collect();
        format!("{}: text that tells the model what to do, {} points: {}", class.word(), self.points, rules.join(", "))
    }

    /// Says in words what was found, for the model and the person that read the mark.
    fn reasons(&self) -> String {
        self.rules.iter().map(|(_, about)| about.as_str()).collect::<Vec<_>>().join("; ")
    }
}

impl ContentCheck {
    /// Looks at every string of the content.
    fn look(
        &self,
        case: &Case<'_>,
        found: crate::content::FoundContent,
        modes: (CleanMode, InstructionMode),
    ) -> (CleaningFindings, InstructionFindings) {
        let (mut cleaning, mut instructions) = (CleaningFindings::default(), InstructionFindings::default());
        let bytes = case.message.bytes();
        let names = self.0.names.of(case.backend.unwrap_or_default());
        let own_tools = |name: &str| names.own.contains(name);
        let context = ScoreContext { place: found.class.place(), own_tools: &own_tools, other_tools: &names.of_others };
        // Notes of an earlier judgement are no findings, if they turn out to be what this one would write.
        let mut notes: Vec<String> = Vec::new();
        let mut look = |place: TextPlace| {
            let token = place.span.of(bytes);
            let Some(text) = json::string(token) else { return };
            if modes.0 != CleanMode::Off && place.readership != Readership::Opaque {
                cleaning.look(token, &text, place);
            }
            if modes.1 == InstructionMode::Off || place.is_key && !place.is_structured {
                return;
            }
            match mark::is_like_note(&text) && notes.len() < MAX_NOTES {
                true => notes.push(text.into_owned()),
                false => instructions.look(&self.0, &text, &context),
            }
        };
        match found.class {
            ContentClass::Logs | ContentClass::Errors => message_text::visit_report(bytes, found.span, &mut look),
            _ => message_text::visit(bytes, found.span, &mut look),
        }
        let own = instructions.is_alarm.then(|| mark::note(&instructions.reasons()));
        for note in notes.iter().filter(|note| Some(*note) != own.as_ref()) {
            instructions.look(&self.0, note, &context);
        }
        (cleaning, instructions)
    }
}

/// Returns the verdict that withholds a message, or what is left of it for its client.
fn withheld(case: &Case<'_>, class: ContentClass, reasons: &str) -> Verdict {
    let text = format!("Signalbox withheld this: it tells the model what to do ({reasons})");
    let is_call = case.by_task || case.exchange.is_some_and(|exchange| exchange.method == method::TOOLS_CALL);
    let is_result = matches!(class, ContentClass::Results | ContentClass::Errors)
        && case.message.kind() == Kind::Response
        && is_call
        && case.message.result_member("inputRequests").is_none();
    match replacement(case.message, &text).filter(|_| is_result) {
        Some(message) => Verdict::Modify(message),
        None => Verdict::Refuse(Fault::new(FaultKind::Refused, text)),
    }
}

impl Interceptor for ContentCheck {
    fn name(&self) -> &'static str {
        "guard content"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        let Some(found) = content(case) else { return Judgement::pass() };
        let class = found.class;
        let (clean, instruct) = (self.0.clean_mode(case, class), self.0.instruction_mode(case, class));
        let (cleaning, instructions) = self.look(case, found, (clean.mode, instruct.mode));
        let mut rulings: Vec<Arc<Ruling>> = Vec::new();
        let mut message: Option<Envelope> = None;
        if !cleaning.removals.is_empty() {
            let is_applied = clean.mode == CleanMode::Clean && !cleaning.edits.is_empty();
            message = is_applied.then(|| Envelope::parse(cleaning.edits.apply(case.message.bytes())).ok()).flatten();
            let word = if message.is_some() { "modify" } else { "report" };
            let rule = clean.rule(&format!("clean.{}", class.word()));
            rulings.push(Arc::new(ruling(&rule, word, cleaning.describe(class, message.is_some()))));
        }
        let mut verdict = None;
        if instructions.is_alarm {
            let current = message.as_ref().unwrap_or(case.message);
            let marked = match instruct.mode {
                InstructionMode::Mark => mark::marked(current, &instructions.reasons()),
                _ => None,
            };
            let word = match instruct.mode {
                InstructionMode::Block => "refuse",
                _ if marked.is_some() => "modify",
                _ => "report",
            };
            if instruct.mode == InstructionMode::Block {
                verdict = Some(withheld(case, class, &instructions.reasons()));
            }
            message = marked.or(message);
            let rule = instruct.rule(&format!("instructions.{}", class.word()));
            rulings.push(Arc::new(ruling(&rule, word, instructions.describe(class))));
        }
        let verdict = verdict.unwrap_or_else(|| message.map_or(Verdict::Pass, Verdict::Modify));
        Judgement { verdict, rulings: rulings.into(), effects: Vec::new() }
    }

    fn is_idle(&self) -> bool {
        self.0.settings.load().is_off()
    }

    fn looks_at(&self, phase: Phase) -> bool {
        matches!(phase, Phase::Response | Phase::FromBackend | Phase::ServerAsks) && !self.is_idle()
    }
}
