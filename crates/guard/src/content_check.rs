//! Looks at what servers say before a client gets it: removes what hides, acts or is private, and marks what gives
//! orders.

use crate::content::{ContentClass, content};
use crate::content_search::{ContentFindings, ContentModes, ContentSearch};
use crate::content_settings::{CleanMode, InstructionMode, PrivacyModes};
use crate::guard::{AppliedMode, GuardState, ruling};
use crate::mark;
use crate::prepared_work::{MAX_UNDER_LOCK, Preparation, PreparedWork};
use crate::result_check::replacement;
use crate::schema::SchemaValidity;
use crate::settings::ToolSettings;
use crate::tool_schemas::DeclaredSchema;
use signalbox_engine::chain::{Case, HoldResponse, Interceptor, Judgement, Phase, Ruling, Verdict};
use signalbox_engine::fact::FinishedFact;
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::{Envelope, Kind, method};
use std::sync::Arc;

/// Text of the result in place of one that lost what its schema demands.
const BROKEN: &str = "Signalbox removed parts of this result that are not allowed, and it does not fit the schema of the tool without them";

/// Reason for withholding private data that cannot be replaced.
const DIVIDED: &str = "private data is divided over two of its texts";

/// Interceptor that looks at results, errors, notifications and questions of backends.
pub(crate) struct ContentCheck {
    pub state: Arc<GuardState>,
    prepared: PreparedWork<ContentFindings>,
}

/// Modes that apply to a message, with the keys that set them.
struct AppliedModes {
    clean: AppliedMode<CleanMode>,
    privacy: AppliedMode<PrivacyModes>,
    instructions: AppliedMode<InstructionMode>,
}

impl AppliedModes {
    fn of(state: &GuardState, case: &Case<'_>, class: ContentClass) -> Self {
        Self {
            clean: state.clean_mode(case, class),
            privacy: state.mode(case, |settings| settings.privacy, ToolSettings::privacy_modes),
            instructions: state.instruction_mode(case, class),
        }
    }
}

impl ContentCheck {
    /// Creates the interceptor of a guard.
    pub fn new(state: &Arc<GuardState>) -> Self {
        Self { state: Arc::clone(state), prepared: PreparedWork::default() }
    }

    /// Returns the result to send if removals made the structured content break the schema that it fitted before.
    fn replacement_if_broken(&self, case: &Case<'_>, edited: &Envelope) -> Option<Envelope> {
        let lookup = self.state.schemas.schemas(case.definition?);
        let DeclaredSchema::Compiled(schema) = &lookup.schemas.output else { return None };
        let fits = |message: &Envelope| {
            let content = message.result_member("structuredContent")?;
            Some(!matches!(schema.check(content.of(message.bytes())), SchemaValidity::Invalid(_)))
        };
        let is_broken = fits(case.message)? && !fits(edited)?;
        is_broken.then(|| replacement(case.message, BROKEN)).flatten()
    }

    /// Returns the verdict on the findings and their record.
    fn judgement(
        &self,
        case: &Case<'_>,
        class: ContentClass,
        findings: &ContentFindings,
        modes: &AppliedModes,
    ) -> Judgement {
        let mut rulings: Vec<Arc<Ruling>> = Vec::new();
        let mut message = match findings.edits.is_empty() {
            true => None,
            false => Envelope::parse(findings.edits.clone().apply(case.message.bytes())).ok(),
        };
        let mut note = |is_applied: bool, rule: Arc<str>, text: String| {
            rulings.push(Arc::new(ruling(&rule, if is_applied { "modify" } else { "report" }, text)));
        };
        if findings.hides() {
            let is_applied = message.is_some() && modes.clean.mode == CleanMode::Clean;
            let text = findings.describe_removals(class, is_applied);
            note(is_applied, modes.clean.rule(&format!("clean.{}", class.word())), text);
        }
        if findings.is_private() {
            let is_applied = message.is_some() && findings.replaces_private();
            note(is_applied, modes.privacy.rule("privacy"), findings.describe_private(class, is_applied));
        }
        let divided = findings.is_divided.then(|| withhold(case, class, DIVIDED));
        let mut verdict =
            message.as_ref().and_then(|message| self.replacement_if_broken(case, message)).map(Verdict::Modify);
        verdict = divided.or(verdict);
        if findings.orders.is_alarm {
            let reasons = findings.orders.reasons();
            let current = message.as_ref().unwrap_or(case.message);
            let marked = match modes.instructions.mode {
                InstructionMode::Mark => mark::with_note(current, &reasons),
                _ => None,
            };
            let word = match modes.instructions.mode {
                InstructionMode::Block => "refuse",
                _ if marked.is_some() => "modify",
                _ => "report",
            };
            if modes.instructions.mode == InstructionMode::Block {
                // A message that is withheld needs no other replacement.
                verdict = Some(withhold(case, class, &format!("it tells the model what to do ({reasons})")));
            }
            message = marked.or(message);
            let rule = modes.instructions.rule(&format!("instructions.{}", class.word()));
            rulings.push(Arc::new(ruling(&rule, word, findings.orders.describe(class))));
        }
        let verdict = verdict.unwrap_or_else(|| message.map_or(Verdict::Pass, Verdict::Modify));
        Judgement { verdict, rulings: rulings.into(), effects: Vec::new() }
    }
}

/// Returns the verdict that withholds a message, or what is left of it for its client.
fn withhold(case: &Case<'_>, class: ContentClass, why: &str) -> Verdict {
    let text = format!("Signalbox withheld this: {why}");
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

    fn judge(&self, case: &Case<'_>, resumed: Option<HoldResponse<'_>>) -> Judgement {
        let Some(content) = content(case) else { return Judgement::pass() };
        let modes = AppliedModes::of(&self.state, case, content.class);
        let search = ContentSearch {
            state: Arc::clone(&self.state),
            message: case.message.bytes().clone(),
            content,
            modes: ContentModes {
                clean: modes.clean.mode,
                privacy: modes.privacy.mode,
                instructions: modes.instructions.mode,
            },
            names: self.state.names.of(case.backend.unwrap_or_default()),
            is_bounded: !case.can_wait && case.message.bytes().len() > MAX_UNDER_LOCK,
        };
        match self.prepared.of(case, resumed, move || search.run()) {
            Preparation::Ready(findings) => self.judgement(case, content.class, &findings, &modes),
            Preparation::Held(verdict) => verdict.into(),
        }
    }

    fn is_idle(&self) -> bool {
        self.state.settings.load().is_off()
    }

    fn looks_at(&self, phase: Phase) -> bool {
        matches!(phase, Phase::Response | Phase::FromBackend | Phase::ServerAsks) && !self.is_idle()
    }

    fn finished(&self, finished: &FinishedFact) {
        self.prepared.finished(finished.exchange);
    }
}
