//! Looks at what backends list, before any client sees it.

use crate::cleaning::{self, CleaningRules};
use crate::content_settings::{CleanMode, ContentClass, InstructionMode};
use crate::guard::{Guard, GuardState};
use crate::instructions::{InstructionVerdict, ScoreContext};
use crate::message_text::{self, Readership};
use crate::pins::{ListedTool, PinCheck, PinFinding, PinMode, PinVerdicts, PinnedBackend, ToolDefinition};
use crate::settings::GuardMode as _;
use crate::tool_names::BackendNames;
use bytes::Bytes;
use signalbox_engine::catalog::{Item, ListKind, View};
use signalbox_wire::{Edits, Span, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of findings of one list.
const MAX_FINDINGS: usize = 100;

/// Action taken on an entry.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DefinitionAction {
    /// It is listed as it was sent.
    Reported,
    /// It is listed without what hides or acts.
    Cleaned,
    /// It is not listed, and cannot be used.
    LeftOut,
}

/// Finding about an entry of a backend's lists, or about its instructions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DefinitionFinding {
    /// List of the entry; `None` for the backend's instructions.
    pub kind: Option<ListKind>,
    /// Backend's name or URI of the entry.
    pub entry: Box<str>,
    /// Description of the finding, without quoting the definition.
    pub what: String,
    /// Action that was taken.
    pub action: DefinitionAction,
}

/// Lists after their inspection.
#[derive(Debug)]
pub struct InspectedLists {
    /// Lists as clients are shown them.
    pub view: View,
    /// Findings in the order of the lists.
    pub findings: Vec<DefinitionFinding>,
    /// Differences from the approved definitions.
    pub pin_findings: Vec<PinFinding>,
    /// True if definitions are to be remembered as seen, because there is no lock file.
    pub learns: bool,
    /// Definitions of tools to remember as seen.
    pub learned: Vec<ToolDefinition>,
    /// Instructions to remember as seen.
    pub learned_instructions: Option<String>,
}

/// Text of a definition after inspection.
struct InspectedText {
    /// The text as it is shown, if it was edited.
    edited: Option<Bytes>,
    /// Constructs in it that hide or act.
    removals: Option<String>,
    /// Reasons for which it seems to give orders.
    orders: Option<String>,
}

impl Guard {
    /// Inspects the lists of a backend for one kind of client. `pinned` has the definitions that they are compared
    /// with; without it they are not compared.
    #[must_use]
    pub fn inspect_lists(&self, backend: &str, mut view: View, pinned: Option<PinnedBackend<'_>>) -> InspectedLists {
        let state = self.state();
        let tools: BTreeSet<Box<str>> = view.tools.iter().map(|item| item.key.clone()).collect();
        state.names.set(backend, tools);
        let mut findings = Vec::new();
        if state.settings.load().is_off() {
            let (pin_findings, learned, learned_instructions, learns) = Default::default();
            return InspectedLists { view, findings, pin_findings, learns, learned, learned_instructions };
        }
        let names = state.names.of(backend);
        let verdicts = pinned.map(|pinned| state.compare_pins(backend, &view, pinned, &names)).unwrap_or_default();
        let learned_instructions = view.profile.instructions.clone().filter(|_| verdicts.learns_instructions);
        for kind in ListKind::ALL {
            let (mut items, mut is_changed) = (Vec::new(), false);
            for item in view.list(kind).iter() {
                let inspected = state.inspect(&item.raw, &names);
                let (shown, action) = state.decide(kind, item, &inspected);
                is_changed |= action.is_some_and(|action| action != DefinitionAction::Reported);
                items.extend(shown);
                note(&mut findings, Some(kind), &item.key, inspected, action);
            }
            if is_changed {
                view.set(kind, items);
            }
        }
        if let Some(text) = &view.profile.instructions {
            let quoted = Bytes::from(json::quote(text));
            let inspected = state.inspect(&quoted, &names);
            let action = state.action(&inspected);
            if let Some(edited) = inspected.edited.as_ref().filter(|_| action == Some(DefinitionAction::Cleaned)) {
                let mut profile = (*view.profile).clone();
                profile.instructions = json::string(edited).map(std::borrow::Cow::into_owned);
                view.profile = Arc::new(profile);
            }
            if action == Some(DefinitionAction::LeftOut) || verdicts.quarantines_instructions() {
                view.profile =
                    Arc::new(signalbox_engine::ServerProfile { instructions: None, ..(*view.profile).clone() });
            }
            note(&mut findings, None, "instructions", inspected, action);
        }
        InspectedLists {
            view,
            findings,
            pin_findings: verdicts.findings,
            learns: verdicts.learns,
            learned: verdicts.learned,
            learned_instructions,
        }
    }
}

fn note(
    findings: &mut Vec<DefinitionFinding>,
    kind: Option<ListKind>,
    entry: &str,
    inspected: InspectedText,
    action: Option<DefinitionAction>,
) {
    let Some(action) = action.filter(|_| findings.len() < MAX_FINDINGS) else { return };
    let parts: Vec<String> = inspected.orders.into_iter().chain(inspected.removals).collect();
    findings.push(DefinitionFinding { kind, entry: entry.into(), what: parts.join("; "), action });
}

impl GuardState {
    /// Compares lists, as their backend sent them, with the definitions that were approved or seen before.
    fn compare_pins(&self, backend: &str, view: &View, pinned: PinnedBackend<'_>, names: &BackendNames) -> PinVerdicts {
        let settings = self.settings.load();
        let mode = if pinned.is_locked { settings.pins.locked } else { settings.pins.unlocked };
        let mode = if settings.shadow { mode.in_shadow() } else { mode };
        let mut verdicts = PinVerdicts::default();
        if mode == PinMode::Off {
            return verdicts;
        }
        let instructions = view.profile.instructions.as_deref();
        let check = PinCheck {
            mode,
            backend: pinned,
            other_names: &|| self.names.of_others(backend),
            is_suspicious: &|tool| match tool {
                Some(name) => view.tools.named(name).is_some_and(|item| self.is_suspicious(&item.raw, names)),
                None => instructions.is_some_and(|text| self.is_suspicious(&json::quote(text).into(), names)),
            },
        };
        let listed =
            view.tools.iter().map(|item| ListedTool { name: &item.key, parsed: ToolDefinition::parse(&item.raw) });
        check.tools(listed.collect(), &mut verdicts);
        check.instructions(instructions, &mut verdicts);
        verdicts
    }

    /// Returns true if a definition hides something or gives orders.
    fn is_suspicious(&self, definition: &Bytes, names: &BackendNames) -> bool {
        let own_tools = |name: &str| names.own.contains(name);
        let place = ContentClass::Definitions.place();
        let context = ScoreContext { place, own_tools: &own_tools, other_tools: &names.of_others };
        let mut found = false;
        message_text::visit(definition, Span::new(0, definition.len()), &mut |place| {
            if found || place.readership == Readership::Opaque {
                return;
            }
            let Some(text) = json::string(place.span.of(definition)) else { return };
            let gives_orders = || {
                let score = self.scorer().map(|scorer| scorer.score(&text, &context));
                score.is_some_and(|score| score.verdict != InstructionVerdict::Clean)
            };
            found = cleaning::clean(&text, &CleaningRules::ALL).is_some() || gives_orders();
        });
        found
    }

    /// Looks at every string of a definition.
    fn inspect(&self, definition: &Bytes, names: &BackendNames) -> InspectedText {
        let settings = self.settings.load();
        let clean = settings.clean.of(ContentClass::Definitions);
        let instruct = settings.instructions.of(ContentClass::Definitions);
        let own_tools = |name: &str| names.own.contains(name);
        let place = ContentClass::Definitions.place();
        let context = ScoreContext { place, own_tools: &own_tools, other_tools: &names.of_others };
        let (mut edits, mut removals, mut orders) = (Edits::new(), BTreeSet::new(), BTreeSet::new());
        message_text::visit(definition, Span::new(0, definition.len()), &mut |place| {
            let Some(text) = json::string(place.span.of(definition)) else { return };
            let is_opaque = place.readership == Readership::Opaque;
            let cleaned =
                if clean == CleanMode::Off || is_opaque { None } else { cleaning::clean(&text, &CleaningRules::ALL) };
            if let Some(cleaned) = cleaned {
                removals.extend(cleaned.removed.iter().map(|removal| removal.class.word()));
                if place.readership == Readership::Text && !place.is_key {
                    edits.replace(place.span, json::quote(&cleaned.text));
                }
            }
            // Lists do not wait for a scorer that would only report. They are inspected again when it is ready.
            let scorer = match instruct {
                InstructionMode::Off => None,
                InstructionMode::Block => self.scorer(),
                InstructionMode::Report | InstructionMode::Mark => self.ready_scorer(),
            };
            if let Some(scorer) = scorer {
                let score = scorer.score(&text, &context);
                let alarm = score.verdict != InstructionVerdict::Clean;
                orders.extend(score.signals.iter().filter(|_| alarm).map(|signal| signal.about.to_owned()));
            }
        });
        let joined = |beginning: &str, words: Vec<&str>| {
            let words = words.join(", ");
            (!words.is_empty()).then(|| format!("{beginning}{words}"))
        };
        InspectedText {
            edited: (!edits.is_empty()).then(|| edits.apply(definition)),
            removals: joined("hides or acts: ", removals.into_iter().collect()),
            orders: joined("tells the model what to do: ", orders.iter().map(String::as_str).collect()),
        }
    }

    /// Returns what is done about a text, if anything was found in it.
    fn action(&self, inspected: &InspectedText) -> Option<DefinitionAction> {
        let settings = self.settings.load();
        let is_found = inspected.removals.is_some() || inspected.orders.is_some();
        let is_blocked = settings.instructions.of(ContentClass::Definitions) == InstructionMode::Block;
        let is_cleaned = settings.clean.of(ContentClass::Definitions) == CleanMode::Clean;
        match () {
            () if !is_found => None,
            () if settings.shadow => Some(DefinitionAction::Reported),
            () if inspected.orders.is_some() && is_blocked => Some(DefinitionAction::LeftOut),
            () if inspected.edited.is_some() && is_cleaned => Some(DefinitionAction::Cleaned),
            () => Some(DefinitionAction::Reported),
        }
    }

    /// Returns the entry as it is listed, and what was done about it.
    fn decide(
        &self,
        kind: ListKind,
        item: &Item,
        inspected: &InspectedText,
    ) -> (Option<Item>, Option<DefinitionAction>) {
        let action = self.action(inspected);
        match (action, &inspected.edited) {
            (Some(DefinitionAction::LeftOut), _) => (None, action),
            // An entry that cannot be read after cleaning is not listed: it would be shown with what hides in it.
            (Some(DefinitionAction::Cleaned), Some(edited)) => match Item::read(kind, edited.clone()) {
                Ok(edited) => (Some(edited), action),
                Err(_) => (None, Some(DefinitionAction::LeftOut)),
            },
            _ => (Some(item.clone()), action),
        }
    }
}
